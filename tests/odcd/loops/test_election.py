"""Leadership is taken, lost and taken again; losing it never ends the daemon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

from odcd.clock import Clock, SystemClock
from odcd.database.connections import LEADER
from odcd.database.pool import Database
from odcd.errors import DatabaseBusy, LeadershipLost, OdcError, PlanStale
from odcd.loops import election as leader_module
from odcd.loops.election import Leader
from odcd.loops.lead import Lead
from tests.support.harness.relay import Relay


def test_a_leader_whose_connection_breaks_leads_again_under_a_higher_term(
    database_url: str,
) -> None:
    seen: list[int] = []
    beside: list[int] = []

    async def scenario() -> list[int]:
        terms = asyncio.Queue[int]()

        async def lead(lead: Lead) -> None:
            terms.put_nowait(lead.term)
            await asyncio.Event().wait()

        async with Database(database_url) as database:
            leader = Leader(database, SystemClock(), timedelta(seconds=0.4), lead, seen.append)
            follower = Leader(database, SystemClock(), timedelta(hours=1), lead, beside.append)
            running = asyncio.create_task(leader.run())
            try:
                async with asyncio.timeout(60):
                    first = await terms.get()
                    following = asyncio.create_task(follower.run())
                    while not beside:
                        await asyncio.sleep(0.01)
                    following.cancel()
                    await asyncio.wait([following])
                    await database.fetchval(
                        "select pg_terminate_backend(backend_pid) from odc.term"
                    )
                    again = asyncio.create_task(terms.get())
                    await asyncio.wait([running, again], return_when=asyncio.FIRST_COMPLETED)
                    assert again.done(), running.exception()
                    return [first, again.result()]
            finally:
                running.cancel()
                await asyncio.wait([running])

    assert asyncio.run(scenario()) == [1, 2]
    # A follower knows the term, too.
    assert (sorted(set(seen)), beside) == ([0, 1, 2], [1])


# -- what may end leadership, and never the daemon -------------------------------------------------


@asynccontextmanager
async def leading(
    dsn: str, lease_s: float, clock: Clock | None = None, clock_limit: timedelta = timedelta.max,
    terms: asyncio.Queue[int] | None = None, work: Callable[[Lead], Awaitable[None]] | None = None,
) -> AsyncGenerator[tuple[asyncio.Queue[int], asyncio.Task[None], Leader]]:  # fmt: skip
    """A daemon's leader, with a database of its own, that puts its terms into the queue."""
    terms = terms or asyncio.Queue()

    async def lead(lead: Lead) -> None:
        terms.put_nowait(lead.term)
        await (work(lead) if work is not None else asyncio.Event().wait())

    async with Database(dsn, kind=LEADER, tagged=True) as database:
        leader = Leader(
            database, clock or SystemClock(), timedelta(seconds=lease_s), lead,
            clock_limit=clock_limit,
        )  # fmt: skip
        running = asyncio.create_task(leader.run())
        try:
            yield terms, running, leader
        finally:
            running.cancel()
            await asyncio.wait([running])


async def the_next(terms: asyncio.Queue[int], running: asyncio.Task[None]) -> int:
    """The next term; or the error that ended the leader."""
    taken = asyncio.create_task(terms.get())
    await asyncio.wait([running, taken], return_when=asyncio.FIRST_COMPLETED)
    if not taken.done():
        running.result()
        raise AssertionError("the leader's run() has ended")
    return taken.result()


def limited(work: Callable[[], Awaitable[None]], patience_s: float = 90) -> None:
    async def within() -> None:
        async with asyncio.timeout(patience_s):
            await work()

    asyncio.run(within())


FAIL_ONCE = """
    create sequence public.calls;
    alter function odc.take_term rename to really_take_term;
    create function odc.take_term(p_term bigint, p_beat bigint, p_holder text, p_host text,
                                  p_now timestamptz, p_tokens text[] default '{{}}')
    returns bigint language plpgsql as $$
    begin
        if nextval('public.calls') = 1 then
            raise exception using errcode = '{code}', message = 'not now';
        end if;
        return odc.really_take_term(p_term, p_beat, p_holder, p_host, p_now);
    end $$
"""


@pytest.mark.parametrize("code", ["40001", "40P01", "55P03", "57014", "OD003", "OD010"])
def test_no_error_while_the_term_is_taken_ends_the_daemon(database_url: str, code: str) -> None:
    async def work() -> None:
        async with Database(database_url, size=1) as database:
            await database.execute(FAIL_ONCE.format(code=code))
        async with leading(database_url, 0.4) as (terms, running, _):
            assert await the_next(terms, running) == 1

    limited(work)


@pytest.mark.parametrize("error", [DatabaseBusy("not now"), PlanStale("moved on")])
def test_no_error_of_a_statement_while_it_leads_ends_the_daemon(
    database_url: str, error: OdcError
) -> None:
    async def work() -> None:
        failing = [error]

        async def lead(lead: Lead) -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.Event().wait() if not failing else fail())

        async def fail() -> bool:
            raise failing.pop()

        async with leading(database_url, 0.4, work=lead) as (terms, running, _):
            assert [await the_next(terms, running), await the_next(terms, running)] == [1, 2]

    limited(work)


@pytest.mark.long
def test_a_leader_notices_a_silent_primary_within_ten_seconds(database_url: str) -> None:
    async def work() -> None:
        ended = asyncio.Event()

        async def lead(lead: Lead) -> None:
            try:
                # A pass that waits for PostgreSQL when it falls silent.
                await lead.plan_pass(SystemClock().now())
                await lead._session.execute("select pg_sleep(600)")
            finally:
                ended.set()

        with Relay(database_url) as relay:
            async with leading(relay.dsn, 10, work=lead) as (terms, running, leader):
                assert await the_next(terms, running) == 1
                relay.cut()
                since = time.monotonic()
                await ended.wait()
                while leader.leading is not None:
                    await asyncio.sleep(0.01)
                # Within 10 s; a busy machine is given a little more.
                assert time.monotonic() - since < 20
                relay.mend()
                assert await the_next(terms, running) == 2

    limited(work)


STUCK = """
    select exists (select from pg_stat_activity
                    where datname = current_database() and wait_event = 'ClientWrite'
                      and query like '%read_many%')
"""
READ_MANY = """
    create function public.read_many(p_term bigint) returns setof text language plpgsql as $$
    begin
        perform odc._hold_term(p_term);
        return query select repeat('x', 200) from generate_series(1, 40000);
    end $$
"""


@pytest.mark.long
def test_a_stopped_leader_is_replaced_wherever_its_backends_wait(database_url: str) -> None:
    """Its backend locks the term's row, and waits for a client that does not read the answer."""

    async def work() -> None:
        async with Database(database_url) as database:
            await database.execute(READ_MANY)
            with Relay(database_url) as relay:

                async def read(lead: Lead) -> None:
                    while True:
                        await first._database.fetch("select public.read_many($1)", lead.term)

                async with leading(relay.dsn, 2, work=read) as (terms, running, first):
                    assert await the_next(terms, running) == 1
                    while not await database.fetchval(STUCK):
                        relay.mend()
                        await asyncio.sleep(0.02)
                        relay.cut()
                        await asyncio.sleep(0.1)
                    async with leading(database_url, 2) as (others, following, _):
                        since = time.monotonic()
                        assert await the_next(others, following) == 2
                        # A lease, and little more; it used to wait for as long as the other slept.
                        assert time.monotonic() - since < 30
                        assert not await database.fetchval(STUCK)

    limited(work)


@pytest.mark.parametrize("ahead_s", [-600, 600])
def test_a_daemon_with_a_wrong_clock_does_not_lead(
    database_url: str, ahead_s: int, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(leader_module, "CLOCK_REST_S", 0.2)

    async def work() -> None:
        limit = timedelta(seconds=30)
        wrong = SteppedClock(ahead_s)
        async with leading(database_url, 0.4, wrong, limit) as (terms, running, leader):
            while not leader.clock_ahead_s:
                await asyncio.sleep(0.01)
            async with leading(database_url, 0.4, SystemClock(), limit) as (others, other, _):
                assert await the_next(others, other) == 1
            assert terms.empty()
            # It leads again once its clock is right.
            wrong.ahead_s = 0
            assert await the_next(terms, running) == 2

    limited(work)
    records = [record for record in caplog.records if record.message == "leader.clock_wrong"]
    assert records
    assert records[0].levelname == "ERROR"
    way = "ahead of" if ahead_s > 0 else "behind"
    assert f"this daemon's clock is 600 s {way} PostgreSQL's" in records[0].why  # type: ignore[attr-defined]


def test_a_clock_that_steps_times_nothing_out(database_url: str) -> None:
    """The step is noticed at the next check of the clock, before a statement uses that time."""

    async def work() -> None:
        clock = SteppedClock(0)
        looked: list[datetime] = []
        refused = asyncio.Event()

        async def lead(lead: Lead) -> None:
            while True:
                try:
                    looked.append(lead.clock.now())
                except LeadershipLost:
                    refused.set()
                    raise
                clock.ahead_s = 3600
                await asyncio.sleep(0)

        async with leading(database_url, 3600, clock, timedelta(seconds=30), work=lead) as (
            terms,
            running,
            leader,
        ):
            assert await the_next(terms, running) == 1
            await refused.wait()
            assert len(looked) == 1
            while leader.leading is not None:
                await asyncio.sleep(0.01)

    limited(work)


def test_a_leader_whose_clock_drifts_from_postgresqls_steps_down(database_url: str) -> None:
    """Through its heartbeats, even if nothing else reads the clock."""

    async def work() -> None:
        clock = SteppedClock(0)
        async with leading(database_url, 0.4, clock, timedelta(seconds=30)) as (
            terms,
            running,
            leader,
        ):
            assert await the_next(terms, running) == 1
            clock.ahead_s = -3600
            while leader.leading is not None:
                await asyncio.sleep(0.01)

    limited(work)


class SteppedClock(SystemClock):
    """The wall clock of a machine that is wrong."""

    def __init__(self, ahead_s: float) -> None:
        self.ahead_s = ahead_s

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead_s)


def test_a_beat_waits_for_no_pass(database_url: str) -> None:
    """They have connections of their own."""

    async def work() -> None:
        async def lead(lead: Lead) -> None:
            async with lead._one_at_a_time:
                await lead._session.execute("select pg_sleep(600)")

        async with (
            Database(database_url) as database,
            leading(database_url, 0.4, work=lead) as (terms, running, leader),
        ):
            assert await the_next(terms, running) == 1
            beat = await database.fetchval("select beat from odc.term")
            while await database.fetchval("select beat from odc.term") < beat + 5:
                await asyncio.sleep(0.01)
            assert leader.leading == 1

    limited(work)
