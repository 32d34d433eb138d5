"""End streams, tunnels and terminals when the key or session that opened them ends.

While any are open, one statement checks all their keys every two seconds. So it does not matter
which daemon ended a key, or whether the key expired.
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
"""The close code of a WebSocket whose key has ended."""
WHY_ENDED = "the API key has ended: it was logged out, or its login has expired; log in again"


class OpenKeys(Protocol):
    async def list_open(self, digests: Sequence[str]) -> dict[str, Ends]:
        """Those of these keys that have not been ended."""
        ...


class Credentials:
    """The keys and sessions that have opened something."""

    def __init__(self) -> None:
        # Each open stream holds its event, so entries disappear when their streams end.
        self.open: WeakValueDictionary[tuple[str, bool], asyncio.Event] = WeakValueDictionary()

    def watch(self, digest: str | None, *, lasting: bool = False) -> asyncio.Event:
        """An event that is set when the key or session with this digest ends; without one: never.

        lasting: the connection cannot be resumed, so it stays open until the key's login ends.
        """
        ended = asyncio.Event()
        return ended if digest is None else self.open.setdefault((digest, lasting), ended)

    def bind(self, response: Response, scope: Mapping[str, Any]) -> None:
        """End a streamed answer when the key of its request ends."""
        if isinstance(response, Streamed) and (digest := key_of(scope)) is not None:
            response.until(self.watch(digest))

    async def run(self, store: OpenKeys, clock: Clock) -> None:
        """End streams and connections whose keys have ended, until cancelled."""
        while True:
            await clock.sleep(LOOK_S)
            watched = [*self.open]  # not the events: references would keep them alive
            if not watched:
                continue
            try:
                good = await store.list_open(sorted({digest for digest, _ in watched}))
            except OdcError as error:
                log.warning("credentials.unread", extra={"code": error.code})
                continue
            now = clock.now()
            for digest, lasting in watched:
                ends = good.get(digest)
                if ends is not None and now < (ends.until_at if lasting else ends.expires_at):
                    continue
                ended = self.open.pop((digest, lasting), None)
                if ended is not None:
                    ended.set()
