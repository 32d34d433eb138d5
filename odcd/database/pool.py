"""Access to PostgreSQL: a pool, single sessions, a listener.

Every call is one statement and therefore one transaction. jsonb is passed as text.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any, Self

import asyncpg

from odcd.clock import Clock, SystemClock
from odcd.database.connections import (
    CONNECT_TIMEOUT_S,
    LISTENER,
    TOOL,
    Isolation,
    Kind,
    close,
    connect,
    connect_alive,
    settings_of,
)
from odcd.database.session import NoWatch, Row, Session, Watch
from odcd.database.slots import Slots
from odcd.database.translation import BROKEN, closed, translate, translate_on
from odcd.errors import DatabaseBusy, DatabaseDown, Unavailable

__all__ = ["Database", "Row", "Session", "Watch", "close", "connect", "translate", "translate_on"]


POOL_SIZE = 8
LISTEN_RETRY_S = 0.5
LISTEN_CHECK_S = 2.0
"""How often the listener checks that PostgreSQL is still reachable."""
ACQUIRE_TIMEOUT_S = 10.0
RELEASE_TIMEOUT_S = 5.0
TRIES = 4
RETRY_AFTER_S = 0.02


class Database:
    """The pool. Use as `async with Database(dsn) as database`, or open() and close()."""

    def __init__(
        self, dsn: str, *, kind: Kind = TOOL, name: str | None = None, size: int = POOL_SIZE,
        watch: Watch | None = None, tagged: bool = False, slots: Slots | None = None,
    ) -> None:  # fmt: skip
        """tagged: each application_name ends with a token, so that a new leader can terminate all
        of these connections. slots: shares the pool among requests."""
        self._dsn = dsn
        self._kind = kind
        self._watch = watch or NoWatch()
        self._own_name = name
        self._size = size
        self._tagged = tagged
        self._slots = slots
        self._pool: asyncpg.Pool | None = None
        self._sessions: set[Session] = set()
        self._listening: set[str] = set()
        self._silent = False
        self.token = secrets.token_hex(6)
        """The end of each application_name if tagged; each cut() creates a new token."""

    @property
    def dsn(self) -> str:
        return self._dsn

    def _name(self, kind: Kind, name: str | None = None) -> str:
        name = name or kind.name
        return f"{name} {self.token}" if self._tagged else name

    async def open(self) -> None:
        self._pool = await self._new_pool(1)

    async def _new_pool(self, min_size: int) -> asyncpg.Pool:
        try:
            return await asyncpg.create_pool(
                self._dsn,
                min_size=min_size,
                max_size=self._size,
                timeout=CONNECT_TIMEOUT_S,
                command_timeout=self._kind.client_s,
                server_settings=settings_of(self._kind, self._name(self._kind, self._own_name)),
                reset=_keep_as_it_is,
                connect=connect_alive,
            )
        except Exception as error:
            raise translate(error) from error

    async def close(self, timeout_s: float = 5.0) -> None:
        """Wait for the statements in progress, up to the timeout."""
        if self._pool is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()
        self._pool = None

    async def cut(self) -> None:
        """End every call and dedicated session at once with DatabaseDown, and use new connections
        from then on. For a PostgreSQL that does not answer."""
        self.token = secrets.token_hex(6)
        for session in list(self._sessions):
            session.terminate()
        if self._pool is not None:
            # The new pool opens connections on demand, so nothing waits here.
            old, self._pool = self._pool, await self._new_pool(0)
            old.terminate()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def fetch(self, query: str, *args: Any, **more: Any) -> list[Row]:
        return await self._call("fetch", query, *args, **more)

    async def fetchrow(self, query: str, *args: Any, **more: Any) -> Any:
        return await self._call("fetchrow", query, *args, **more)

    async def fetchval(self, query: str, *args: Any, **more: Any) -> Any:
        return await self._call("fetchval", query, *args, **more)

    async def execute(self, query: str, *args: Any, **more: Any) -> str:
        return await self._call("execute", query, *args, **more)

    async def _call(self, method: str, *args: Any, **more: Any) -> Any:
        again = self._kind.retried
        for tries_left in reversed(range(TRIES)):
            try:
                async with self._acquire() as session:
                    return await getattr(session, method)(*args, **more)
            except DatabaseBusy as error:
                if not (tries_left and isinstance(error.__cause__, again)):
                    raise
            # The other side of a deadlock must get its lock before this side retries.
            await SystemClock().sleep(RETRY_AFTER_S * (TRIES - tries_left))
        raise AssertionError("the last try returns or raises")

    @asynccontextmanager
    async def _acquire(self) -> AsyncGenerator[Session]:
        async with self._slots.hold() if self._slots is not None else nullcontext():
            pool = self._pool
            if pool is None or self._silent:
                self._watch.database_down()
                why = "does not answer" if self._silent else "is not connected"
                raise DatabaseDown(f"PostgreSQL {why}", "Try again.")
            connection = await self._connection_of(pool)
            try:
                yield Session(connection, self._watch)
            finally:
                # A broken connection may have nothing to release.
                with suppress(OSError, TimeoutError, *BROKEN, asyncpg.PostgresError):
                    await pool.release(connection, timeout=RELEASE_TIMEOUT_S)

    async def _connection_of(self, pool: asyncpg.Pool) -> Any:
        try:
            return await pool.acquire(timeout=ACQUIRE_TIMEOUT_S)
        except BROKEN as error:
            self._watch.database_down()
            raise closed(error) from error
        except TimeoutError as error:
            if pool.get_size() == self._size and not pool.get_idle_size():
                raise DatabaseBusy(
                    f"all {self._size} database connections are in use", "Try again in a moment."
                ) from error
            self._watch.database_down()
            raise translate(error) from error
        except Exception as error:
            self._watch.database_down()
            raise translate(error) from error

    @asynccontextmanager
    async def dedicated(
        self, *, kind: Kind | None = None, name: str | None = None,
        isolation: Isolation = "read committed", limit_s: float | None = None,
    ) -> AsyncGenerator[Session]:  # fmt: skip
        """A connection outside the pool, closed at the end; nothing on it is retried. limit_s: the
        statement_timeout of this connection, on which PostgreSQL plans each statement again."""
        kind = kind or self._kind
        if limit_s is not None:
            kind = kind.limited(limit_s)
        try:
            connection = await connect(
                self._dsn, kind=kind, name=self._name(kind, name), isolation=isolation,
                cached=limit_s is None,
            )  # fmt: skip
        except DatabaseDown:
            self._watch.database_down()
            raise
        session = Session(connection, self._watch)
        self._sessions.add(session)
        try:
            yield session
        finally:
            self._sessions.discard(session)
            await close(connection)

    def listening(self, channel: str) -> bool:
        return channel in self._listening

    async def listen(self, channel: str, callback: Callable[[], None], clock: Clock) -> None:
        """Call callback at every notification, and after each (re)connect for notifications that
        were missed.

        Runs until cancelled. Notifications carry no data, so the callback gets none. If the server
        does not answer the listener, its connections are cut(): requests fail instead of waiting.
        """
        while True:
            try:
                with suppress(Unavailable):
                    await self._listen_once(channel, callback)
            finally:
                self._listening.discard(channel)
            await clock.sleep(LISTEN_RETRY_S)

    async def _listen_once(self, channel: str, callback: Callable[[], None]) -> None:
        name = self._name(LISTENER, f"{LISTENER.name} {channel}")
        connection = await connect(self._dsn, kind=LISTENER, name=name)
        try:
            gone = asyncio.Event()
            connection.add_termination_listener(_calling(gone.set))
            try:
                await connection.add_listener(channel, _calling(callback))
            except Exception as error:
                raise translate_on(connection, error) from error
            self._silent = False
            self._listening.add(channel)
            callback()
            while not gone.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(LISTEN_CHECK_S):
                        await gone.wait()
                # A peer that vanished silently is only detected by talking to it.
                await self._ping(Session(connection))
        finally:
            await close(connection)

    async def _ping(self, session: Session) -> None:
        try:
            await session.fetchval("select 1")
        except DatabaseDown as error:
            if isinstance(error.__cause__, TimeoutError):
                self._silent = True
                await self.cut()
            raise


def _calling(callback: Callable[[], None]) -> Callable[..., None]:
    def call(*_: object) -> None:
        callback()

    return call


async def _keep_as_it_is(_: object) -> None:
    """Do nothing. By default the driver sends RESET ALL after every call. That takes as long as a
    short call, and there is nothing to reset: each call is one statement and sets nothing in its
    session."""
