"""The database as the daemon sees it: settings, errors as odc's classes, a listener that
reconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs

import asyncpg
import pytest

from odcd.clock import SystemClock
from odcd.database import schema
from odcd.database.pool import Database
from odcd.errors import (
    BadRequest,
    DatabaseBusy,
    DatabaseDown,
    LeadershipLost,
    PlanStale,
    UnknownPartition,
)
from tests.support.harness.database import Sql

RAISE = """
    create function public.raise_it(p_code text) returns void language plpgsql as $$
    begin
        raise exception using errcode = p_code, message = 'what and why', hint = 'Do this.';
    end $$
"""


def with_database(dsn: str, work: Callable[[Database], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Database(dsn, size=2) as database:
            await work(database)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("code", "error"),
    [("OD001", UnknownPartition), ("OD020", LeadershipLost), ("OD003", PlanStale)],
)
def test_an_od_code_comes_back_as_its_class_with_message_and_hint(
    empty_database_url: str, code: str, error: type[Exception]
) -> None:
    async def work(database: Database) -> None:
        await database.execute(RAISE)
        with pytest.raises(error) as caught:
            await database.fetchval("select public.raise_it($1)", code)
        assert caught.value.message == "what and why"  # type: ignore[attr-defined]
        assert caught.value.hint == "Do this."  # type: ignore[attr-defined]

    with_database(empty_database_url, work)


@pytest.mark.parametrize("code", ["53100", "57P01", "57P03", "08006", "58030", "25006"])
def test_a_server_in_trouble_is_database_down(empty_database_url: str, code: str) -> None:
    async def work(database: Database) -> None:
        await database.execute(RAISE)
        with pytest.raises(DatabaseDown):
            await database.fetchval("select public.raise_it($1)", code)

    with_database(empty_database_url, work)


def test_no_server_is_database_down(tmp_path: object) -> None:
    async def run() -> None:
        with pytest.raises(DatabaseDown):
            await Database(f"postgresql://odc@/odc?host={tmp_path}").open()

    asyncio.run(run())


def test_a_server_that_stops_between_two_steps_of_a_call_is_database_down(
    database_url: str, tmp_path: Path
) -> None:
    last_word = b"SFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0"
    packet = b"E" + (len(last_word) + 4).to_bytes(4, "big") + last_word
    server = parse_qs(database_url.partition("?")[2])["host"][0] + "/.s.PGSQL.5432"
    dying = False

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dying
        from_server, to_server = await asyncio.open_unix_connection(server)

        async def answer() -> None:
            while data := await from_server.read(65536):
                writer.write(data + (packet if dying else b""))
            writer.close()

        answering = asyncio.create_task(answer())
        while data := await reader.read(65536):
            dying = dying or b"select" in data
            to_server.write(data)
        to_server.close()
        await answering

    async def run() -> None:
        nonlocal dying
        async with await asyncio.start_unix_server(relay, tmp_path / ".s.PGSQL.5432"):
            dsn = database_url.partition("?")[0] + f"?host={tmp_path}"
            with pytest.raises(DatabaseDown):
                await schema.install(dsn, SystemClock())
            dying = False
            async with Database(dsn, size=1) as database:
                with pytest.raises(DatabaseDown):
                    await database.fetch("select $1::integer + 1", 1)

    asyncio.run(run())


def test_an_unforeseen_error_stays_as_it_is(empty_database_url: str) -> None:
    async def work(database: Database) -> None:
        with pytest.raises(asyncpg.UndefinedTableError):
            await database.fetch("select * from nowhere")
        with pytest.raises(asyncpg.DataError):
            await database.fetch("select $1::integer", "seven")

    with_database(empty_database_url, work)


def test_a_nul_character_is_the_callers_mistake(empty_database_url: str) -> None:
    async def work(database: Database) -> None:
        with pytest.raises(BadRequest):
            await database.fetchval("select $1::text", "a\0b")
        with pytest.raises(BadRequest):
            await database.fetchval("select ($1::jsonb) ->> 'a'", '{"a": "\\u0000"}')

    with_database(empty_database_url, work)


def test_sessions_have_the_schedulers_settings(empty_database_url: str) -> None:
    expected = {
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "plan_cache_mode": "force_generic_plan",
        "application_name": "odcd",
        "TimeZone": "UTC",
        "search_path": "odc, pg_temp",
    }

    async def work(database: Database) -> None:
        for name, value in expected.items():
            assert await database.fetchval("select current_setting($1)", name) == value

    with_database(empty_database_url, work)


def test_json_goes_in_and_out_as_text(empty_database_url: str) -> None:
    async def work(database: Database) -> None:
        assert await database.fetchval("select $1::jsonb", '{"a": 1}') == '{"a": 1}'

    with_database(empty_database_url, work)


def test_a_deadlock_is_tried_again(empty_database_url: str) -> None:
    """Two statements that lock two rows in opposite order both succeed."""

    async def work(database: Database) -> None:
        await database.execute("create table public.thing (id int primary key, n int default 0)")
        await database.execute("insert into public.thing values (1), (2)")
        await database.execute(
            """
            create function public.touch_both(p_first int, p_second int) returns void
            language plpgsql set deadlock_timeout = '20ms' as $$
            begin
                update public.thing set n = n + 1 where id = p_first;
                perform pg_sleep(0.1);
                update public.thing set n = n + 1 where id = p_second;
            end $$
            """
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(database.execute("select public.touch_both(1, 2)"))
            group.create_task(database.execute("select public.touch_both(2, 1)"))
        rows = await database.fetch("select n from public.thing order by id")
        assert [row["n"] for row in rows] == [2, 2]

    with_database(empty_database_url, work)


def test_a_dedicated_session_reports_a_conflict_instead_of_hiding_it(
    empty_database_url: str,
) -> None:
    async def work(database: Database) -> None:
        await database.execute("create table public.thing (n int)")
        await database.execute("insert into public.thing values (0)")
        async with database.dedicated(isolation="repeatable read") as session:
            await session.execute("begin")
            await session.fetchval("select n from public.thing")
            await database.execute("update public.thing set n = 1")
            with pytest.raises(DatabaseBusy):
                await session.execute("update public.thing set n = 2")

    with_database(empty_database_url, work)


def test_a_killed_backend_is_database_down_and_the_pool_goes_on(empty_database_url: str) -> None:
    async def work(database: Database) -> None:
        with pytest.raises(DatabaseDown):
            await database.execute("select pg_terminate_backend(pg_backend_pid())")
        assert await database.fetchval("select 1") == 1

    with_database(empty_database_url, work)


def test_a_listener_reconnects_after_its_connection_was_killed(
    empty_database_url: str,
) -> None:
    async def work(database: Database) -> None:
        heard: asyncio.Queue[None] = asyncio.Queue()
        listening = asyncio.create_task(
            database.listen("odc", lambda: heard.put_nowait(None), SystemClock())
        )
        await heard.get()  # once at its start, because of missed notifications
        assert database.listening("odc")
        await database.execute("notify odc")
        await heard.get()
        killed = await database.fetchval(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity "
            "where application_name = 'odcd listen odc' and datname = current_database()"
        )
        assert killed == 1
        await heard.get()
        await database.execute("notify odc")
        await heard.get()
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening
        assert not database.listening("odc")

    with_database(empty_database_url, work)


def test_a_plain_session_undoes_only_the_refused_statement(sql: Sql) -> None:
    sql.execute("insert into odc.account (name) values ('kept')")
    with pytest.raises(asyncpg.UniqueViolationError):
        sql.execute("insert into odc.account (name) values ('kept')")
    assert sql.value("select count(*) from odc.account where name = 'kept'") == 1
