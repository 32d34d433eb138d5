"""PostgreSQL as the daemon sees it: a pool, single sessions, a listener, its errors as ours.

Every call is one statement and so one transaction. jsonb travels as text.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from time import perf_counter
from typing import Any, Literal, Protocol, Self

import asyncpg

from odcd.clock import Clock, SystemClock
from odcd.errors import BY_CODE, BadRequest, DatabaseDown, PlanStale

Row = asyncpg.Record
Isolation = Literal["read committed", "repeatable read"]

POOL_SIZE = 8
STATEMENT_TIMEOUT_S = 120
CONNECT_TIMEOUT_S = 10
LISTEN_RETRY_S = 0.5
LISTEN_CHECK_S = 15.0
ACQUIRE_TIMEOUT_S = 30
TRIES = 4
RETRY_AFTER_S = 0.02
# After these everything was rolled back, so the statement may run again.
ROLLED_BACK = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)

# What the driver raises of a connection that is gone, and of mistakes of ours.
BROKEN = (asyncpg.InterfaceError, asyncpg.InternalClientError)

# SQLSTATE classes of a server that is away, going, coming, full or not ours to use.
DOWN_CLASSES = frozenset({"08", "53", "58"})
DOWN_STATES = frozenset({"57P01", "57P02", "57P03", "57P04", "57014", "25006", "3D000", "XX001"})
LOGIN_CLASS = "28"
OUT_OF_TIME = "57014"
SAY_SO_S = 2.0
"""How long a server that ends a statement itself may take to say so."""
# Text that PostgreSQL cannot keep: a NUL, or what is not UTF-8.
TEXT_STATES = frozenset({"22021", "22P05"})


class Watch(Protocol):
    """Who is told how the database answers."""

    def queried(self, operation: str, seconds: float) -> None: ...
    def database_down(self) -> None: ...


class _Nobody:
    def queried(self, operation: str, seconds: float) -> None: ...
    def database_down(self) -> None: ...


async def connect(
    dsn: str, *, name: str = "odcd", isolation: Isolation = "read committed",
    timeout_s: float | None = STATEMENT_TIMEOUT_S, most_s: float | None = None,
) -> asyncpg.Connection:  # fmt: skip
    """One connection with the daemon's settings. most_s: the server itself ends statements that
    take longer, and plans each anew. Raises DatabaseDown."""
    settings = _settings(name, isolation)
    more: dict[str, Any] = {}
    if most_s is not None:
        settings["statement_timeout"] = str(round(most_s * 1000))
        timeout_s = most_s + SAY_SO_S
        more["statement_cache_size"] = 0
    try:
        return await asyncpg.connect(
            dsn,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=timeout_s,
            server_settings=settings,
            **more,
        )
    except Exception as error:
        raise translate(error) from error


def _settings(name: str, isolation: Isolation = "read committed") -> dict[str, str]:
    return {
        "application_name": name,
        "search_path": "odc, pg_temp",
        "timezone": "UTC",
        "default_transaction_isolation": isolation,
        # Many short statements over small tables: planning must cost nothing, workers none.
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "plan_cache_mode": "force_generic_plan",
    }


def translate(error: BaseException) -> BaseException:
    """The OdcError of what the driver raised; anything unforeseen comes back as it is."""
    if isinstance(error, asyncpg.PostgresError):
        return _of_server(error)
    if isinstance(error, (OSError, TimeoutError)):
        return DatabaseDown(
            f"PostgreSQL cannot be reached: {error or type(error).__name__}",
            "Nothing was lost; try again. `odcd doctor` looks at the PostgreSQL of a home; try one "
            "of your own with `psql DSN`.",
        )
    return error


def translate_on(connection: Any, error: Exception) -> BaseException:
    """translate() of what a call on this connection raised, which may have ended under it."""
    if isinstance(error, BROKEN) and connection.is_closed():
        return _closed(error)
    return translate(error)


def _closed(error: Exception) -> DatabaseDown:
    return DatabaseDown(f"the connection to PostgreSQL is gone: {error}", "Try again.")


def _of_server(error: asyncpg.PostgresError) -> BaseException:
    state: str = getattr(error, "sqlstate", None) or ""
    message: str = getattr(error, "message", None) or str(error)
    hint: str | None = getattr(error, "hint", None)
    if state in BY_CODE:
        return BY_CODE[state](message, hint)
    if state == "53100":
        return DatabaseDown(
            f"the database has no disk space left: {message}",
            "Nothing accepted was lost. Free space for the data folder; odcd goes on by itself.",
        )
    if state in DOWN_STATES or state[:2] in DOWN_CLASSES:
        return DatabaseDown(f"PostgreSQL cannot serve: {message}", hint or "Try again.")
    if state[:2] == LOGIN_CLASS:
        return DatabaseDown(
            f"PostgreSQL refuses the login: {message}", "Check user and password in --dsn."
        )
    if isinstance(error, ROLLED_BACK):
        return PlanStale(f"another change came first: {message}", "Try again.")
    if state in TEXT_STATES:
        return BadRequest(
            f"a text cannot be kept: {message}", "Texts are UTF-8 without NUL characters."
        )
    return error


class Session:
    """One connection, for who needs to keep a backend (the leader) or an isolation level."""

    def __init__(self, connection: Any, watch: Watch | None = None) -> None:
        self._connection = connection
        self._watch = watch or _Nobody()

    @property
    def backend_pid(self) -> int:
        return self._connection.get_server_pid()

    @property
    def closed(self) -> bool:
        return self._connection.is_closed()

    async def fetch(self, query: str, *args: Any) -> list[Row]:
        return await self._call(self._connection.fetch, query, *args)

    async def fetchrow(self, query: str, *args: Any) -> Row | None:
        return await self._call(self._connection.fetchrow, query, *args)

    async def fetchval(self, query: str, *args: Any) -> Any:
        return await self._call(self._connection.fetchval, query, *args)

    async def execute(self, query: str, *args: Any) -> str:
        return await self._call(self._connection.execute, query, *args)

    async def _call(self, method: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        begun = perf_counter()
        try:
            answer = await method(*args)
        except Exception as error:
            told = translate_on(self._connection, error)
            if isinstance(told, DatabaseDown) and _state(error) != OUT_OF_TIME:
                self._watch.database_down()
            else:
                self._watch.queried(_operation(args[0]), perf_counter() - begun)
            raise told from error
        self._watch.queried(_operation(args[0]), perf_counter() - begun)
        return answer


def _state(error: BaseException) -> str | None:
    return getattr(error, "sqlstate", None)


@lru_cache(maxsize=1024)
def _operation(query: str) -> str:
    """The function of ours that a statement calls: there are as many as have a file."""
    called = re.search(r"\bodc\.(\w+)\s*\(", query)
    return called[1] if called else "other"


class Database:
    """The pool. Use as `async with Database(dsn) as database`, or open() and close()."""

    def __init__(
        self, dsn: str, *, name: str = "odcd", size: int = POOL_SIZE, watch: Watch | None = None
    ) -> None:
        self._dsn = dsn
        self._watch = watch or _Nobody()
        self._name = name
        self._size = size
        self._pool: asyncpg.Pool | None = None
        self._listening: set[str] = set()

    @property
    def dsn(self) -> str:
        return self._dsn

    async def open(self) -> None:
        try:
            self._pool = await asyncpg.create_pool(
                self._dsn,
                min_size=1,
                max_size=self._size,
                timeout=CONNECT_TIMEOUT_S,
                command_timeout=STATEMENT_TIMEOUT_S,
                server_settings=_settings(self._name),
                reset=_keep_as_it_is,
            )
        except Exception as error:
            raise translate(error) from error

    async def close(self, timeout_s: float = 5.0) -> None:
        """Wait for the statements under way, but not for ever."""
        if self._pool is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()
        self._pool = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def fetch(self, query: str, *args: Any) -> list[Row]:
        return await self._call("fetch", query, *args)

    async def fetchrow(self, query: str, *args: Any) -> Any:
        return await self._call("fetchrow", query, *args)

    async def fetchval(self, query: str, *args: Any) -> Any:
        return await self._call("fetchval", query, *args)

    async def execute(self, query: str, *args: Any) -> str:
        return await self._call("execute", query, *args)

    async def _call(self, method: str, *args: Any) -> Any:
        for tries_left in reversed(range(TRIES)):
            try:
                async with self._acquire() as session:
                    return await getattr(session, method)(*args)
            except PlanStale as error:
                if not (tries_left and isinstance(error.__cause__, ROLLED_BACK)):
                    raise
            # The other side of a deadlock must get its lock before this one asks for it again.
            await SystemClock().sleep(RETRY_AFTER_S * (TRIES - tries_left))
        raise AssertionError("the last try returns or raises")

    @asynccontextmanager
    async def _acquire(self) -> AsyncGenerator[Session]:
        if self._pool is None:
            self._watch.database_down()
            raise DatabaseDown("the pool of database connections is closed", "Try again.")
        try:
            connection = await self._pool.acquire(timeout=ACQUIRE_TIMEOUT_S)
        except BROKEN as error:
            self._watch.database_down()
            raise _closed(error) from error
        except Exception as error:
            self._watch.database_down()
            raise translate(error) from error
        try:
            yield Session(connection, self._watch)
        finally:
            # Of a connection that broke there may be nothing left to give back.
            with suppress(OSError, *BROKEN, asyncpg.PostgresError):
                await self._pool.release(connection)

    @asynccontextmanager
    async def dedicated(
        self, *, name: str | None = None, isolation: Isolation = "read committed",
        most_s: float | None = None,
    ) -> AsyncGenerator[Session]:  # fmt: skip
        """A connection outside the pool, closed at the end; nothing on it is retried. most_s: as
        connect has it."""
        try:
            connection = await connect(
                self._dsn, name=name or self._name, isolation=isolation, most_s=most_s
            )
        except DatabaseDown:
            self._watch.database_down()
            raise
        try:
            yield Session(connection, self._watch)
        finally:
            await close(connection)

    def listening(self, channel: str) -> bool:
        return channel in self._listening

    async def listen(self, channel: str, callback: Callable[[], None], clock: Clock) -> None:
        """Call callback at every notification, and after each (re)connect for those missed.

        Runs until cancelled. Notifications carry nothing, so none is handed on.
        """
        while True:
            try:
                with suppress(DatabaseDown):
                    await self._listen_once(channel, callback)
            finally:
                self._listening.discard(channel)
            await clock.sleep(LISTEN_RETRY_S)

    async def _listen_once(self, channel: str, callback: Callable[[], None]) -> None:
        connection = await connect(self._dsn, name=f"{self._name} listen {channel}")
        try:
            gone = asyncio.Event()
            connection.add_termination_listener(_calling(gone.set))
            try:
                await connection.add_listener(channel, _calling(callback))
            except Exception as error:
                raise translate_on(connection, error) from error
            self._listening.add(channel)
            callback()
            while not gone.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(LISTEN_CHECK_S):
                        await gone.wait()
                # A peer that vanished without a word is only found by talking to it.
                await Session(connection).fetchval("select 1")
        finally:
            await close(connection)


def _calling(callback: Callable[[], None]) -> Callable[..., None]:
    def call(*_: object) -> None:
        callback()

    return call


async def _keep_as_it_is(_: object) -> None:
    """The driver would send RESET ALL after every call: as long as a short call itself takes, and
    nothing to undo, because each is one statement and none sets anything in its session."""


async def close(connection: asyncpg.Connection) -> None:
    """Say goodbye if the server listens; else just hang up."""
    try:
        await connection.close(timeout=2.0)
    except (OSError, TimeoutError, *BROKEN, asyncpg.PostgresError):
        connection.terminate()
