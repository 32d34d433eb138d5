"""Each kind of connection has its limits, and a silent PostgreSQL is noticed."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from odcd.clock import SystemClock
from odcd.database.connections import (
    API,
    BEAT,
    FORECASTER,
    KINDS,
    LEADER,
    LISTENER,
    METRICS,
    PASS,
    Kind,
    check_direct,
    close,
    connect,
    connect_alive,
    keep_alive,
    settings_of,
)
from odcd.database.pool import Database
from odcd.database.slots import Slots, ask_as
from odcd.errors import DatabaseBusy, DatabaseDown, OdcError, TooManyRequests
from tests.support.harness.relay import Relay

PATIENCE_S = 60


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await work()

    asyncio.run(limited())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_kind_of_connection_has_its_limits(empty_database_url: str, kind: Kind) -> None:
    async def work() -> None:
        async with Database(empty_database_url, kind=kind, size=1) as database:
            for name, seconds in (
                ("statement_timeout", kind.statement_s),
                ("lock_timeout", kind.lock_s),
                ("idle_in_transaction_session_timeout", kind.idle_s),
            ):
                shown = await database.fetchval(
                    "select setting::integer from pg_settings where name = $1", name
                )
                assert shown == (seconds or 0) * 1000, name

    run(work)


@pytest.mark.parametrize("kind", [API, LEADER, PASS, BEAT, FORECASTER, METRICS, LISTENER])
def test_no_wait_of_the_daemon_is_without_a_limit(kind: Kind) -> None:
    assert kind.statement_s
    assert kind.lock_s
    assert kind.idle_s
    assert kind.silent_s
    assert kind.client_s is not None
    assert kind.client_s > kind.statement_s


def test_the_heartbeat_waits_at_most_five_seconds() -> None:
    assert BEAT.client_s == 5


def test_a_wait_for_a_lock_ends_and_changes_nothing(empty_database_url: str) -> None:
    kind = Kind(name="odcd", statement_s=30, lock_s=0.1)

    async def work() -> None:
        async with (
            Database(empty_database_url, kind=kind, size=1) as database,
            database.dedicated() as other,
        ):
            await database.execute("create table public.thing (n int)")
            await database.execute("insert into public.thing values (1)")
            await other.execute("begin; lock table public.thing in access exclusive mode")
            with pytest.raises(DatabaseBusy, match="lock timeout"):
                await database.execute("update public.thing set n = 2")
            await other.execute("rollback")
            assert await database.fetchval("select n from public.thing") == 1

    run(work)


def test_a_statement_that_takes_too_long_ends_and_changes_nothing(empty_database_url: str) -> None:
    kind = Kind(name="odcd", statement_s=0.2, lock_s=0.1)

    async def work() -> None:
        async with Database(empty_database_url, kind=kind, size=1) as database:
            await database.execute("create table public.thing (n int)")
            with pytest.raises(DatabaseBusy, match="statement timeout"):
                await database.execute("insert into public.thing select 1 from pg_sleep(60)")
            assert await database.fetchval("select count(*) from public.thing") == 0

    run(work)


class Tries:
    """Counts the statements that PostgreSQL answered, refusals included."""

    def __init__(self) -> None:
        self.count = 0

    def queried(self, operation: str, seconds: float) -> None:
        self.count += 1

    def database_down(self) -> None: ...


def test_the_leaders_loops_wait_again_for_a_lock(empty_database_url: str) -> None:
    kind = Kind(name="odcd", statement_s=30, lock_s=0.05, retried=LEADER.retried)
    tries = Tries()

    async def work() -> None:
        async with (
            Database(empty_database_url, kind=kind, size=1, watch=tries) as database,
            Database(empty_database_url, size=1) as beside,
            beside.dedicated() as other,
        ):
            await beside.execute("create table public.thing (n int)")
            await other.execute("begin; lock table public.thing in access exclusive mode")
            waits = asyncio.create_task(database.fetchval("select count(*) from public.thing"))
            while not tries.count:
                await asyncio.sleep(0.001)
            await other.execute("rollback")
            assert await waits == 0

    run(work)


@pytest.mark.long
def test_a_silent_primary_is_noticed_by_requests_within_ten_seconds(database_url: str) -> None:
    """The relay passes nothing on and resets nothing, like a host without power."""

    async def work() -> None:
        with Relay(database_url) as relay:
            async with Database(relay.dsn, kind=API, tagged=True) as database:
                listening = asyncio.create_task(database.listen("odc", lambda: None, SystemClock()))
                while not database.listening("odc"):
                    await asyncio.sleep(0.01)
                assert await database.fetchval("select 1") == 1
                relay.cut()
                since = time.monotonic()
                calls = [asyncio.create_task(database.fetchval("select 1")) for _ in range(20)]
                errors = await asyncio.gather(*calls, return_exceptions=True)
                took_s = time.monotonic() - since
                assert {type(error) for error in errors} == {DatabaseDown}
                # Within 10 s; a busy machine is given a little more.
                assert took_s < 20
                assert not database.listening("odc")
                since = time.monotonic()
                with pytest.raises(DatabaseDown):
                    await database.fetchval("select 1")
                assert time.monotonic() - since < 2
                relay.mend()
                while not database.listening("odc"):
                    await asyncio.sleep(0.01)
                assert await database.fetchval("select 1") == 1
                listening.cancel()
                await asyncio.wait([listening])

    run(work)


def test_a_tcp_connection_notices_a_peer_that_is_gone(database_url: str) -> None:
    query = parse_qs(urlsplit(database_url).query)
    server = f"{query['host'][0]}/.s.PGSQL.{query.get('port', ['5432'])[0]}"

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(server)
        await asyncio.gather(forward(reader, to_server), forward(from_server, writer))

    async def work() -> None:
        listener = await asyncio.start_server(relay, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        name = urlsplit(database_url).path
        connection = await connect(f"postgresql://odc@127.0.0.1:{port}{name}?sslmode=disable",
                                   kind=API)  # fmt: skip
        used = connection._transport.get_extra_info("socket")
        assert used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        found = [
            used.getsockopt(socket.IPPROTO_TCP, option)
            for option in (
                socket.TCP_KEEPIDLE,
                socket.TCP_KEEPINTVL,
                socket.TCP_KEEPCNT,
                socket.TCP_USER_TIMEOUT,
            )
        ]
        assert found == [4, 2, 2, 8000]
        await close(connection)
        listener.close()

    run(work)


def test_postgresql_sends_keepalives_too() -> None:
    sent = settings_of(API, "odcd")
    assert {name: sent[name] for name in sent if name.startswith("tcp_")} == {
        "tcp_keepalives_idle": "4",
        "tcp_keepalives_interval": "2",
        "tcp_keepalives_count": "2",
        "tcp_user_timeout": "8000",
    }


def test_a_direct_connection_passes_the_check_for_poolers(database_url: str) -> None:
    run(lambda: check_direct(database_url))


def test_a_pooler_that_drops_settings_is_refused(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PgBouncer with ignore_startup_parameters drops them silently."""

    def dropped(kind: Kind, name: str, isolation: str = "") -> dict[str, str]:
        settings = settings_of(kind, name)
        # The settings that PgBouncer passes on.
        return {key: settings[key] for key in ("application_name", "timezone")}

    async def connect_through(*args: Any, **more: Any) -> Any:
        more["server_settings"] = dropped(API, "odcd check")
        return await connect_alive(*args, **more)

    monkeypatch.setattr("odcd.database.connections.connect_alive", connect_through)

    async def work() -> None:
        with pytest.raises(OdcError, match="drops the connections' settings") as caught:
            await check_direct(database_url)
        assert "connection-poolers.md" in str(caught.value.hint)

    run(work)


def test_a_pooler_that_shares_one_backend_is_refused(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(connection: Any) -> tuple[str, int]:
        return settings_of(API, "")["lock_timeout"], 1

    monkeypatch.setattr("odcd.database.connections._ask", ask)

    async def work() -> None:
        with pytest.raises(OdcError, match="as in transaction mode"):
            await check_direct(database_url)

    run(work)


def test_a_unix_socket_is_left_as_it_is(database_url: str) -> None:
    async def work() -> None:
        connection = await connect(database_url)
        keep_alive(connection, 8000)
        await close(connection)

    run(work)


# -- requests share the connections ----------------------------------------------------------------


async def _hold(slots: Slots, user: str, endpoint: str, go: asyncio.Event) -> None:
    ask_as(user, endpoint)
    async with slots.hold():
        await go.wait()


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_single_user_cannot_use_every_connection() -> None:
    async def work() -> None:
        slots, go, free = Slots(patience_s=0.1), asyncio.Event(), asyncio.Event()
        free.set()
        tasks = [asyncio.create_task(_hold(slots, "ann", "/v1/jobs", go)) for _ in range(4)]
        await _settle()
        with pytest.raises(TooManyRequests, match="user ann has too many requests"):
            await asyncio.create_task(_hold(slots, "ann", "/v1/nodes", free))
        await asyncio.create_task(_hold(slots, "bob", "/v1/jobs", free))
        go.set()
        await asyncio.gather(*tasks)
        await asyncio.create_task(_hold(slots, "ann", "/v1/nodes", free))

    run(work)


def test_a_single_endpoint_cannot_use_every_connection() -> None:
    async def work() -> None:
        slots, go, free = Slots(patience_s=0.1), asyncio.Event(), asyncio.Event()
        free.set()
        tasks = [
            asyncio.create_task(_hold(slots, user, "/v1/jobs", go))
            for user in ("ann", "bob")
            for _ in range(3)
        ]
        await _settle()
        with pytest.raises(DatabaseBusy, match="too many requests are in progress at /v1/jobs"):
            await asyncio.create_task(_hold(slots, "cid", "/v1/jobs", free))
        await asyncio.create_task(_hold(slots, "cid", "/v1/nodes", free))
        go.set()
        await asyncio.gather(*tasks)

    run(work)


def test_the_request_queue_of_a_user_is_limited() -> None:
    async def work() -> None:
        slots, go = Slots(waiting=2), asyncio.Event()
        tasks = [asyncio.create_task(_hold(slots, "ann", "/v1/jobs", go)) for _ in range(6)]
        await _settle()
        with pytest.raises(TooManyRequests):
            await asyncio.create_task(_hold(slots, "ann", "/v1/jobs", go))
        go.set()
        await asyncio.gather(*tasks)

    run(work)


def test_the_daemons_own_statements_wait_for_no_slot(database_url: str) -> None:
    async def work() -> None:
        slots, go = Slots(at_once=1, patience_s=0.1), asyncio.Event()
        async with Database(database_url, size=2, slots=slots) as database:
            held = asyncio.create_task(_hold(slots, "ann", "/v1/jobs", go))
            await _settle()
            assert await database.fetchval("select 1") == 1
            go.set()
            await held

    run(work)


def test_a_full_pool_answers_busy_and_not_that_postgresql_is_gone(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odcd.database.pool.ACQUIRE_TIMEOUT_S", 0.1)

    async def work() -> None:
        async with Database(database_url, size=1) as database, database.dedicated() as other:
            await other.execute("select pg_advisory_lock(1)")
            waits = asyncio.create_task(database.fetchval("select pg_advisory_lock(1)"))
            while not await other.fetchval(
                "select exists (select from pg_locks where not granted and objid = 1)"
            ):
                await asyncio.sleep(0.001)
            with pytest.raises(DatabaseBusy, match="in use"):
                await database.fetchval("select 1")
            await other.execute("select pg_advisory_unlock(1)")
            await waits

    run(work)


def test_slow_statements_of_a_user_leave_cpus_for_passes_and_delay_no_other_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("odcd.database.pace.SLOW_S", 0.0)

    async def work() -> None:
        slots, go, free = Slots(slow=1, patience_s=0.1), asyncio.Event(), asyncio.Event()
        free.set()
        await asyncio.create_task(_hold(slots, "ann", "/v1/jobs", free))
        held = asyncio.create_task(_hold(slots, "ann", "/v1/jobs", go))
        await _settle()
        with pytest.raises(DatabaseBusy, match="too many requests are in progress at /v1/jobs"):
            await asyncio.create_task(_hold(slots, "ann", "/v1/jobs", free))
        # Neither her quick requests nor those of others at the same endpoint wait.
        await asyncio.create_task(_hold(slots, "ann", "/v1/nodes", free))
        await asyncio.create_task(_hold(slots, "bob", "/v1/jobs", free))
        go.set()
        await held
        await asyncio.create_task(_hold(slots, "ann", "/v1/jobs", free))

    run(work)
