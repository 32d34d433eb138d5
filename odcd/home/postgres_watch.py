"""Restarts the embedded PostgreSQL whenever it is gone."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from odcd.clock import Clock
from odcd.errors import OdcError
from odcd.home.descriptors import ran_out

log = logging.getLogger(__name__)

WATCH_S = 0.5
MAX_BACKOFF_S = 30.0


class WatchedPostgres(Protocol):
    """The server of a home, as the daemon uses it."""

    version: int

    async def watch(self, clock: Clock) -> None:
        """Restart the server whenever it is gone, until cancelled."""
        ...

    def stop(self) -> None: ...


async def watch(
    clock: Clock, look: Callable[[], Awaitable[str | None]], restart: Callable[[], Awaitable[None]]
) -> None:
    """Call restart whenever look finds no server, until cancelled. Wait longer between failures."""
    wait_s = WATCH_S
    while True:
        await clock.sleep(wait_s)
        try:
            status = await look()
            if status is not None:
                # A server in crash recovery may need minutes, and is left alone.
                if status == "ready":
                    wait_s = WATCH_S
                continue
            wait_s = min(MAX_BACKOFF_S, wait_s * 2)
            await restart()
        except OdcError as error:
            wait_s = max(wait_s, WATCH_S * 2)
            log.error(
                "postgres.restart_failed",
                extra={"error": error.message, "hint": error.hint, "next_try_s": wait_s},
            )
        except OSError as error:
            if not ran_out(error):
                raise
            # It is unknown whether the server is gone.
            log.warning("postgres.out_of_descriptors", extra={"error": str(error)})
