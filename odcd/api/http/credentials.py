"""What a key or a session has opened ends with it: streams, tunnels and terminals.

One statement asks about all of them at once, every two seconds while there are any; so it does not
matter which daemon ended a key, or whether it ended by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakValueDictionary

from starlette.responses import Response

from odcd.api.http.identity import key_of
from odcd.api.http.streaming import Streamed
from odcd.clock import Clock
from odcd.errors import OdcError
from odcd.records.api_keys import Ends

log = logging.getLogger(__name__)

LOOK_S = 2.0
ENDED = 4401
"""The code that closes a WebSocket whose key has ended."""
WHY_ENDED = "the API key has ended: somebody logged it out, or its login is over; log in again"


class OpenKeys(Protocol):
    async def list_open(self, digests: Sequence[str]) -> dict[str, Ends]:
        """Those of them that nobody has ended."""
        ...


class Credentials:
    """The keys and sessions by which something is open."""

    def __init__(self) -> None:
        # Whoever streams holds the event: what is over is not here.
        self.open: WeakValueDictionary[tuple[str, bool], asyncio.Event] = WeakValueDictionary()

    def watch(self, digest: str | None, *, lasting: bool = False) -> asyncio.Event:
        """An event that is set when the key or session with this digest ends; None: never.

        lasting: what is open cannot be taken up again; it goes on until the key's login ends.
        """
        ended = asyncio.Event()
        return ended if digest is None else self.open.setdefault((digest, lasting), ended)

    def bind(self, response: Response, scope: Mapping[str, Any]) -> None:
        """A streamed answer goes on no longer than the key of its request."""
        if isinstance(response, Streamed) and (digest := key_of(scope)) is not None:
            response.until(self.watch(digest))

    async def run(self, store: OpenKeys, clock: Clock) -> None:
        """End what is open by keys that have ended, until cancelled."""
        while True:
            await clock.sleep(LOOK_S)
            asked = [*self.open]  # not the events: they would stay forever
            if not asked:
                continue
            try:
                good = await store.list_open(sorted({digest for digest, _ in asked}))
            except OdcError as error:
                log.warning("credentials.unread", extra={"code": error.code})
                continue
            now = clock.now()
            for digest, lasting in asked:
                ends = good.get(digest)
                if ends is not None and now < (ends.until_at if lasting else ends.expires_at):
                    continue
                ended = self.open.pop((digest, lasting), None)
                if ended is not None:
                    ended.set()
