"""A key that ends while the page creates a session or ticket from it, on two connections."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from odcd.database.pool import connect
from tests.support.builders.jobs import NOW
from tests.support.harness.races import until_it_waits

KEEP = "select odc.keep_api_key('key', 'ann', 5001, 5001, $1, $2)"
TICKET = "select odc.make_page_ticket($3, 'p', 'ann', 5001, 5001, 'key', $1, $2)"
SESSION = "select odc.begin_page_session('ticket', 'session', 'p', $1, $2)"
LOG_OUT = "select odc.end_api_key('key', $1)"
ALL = """select odc.end_user_keys('{"user": "root", "operator": true}', 'ann', $1)"""
TIMES = (NOW, NOW + timedelta(hours=1))


def test_nothing_is_created_from_a_key_that_ends_at_the_same_time(database_url: str) -> None:
    async def race(first: asyncpg.Connection, second: asyncpg.Connection, waits: Any) -> None:
        async with first.transaction():
            await first.execute(LOG_OUT, NOW)
            made = asyncio.create_task(second.fetchval(TICKET, *TIMES, "late"))
            await waits()
        assert await made is False

    _meet(database_url, race)


@pytest.mark.parametrize("end", [LOG_OUT, ALL])
@pytest.mark.parametrize("make", [TICKET, SESSION])
def test_a_session_being_created_ends_with_its_key(database_url: str, make: str, end: str) -> None:
    async def race(first: asyncpg.Connection, second: asyncpg.Connection, waits: Any) -> None:
        async with first.transaction():
            more = ("new",) if make is TICKET else ()
            assert await first.fetchval(make, *TIMES, *more)
            ended = asyncio.create_task(second.fetchval(end, NOW))
            await waits()
        assert await ended
        assert await first.fetch("select digest from odc.api_key where active") == []

    _meet(database_url, race)


def _meet(url: str, race: Any) -> None:
    """Run the race after a key and its ticket were created."""

    async def run() -> None:
        connections = [await connect(url) for _ in range(3)]
        first, second, watcher = connections
        await first.execute(KEEP, *TIMES)
        assert await first.fetchval(TICKET, *TIMES, "ticket")
        try:
            async with asyncio.timeout(60):
                await race(first, second, lambda: until_it_waits(watcher, second.get_server_pid()))
        finally:
            for connection in connections:
                await connection.close()

    asyncio.run(run())
