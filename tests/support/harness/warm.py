"""Kept between tests: an event loop, and connections whose backends know the functions.

A new backend compiles every function at its first call, which takes it ten times what the calls of
a short test take.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from typing import Any, TypeVar

from odcd.database.pool import Database

T = TypeVar("T")

PATIENCE_S = 5.0


class _Kept:
    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.databases: dict[str, Database] = {}


_kept: list[_Kept] = []


def run(work: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run(), on the loop that stays; remaining tasks are cancelled."""

    async def whole() -> T:
        try:
            return await work
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    if not _kept:
        _kept.append(_Kept())
    return _kept[0].runner.run(whole(), context=contextvars.copy_context())


def cool() -> None:
    """Close everything that was kept."""
    while _kept:
        kept = _kept.pop()
        for database in kept.databases.values():
            kept.runner.run(Database.close(database))
        kept.runner.close()


class WarmDatabase(Database):
    """A pool that stays open when it is closed, for the next pool of this DSN. Use it only within
    run(). Call cool() before the database is dropped."""

    async def open(self) -> None:
        kept = _kept[0].databases.pop(self.dsn, None)
        if kept is None:
            await super().open()
        else:
            self._pool = kept._pool

    async def close(self, timeout_s: float = PATIENCE_S) -> None:
        pool = self._pool
        if pool is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                while pool.get_idle_size() < pool.get_size():
                    await asyncio.sleep(0.001)
        except TimeoutError:
            await super().close(timeout_s=0.1)
            return
        kept = Database(self.dsn)
        kept._pool, self._pool = pool, None
        if previous := _kept[0].databases.pop(self.dsn, None):
            await previous.close()
        _kept[0].databases[self.dsn] = kept
