"""One database connection, whose calls are timed and whose errors are translated."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from time import perf_counter
from typing import Any, Protocol

import asyncpg

from odcd.database.translation import translate_on
from odcd.errors import DatabaseDown

Row = asyncpg.Record


class Watch(Protocol):
    """Receives the timings and failures of database calls."""

    def queried(self, operation: str, seconds: float) -> None: ...
    def database_down(self) -> None: ...


class NoWatch:
    def queried(self, operation: str, seconds: float) -> None: ...
    def database_down(self) -> None: ...


class Session:
    """One connection, for callers that must keep a backend (the leader) or an isolation level."""

    def __init__(self, connection: Any, watch: Watch | None = None) -> None:
        self._connection = connection
        self._watch = watch or NoWatch()

    @property
    def backend_pid(self) -> int:
        return self._connection.get_server_pid()

    @property
    def closed(self) -> bool:
        return self._connection.is_closed()

    def terminate(self) -> None:
        """Close the connection without notifying the server."""
        self._connection.terminate()

    async def fetch(self, query: str, *args: Any, **more: Any) -> list[Row]:
        return await self._call(self._connection.fetch, query, *args, **more)

    async def fetchrow(self, query: str, *args: Any, **more: Any) -> Row | None:
        return await self._call(self._connection.fetchrow, query, *args, **more)

    async def fetchval(self, query: str, *args: Any, **more: Any) -> Any:
        return await self._call(self._connection.fetchval, query, *args, **more)

    async def execute(self, query: str, *args: Any, **more: Any) -> str:
        return await self._call(self._connection.execute, query, *args, **more)

    async def _call(self, method: Callable[..., Awaitable[Any]], *args: Any, **more: Any) -> Any:
        begun = perf_counter()
        try:
            answer = await method(*args, **more)
        except Exception as error:
            if isinstance(error, TimeoutError):
                # PostgreSQL's own timeout is shorter, so the server does not answer.
                self.terminate()
            translated = translate_on(self._connection, error)
            if isinstance(translated, DatabaseDown):
                self._watch.database_down()
            else:
                self._watch.queried(_operation(args[0]), perf_counter() - begun)
            raise translated from error
        self._watch.queried(_operation(args[0]), perf_counter() - begun)
        return answer


@lru_cache(maxsize=1024)
def _operation(query: str) -> str:
    """The odc function that a statement calls: there are only as many values as sql files."""
    called = re.search(r"\bodc\.(\w+)\s*\(", query)
    return called[1] if called else "other"
