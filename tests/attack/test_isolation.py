"""One value that a loop of the leader cannot process stops nobody else.

Each test makes PostgreSQL refuse one row, as a value would that odc does not expect, whatever that
value is. The loop isolates it, the others go on, and it is processed once the cause is gone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar, cast

import pytest

from odcd import isolation
from odcd.clock import SystemClock
from odcd.database.connections import FORECASTER, LEADER, PASS
from odcd.database.pool import Database
from odcd.errors import DatabaseBusy, LeadershipLost
from odcd.events.pages import read_page
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.informer import Mirror
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import Key
from odcd.executor.kubernetes.objects import Meta, Pod
from odcd.executor.kubernetes.unread_pods import UnreadPods
from odcd.executor.wire import facts_of as facts_in
from odcd.gpu_use.ended import EndedUse
from odcd.isolation import Isolation
from odcd.loops import culprits
from odcd.loops.executor_watch import ExecutorWatch
from odcd.loops.facts import FactWriter
from odcd.loops.forecaster import Forecaster
from odcd.loops.lead import Lead
from odcd.loops.planner import Planner
from odcd.loops.starts import MAX_TRIES, Starts
from odcd.loops.sweeps import Sweeps
from odcd.records.dispatch import Dispatch, Fact
from odcd.records.node import NodeReport
from odcd.stores.store import Store
from tests.support.builders.jobs import ALICE, BOB, NODES, NOW, ROOT, Queue, a_cluster
from tests.support.harness.database import Sql

CLOCK = SystemClock()
TERM = 0
T = TypeVar("T")


class Counted:
    """Implements IsolationWatch."""

    def __init__(self) -> None:
        self.isolations: list[str] = []
        self.aside = 0

    def isolated(self, loop: str) -> None:
        self.isolations.append(loop)

    def count_aside(self, loop: str, more: int) -> None:
        self.aside += more


class Poison:
    """A database in which one row cannot be written."""

    def __init__(self, sql: Sql, runner: asyncio.Runner) -> None:
        self.sql = sql
        self.queue = Queue(sql)
        self.queue.now = CLOCK.now()
        self.watch = Counted()
        self._runner = runner
        self.database = Database(sql.dsn, kind=LEADER, size=2)
        self.run(self.database.open())
        self.store = Store(self.database)
        sql.execute(
            "create function public.refuse() returns trigger language plpgsql as $$ begin "
            "raise numeric_value_out_of_range using message = 'the pill'; end $$"
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def refuse(self, what: str, table: str, when: str | None) -> None:
        """what: insert, update or delete. when: of which rows; None: every statement."""
        rows = f"row when ({when})" if when else "statement"
        self.sql.execute(
            f"create trigger pill before {what} on odc.{table} for each {rows} "
            "execute function public.refuse()"
        )

    def allow(self, table: str) -> None:
        self.sql.execute(f"drop trigger pill on odc.{table}")

    def running(self, count: int) -> list[int]:
        jobs = [self.queue.submit(gpus_per_node=1) for _ in range(count)]
        self.queue.start()
        return jobs

    def state(self, job_id: int) -> str | None:
        """None: the job is live."""
        return self.sql.value("select state::text from odc.job where id = $1", job_id)


@pytest.fixture
def poison(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Poison]:
    monkeypatch.setattr(culprits, "PAUSE_S", (0.0, 0.0))
    with Sql(database_url) as sql, asyncio.Runner() as runner:
        a_cluster(sql, h100=2, now=CLOCK.now())
        poison = Poison(sql, runner)
        yield poison
        poison.run(poison.database.close())
        sql.execute("drop function public.refuse cascade")


def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items that are set aside from now on are tried again at once."""
    monkeypatch.setattr(isolation, "RETRY_S", (0.0, 0.0))


def an_end(job_id: int, **more: Any) -> Fact:
    return Fact(
        job_id=job_id, attempt=1, rank=0, kind="exited", at=CLOCK.now(), exit_code=0, **more
    )


# -- facts ----------------------------------------------------------------------------------------


def facts_of(poison: Poison) -> FactWriter:
    return FactWriter(TERM, poison.store.attempts, CLOCK, lambda: None, poison.watch)


def test_an_end_that_cannot_be_recorded_delays_no_other_end(
    poison: Poison, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = poison.running(5)
    poison.refuse("insert", "attempt", f"new.job_id = {jobs[1]}")
    at_once(monkeypatch)
    writer = facts_of(poison)
    written = poison.run(writer.write([an_end(job) for job in jobs]))
    assert [fact.job_id for fact in written] == [jobs[0], *jobs[2:]], "the others"
    assert poison.run(writer.write_again()) == []
    poison.allow("attempt")
    assert [fact.job_id for fact in poison.run(writer.write_again())] == [jobs[1]]
    assert {poison.state(job) for job in jobs} == {"COMPLETED"}
    assert poison.watch.aside == 0


def test_a_report_that_cannot_be_stored_ends_its_job_with_a_plain_one(poison: Poison) -> None:
    jobs = poison.running(2)
    poison.refuse("update", "running", "new.exit_detail = 'the value'")
    facts = [an_end(jobs[0], detail="the value"), an_end(jobs[1])]
    assert len(poison.run(facts_of(poison).write(facts))) == 2
    detail = poison.sql.value("select end_detail from odc.job where id = $1", jobs[0])
    assert detail.startswith("odc could not store the report about it")
    assert poison.watch.isolations == ["facts"]


# -- starts ---------------------------------------------------------------------------------------


class Runner:
    """An executor that accepts starts."""

    def __init__(self) -> None:
        self.started: list[int] = []

    async def start(self, dispatches: Sequence[Dispatch], texts: Mapping[str, str]) -> None:
        for dispatch in dispatches:
            assert texts[dispatch.script_digest]
        self.started += [dispatch.job_id for dispatch in dispatches]


def test_a_job_that_cannot_be_sent_fails_and_the_others_start(
    poison: Poison, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = poison.queue.submit(gpus_per_node=1, script="#!/bin/sh\n# lost\n")
    jobs = [*poison.running(3), bad]
    poison.sql.execute("delete from odc.job_text where content like '%lost%'")
    at_once(monkeypatch)
    runner, store = Runner(), poison.store
    starts = Starts(
        TERM, store.dispatches, cast(Any, runner), CLOCK,
        lambda job_id, why: store.attempts.fail_start(TERM, job_id, why, CLOCK.now()),
        poison.watch,
    )  # fmt: skip
    for _ in range(MAX_TRIES):
        assert poison.run(starts.send(jobs))
    assert set(runner.started) == set(jobs) - {bad}
    assert poison.state(bad) == "FAILED"
    detail = poison.sql.value("select end_detail from odc.job where id = $1", bad)
    assert detail.startswith("odc could not start it: ")


# -- passes ---------------------------------------------------------------------------------------


def passes(poison: Poison, count: int) -> None:
    async def work() -> None:
        async with poison.database.dedicated(kind=PASS) as session:
            planner = Planner(
                Lead(TERM, session, CLOCK), poison.store.dispatches, cast(Any, Runner()), CLOCK,
                timedelta(seconds=30), watch=poison.watch,
            )  # fmt: skip
            for _ in range(count):
                await planner.plan_once()

    poison.run(work())


def test_a_job_that_passes_cannot_plan_is_held_and_the_others_start(poison: Poison) -> None:
    queue = poison.queue
    jobs = [queue.submit(BOB, gpus_per_node=1) for _ in range(7)]
    bad = jobs[3]
    poison.refuse("delete", "pending", f"old.job_id = {bad}")
    passes(poison, culprits.FAILURES + 1)
    running = poison.sql.values("select job_id from odc.running order by job_id")
    assert running == [job for job in jobs if job != bad]
    assert "could not plan it: the pill" in poison.sql.value(
        "select odc._why_blocked($1)::text", bad
    )
    assert poison.watch.isolations == ["passes"]
    # Its user cannot release it; an operator can, once the cause is gone.
    poison.allow("pending")
    assert queue.change("release", bad, who=BOB)[0]["outcome"] == "refused"
    assert queue.change("release", bad, who=ROOT)[0]["outcome"] == "released"
    passes(poison, 1)
    assert poison.sql.value("select count(*) from odc.running") == len(jobs)


def test_a_user_with_many_such_jobs_is_held_as_a_whole(poison: Poison) -> None:
    """Each search takes passes, so one user could otherwise keep the leader searching."""
    bad = [poison.queue.submit(gpus_per_node=1) for _ in range(12)]
    good = poison.queue.submit(BOB, gpus_per_node=1)
    poison.refuse("delete", "pending", f"old.uid = {ALICE.uid}")
    passes(poison, culprits.FAILURES + 4)
    assert poison.sql.values("select job_id from odc.running") == [good]
    held = poison.sql.values("select job_id from odc.pending where held = 'admin' order by 1")
    assert held == bad
    assert len(poison.watch.isolations) == 4


def test_few_jobs_are_held_if_any_start_fails(
    poison: Poison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a defect is at fault, not the jobs."""
    monkeypatch.setattr(culprits, "MAX_HOLDS", 2)
    jobs = [poison.queue.submit(gpus_per_node=1) for _ in range(5)]
    poison.refuse("insert", "allocation", None)
    passes(poison, culprits.FAILURES + 4)
    held = poison.sql.values("select job_id from odc.pending where held is not null order by 1")
    assert held == jobs[:2]


def test_a_pass_that_fails_without_any_job_holds_none(poison: Poison) -> None:
    poison.queue.submit(gpus_per_node=1)
    poison.refuse("insert or update", "pass", None)
    passes(poison, culprits.FAILURES + 1)
    assert poison.sql.value("select count(*) from odc.pending where held is not null") == 0
    poison.allow("pass")
    poison.queue.start()
    assert poison.sql.value("select count(*) from odc.running") == 1


# -- sweeps ---------------------------------------------------------------------------------------


def sweeps_of(poison: Poison) -> Sweeps:
    return Sweeps(
        TERM, poison.store.leader, CLOCK, keeps_time=False, node_grace=None, quarantine=False,
        canaries=False, stale_after=None, watch=poison.watch,
    )  # fmt: skip


def test_a_job_that_cannot_be_swept_delays_no_other_deadline(
    poison: Poison, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, soon = poison.queue, CLOCK.now() + timedelta(seconds=90)
    late = [queue.submit(hold=True, time_limit_s=60, deadline_at=soon) for _ in range(4)]
    begins = queue.submit(begin_at=soon)
    poison.refuse("delete", "pending", f"old.job_id = {late[2]}")
    now, sweeps = soon + timedelta(seconds=1), sweeps_of(poison)
    poison.run(sweeps.sweep_once(now))
    states = [poison.state(job) for job in late]
    assert states == ["DEADLINE", "DEADLINE", None, "DEADLINE"]
    assert poison.sql.value("select begun from odc.pending where job_id = $1", begins)
    assert poison.watch.aside == 1
    # It is left out, and causes no sweeps without a pause.
    due = poison.run(sweeps.sweep_once(now))
    assert due is not None
    assert due > now
    assert poison.watch.isolations == ["sweep"]
    poison.allow("pending")
    monkeypatch.setattr(isolation, "RETRY_S", (0.0, 0.0))
    poison.run(sweeps_of(poison).sweep_once(now))
    assert poison.state(late[2]) == "DEADLINE"


def test_a_step_of_the_sweep_that_fails_stops_no_other_step(poison: Poison) -> None:
    [job] = poison.running(1)
    poison.sql.execute("update odc.running set ends_at = $1", CLOCK.now() - timedelta(hours=1))
    poison.refuse("update", "server", None)
    sweeps = sweeps_of(poison)
    poison.run(sweeps.sweep_once(CLOCK.now()))
    intent = poison.sql.value("select intent::text from odc.running where job_id = $1", job)
    assert intent == "timeout"
    assert poison.run(sweeps.sweep_once(CLOCK.now())) is not None
    assert poison.watch.isolations == ["sweep"]


# -- forecasts, GPU usage, nodes ------------------------------------------------------------------


def test_a_job_whose_start_cannot_be_predicted_stops_no_forecast(poison: Poison) -> None:
    queue = poison.queue
    for _ in range(2):
        queue.submit(gpus_per_node=8, time_limit_s=600)
    queue.start()
    waiting = [queue.submit(gpus_per_node=8, time_limit_s=600) for _ in range(5)]
    queue.start()
    poison.refuse("insert", "eta", f"new.job_id = {waiting[2]}")

    forecaster = Forecaster(TERM, poison.database, CLOCK, timedelta(seconds=30), watch=poison.watch)

    async def work() -> None:
        async with poison.database.dedicated(kind=FORECASTER) as session:
            await forecaster.refresh_apart(session)
            await forecaster.refresh_apart(session)

    poison.run(work())
    predicted = poison.sql.values("select job_id from odc.eta order by job_id")
    assert predicted == [job for job in waiting if job != waiting[2]]
    assert poison.watch.isolations == ["forecasts"]


def test_usage_that_cannot_be_stored_delays_no_other_usage(poison: Poison) -> None:
    poison.sql.execute("select odc.set_gpu_meter($1, 'nvml', 0.05, 600)", TERM)
    poison.sql.execute("update odc.node set declared = false")
    jobs = poison.running(3)
    poison.sql.execute("update odc.running set running_at = started_at")
    for job in jobs:
        poison.sql.execute(
            "insert into odc.gpu_use (job_id, attempt, gpus, running_at, ended_at, source) "
            "values ($1, 1, 1, $2, $3, 'nvml')",
            job, CLOCK.now() - timedelta(hours=2), CLOCK.now() - timedelta(hours=1),
        )  # fmt: skip
    poison.refuse("update", "gpu_use", f"new.job_id = {jobs[0]}")
    use = EndedUse(
        TERM, poison.store.gpu_use, None, cast(Any, None), CLOCK, scrape=timedelta(seconds=10),
        kept=timedelta(days=1), watch=poison.watch,
    )  # fmt: skip
    assert poison.run(use.settle_once()) == 2
    assert poison.run(use.settle_once()) == 0
    assert poison.watch.isolations == ["gpu-use"]


class Inventory:
    """An executor with these nodes."""

    keeps_declared = False

    def __init__(self, *names: str) -> None:
        gpus, cpus, mem_mib = NODES["h100"]
        self._nodes = [
            NodeReport(
                name=name, gpu_type="h100", gpus=gpus, cpus=cpus, mem_mib=mem_mib,
                features=("new",), declared=True,
            )
            for name in names
        ]  # fmt: skip

    async def inventory(self) -> list[NodeReport]:
        return self._nodes


def test_a_node_that_cannot_be_registered_keeps_its_state_and_no_other_waits(
    poison: Poison,
) -> None:
    poison.refuse("update", "node", "new.name = 'h100-1'")
    lead = type("Lead", (), {"term": TERM, "clock": CLOCK})()
    settings = type("Settings", (), {
        "lease": timedelta(seconds=10), "sweep": timedelta(seconds=30),
        "jobs": type("Jobs", (), {"output_total_mib": 1}),
    })()  # fmt: skip
    executor = Inventory("h100-1", "h100-2", "h100-3")
    watch = ExecutorWatch(
        cast(Any, lead), cast(Any, None), cast(Any, executor), cast(Any, None), poison.store,
        cast(Any, settings), poison.watch,
    )  # fmt: skip
    for _ in range(2):
        poison.run(watch.register_once())
    nodes = poison.sql.rows("select name, state::text, features from odc.node order by name")
    assert [node["name"] for node in nodes if node["features"] == ["new"]] == ["h100-2", "h100-3"]
    assert {node["state"] for node in nodes} == {"UP"}
    assert poison.watch.isolations == ["inventory"]


# -- events, pods, runner messages ----------------------------------------------------------------


class Pages:
    """Events 1 to 2,500; one cannot be rendered, and one is no event."""

    async def list(
        self, after: int, limit: int, job_id: int | None = None
    ) -> list[tuple[int, str]]:
        ids = range(after + 1, min(after + limit, 2500) + 1)
        if 1234 in ids:
            raise ValueError("the pill")
        return [(one, "[]" if one == 2000 else '{"kind": "started"}') for one in ids]


def test_an_event_that_cannot_be_read_stops_no_stream() -> None:
    async def work() -> list[int]:
        seen, after, more = list[int](), 0, True
        while more:
            events, after, more = await read_page(Pages(), after)
            seen += [event.id for event in events]
        return seen

    assert asyncio.run(work()) == [one for one in range(1, 2501) if one not in (1234, 2000)]


def test_a_report_of_the_runner_that_cannot_be_read_ends_its_job() -> None:
    good = {"job": 1, "attempt": 1, "rank": 0, "kind": "started", "at": 1.0}
    bad = {**good, "job": 2, "kind": "exited", "at": 1e30}
    facts = facts_in([{"facts": [bad, {"rank": 3}, good]}], NOW)
    assert [(fact.job_id, fact.kind, fact.exit_code) for fact in facts] == [
        (2, "exited", 1), (1, "started", None),
    ]  # fmt: skip


def a_mirror(seen: list[str], watch: Counted) -> Mirror[Pod]:
    def on_change(before: Pod | None, after: Pod | None) -> None:
        pod = after or before
        assert pod is not None
        if pod.metadata.name == "bad":
            raise OverflowError("the pill")
        seen.append(pod.metadata.name)

    return Mirror(cast(Any, None), "/api/v1/pods", Pod, CLOCK, on_change, watch)


def test_a_pod_that_cannot_be_processed_or_read_stops_no_other_pod() -> None:
    seen, watch = list[str](), Counted()
    mirror = a_mirror(seen, watch)
    for name, more in (("a", {}), ("bad", {}), ("odd", {"spec": 5}), ("b", {})):
        pod = {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, **more}
        mirror.take(json.dumps({"type": "ADDED", "object": pod}).encode())
    assert seen == ["a", "b"]
    assert watch.isolations == ["pods", "pods"]


def test_a_pod_that_stays_unreadable_is_removed_and_its_job_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once(monkeypatch)
    key, pod = (7, 1, 0), Pod(metadata=Meta(name="odc-7-1-0", uid="u"))
    removed: list[str] = []

    class Writer:
        async def remove(self, pod: Pod, grace_s: float) -> None:
            removed.append(pod.metadata.name)

    async def work() -> None:
        ledger = Ledger()
        members, background = Members(CLOCK, ledger), Background(ledger.wake, CLOCK)
        unread = UnreadPods(members, cast(Any, Writer()), background, CLOCK)

        def read(key: Key, pod: Pod) -> None:
            raise OverflowError("the pill")

        members.pods[key[:2]] = {0: pod}
        with unread.guard(key):
            read(key, pod)
        assert removed == []
        unread.judge(read)
        await asyncio.sleep(0)
        assert removed == ["odc-7-1-0"]
        members.forget(pod, key)
        [fact] = await ledger.take()
        assert (fact.kind, "could not read its pod" in str(fact.detail)) == ("start_failed", True)
        await background.close()

    asyncio.run(work())


# -- what is nobody's fault -----------------------------------------------------------------------


def test_a_lost_term_and_a_busy_database_isolate_nothing() -> None:
    async def work() -> None:
        watch = Counted()
        kept = Isolation[int]("facts", CLOCK, watch)

        async def lost(items: Sequence[int]) -> None:
            raise LeadershipLost("the term is over")

        with pytest.raises(LeadershipLost):
            await kept.together([1, 2, 3], lost)
        tries: list[int] = []

        async def busy_once(items: Sequence[int]) -> None:
            tries.append(len(items))
            if len(tries) < isolation.SLOW_TRIES:
                raise DatabaseBusy("the database took too long", too_slow=True)

        assert await kept.together([1, 2, 3], busy_once, busy_s=0) == [1, 2, 3]

        async def locked(items: Sequence[int]) -> None:
            tries.append(len(items))
            if len(tries) < 20:
                raise DatabaseBusy("another session has the lock")

        assert await kept.together([1], locked, busy_s=0) == [1]
        assert watch.isolations == []

        async def slow(items: Sequence[int]) -> None:
            if 2 in items:
                raise DatabaseBusy("the database took too long", too_slow=True)

        assert await kept.together([1, 2, 3], slow, busy_s=0) == [1, 3]
        assert watch.isolations == ["facts"]

    asyncio.run(work())


def test_a_loop_that_fails_is_restarted_and_a_lost_term_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isolation, "RESTART_S", (0.0, 0.0))
    errors = iter(
        [ValueError("a pill"), DatabaseBusy("busy"), KeyError("a pill"), LeadershipLost("over")]
    )
    watch = Counted()

    async def loop() -> None:
        raise next(errors)

    with pytest.raises(LeadershipLost):
        asyncio.run(isolation.keep("a loop", loop, CLOCK, watch))
    assert watch.isolations == ["loops", "loops"]
