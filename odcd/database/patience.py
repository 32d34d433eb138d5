"""Change tables that are in use: wait briefly for strong locks, give way, and try again.

A statement that waits for a strong lock makes every later statement on that table wait behind it.
So no step waits longer than the lock timeout, and other sessions continue between two tries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC
from typing import Any, TypeVar

import asyncpg

from odcd.clock import Clock
from odcd.database.pool import close, connect
from odcd.errors import DatabaseDown

log = logging.getLogger(__name__)

T = TypeVar("T")

LOCK_TIMEOUT_S = 3.0
GIVE_UP_S = 300.0
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 10.0
LOOK_EVERY_S = 0.5

# After these errors the step was rolled back, so it may run again.
IN_THE_WAY = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)

BLOCKERS = """
    select coalesce(nullif(a.application_name, ''), 'a session without a name') as name, a.pid,
           a.usename as login, a.state, coalesce(a.xact_start, a.query_start) as since
      from unnest(pg_blocking_pids($1)) as b (pid)
      join pg_stat_activity as a on a.pid = b.pid
     order by since, a.pid
"""


class Patience:
    """Runs the steps of one connection, each until it gets its locks or the time is up."""

    def __init__(
        self, dsn: str, connection: asyncpg.Connection, clock: Clock,
        lock_timeout_s: float = LOCK_TIMEOUT_S, give_up_s: float = GIVE_UP_S,
    ) -> None:  # fmt: skip
        self._dsn = dsn
        self._db = connection
        self._clock = clock
        self._lock_timeout_s = lock_timeout_s
        self._give_up_s = give_up_s
        self._blockers: list[str] = []

    async def run(
        self, step: str, work: Callable[[], Coroutine[Any, Any, T]], *, queues: bool = True
    ) -> T:
        """Call work until it gets its locks. It must undo its changes when it fails.

        queues: other sessions would wait behind it; if False, the step waits without a timeout.
        Raises DatabaseDown, naming the blocking sessions, when that takes too long.
        """
        begun = self._clock.monotonic()
        pause_s = FIRST_PAUSE_S
        while True:
            self._blockers = []
            try:
                return await self._try(step, work, queues)
            except Exception as error:
                if not _in_the_way(error):
                    raise
                waited_s = self._clock.monotonic() - begun
                if waited_s + pause_s > self._give_up_s:
                    raise self._gave_up(step, waited_s) from error
                log.warning(
                    "schema.blocked",
                    extra={
                        "step": step, "waited_s": round(waited_s, 1), "by": self._blockers,
                        "next_try_s": pause_s,
                    },
                )  # fmt: skip
            await self._clock.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _try(self, step: str, work: Callable[[], Coroutine[Any, Any, T]], queues: bool) -> T:
        timeout_s = self._lock_timeout_s if queues else 0.0
        await self._set_timeout(timeout_s)
        trying = asyncio.create_task(work(), name=step)
        watching = asyncio.create_task(self._watch(), name=f"{step}: blockers")
        try:
            return await trying
        finally:
            for task in (trying, watching):
                task.cancel()
            await asyncio.wait((trying, watching))
            if not self._db.is_closed():
                await self._set_timeout(0.0)

    async def _set_timeout(self, seconds: float) -> None:
        await self._db.execute(f"set lock_timeout = {round(seconds * 1000)}")

    async def _watch(self) -> None:
        """Record the blocking sessions while the step waits: after it fails, they can no longer be
        queried."""
        pid = self._db.get_server_pid()
        await self._clock.sleep(LOOK_EVERY_S)
        with suppress(DatabaseDown, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            watcher = await connect(self._dsn, name="odc install watch")
            try:
                while True:
                    found = [_describe(row) for row in await watcher.fetch(BLOCKERS, pid)]
                    self._blockers = found or self._blockers
                    await self._clock.sleep(LOOK_EVERY_S)
            finally:
                await close(watcher)

    def _gave_up(self, step: str, waited_s: float) -> DatabaseDown:
        by = "; ".join(self._blockers) or "sessions that have ended"
        return DatabaseDown(
            f"{step} did not get its locks within {waited_s:.0f} s: blocked by {by}",
            "Wait for that session or end it (`select pg_terminate_backend(PID)`), then try "
            "again. The steps before this one are done and will not run again.",
        )


def _describe(row: asyncpg.Record) -> str:
    since = row["since"].astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if row["since"] else "?"
    return (
        f"{row['name']} (process {row['pid']}, user {row['login']}, {row['state']}, since {since})"
    )


def _in_the_way(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, IN_THE_WAY):
            return True
        error = error.__cause__
    return False


async def at_once(
    step: str, work: Callable[[], Coroutine[Any, Any, T]], *, queues: bool = True
) -> T:
    """Like Patience.run, without retries, in the caller's transaction."""
    return await work()
