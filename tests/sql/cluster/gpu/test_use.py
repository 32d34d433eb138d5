"""The GPU usage of ended attempts: owed once for each, stored once, and shown with the job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from odcd.errors import LeadershipLost
from tests.support.builders.gpus import GpuQueue, a_figure
from tests.support.builders.jobs import NOW, a_cluster
from tests.support.harness.database import Sql


@pytest.fixture
def queue(sql: Sql) -> Iterator[GpuQueue]:
    queue = GpuQueue(sql)
    yield queue
    assert queue.contradictions() == []


def test_an_ended_attempt_awaits_its_gpu_use(queue: GpuQueue) -> None:
    job = queue.run()
    assert queue.owed() == []
    queue.move(3600)
    queue.end(job)
    assert queue.owed() == [(job, 1)]
    use = queue.use(job)
    assert (use["gpus"], use["held_s"], use["stored_at"]) == (2, 3600.0, None)
    assert queue.reported_use(job) == {
        "source": "prometheus", "held_gpu_s": 7200, "seen_gpu_s": 0, "busy_gpu_s": 0,
        "busy_ratio": None, "mem_peak_mib": None, "energy_j": None, "owed": 1, "gave_up": None,
        "now": None,
    }  # fmt: skip


def test_stored_use_is_shown_with_the_job_and_kept(queue: GpuQueue) -> None:
    job = queue.run()
    queue.move(3600)
    queue.end(job)
    assert queue.store(a_figure(job)) == 1
    assert queue.owed() == []
    use = queue.reported_use(job)
    assert (use["held_gpu_s"], use["seen_gpu_s"], use["busy_gpu_s"]) == (7200, 6000, 4000)
    assert (use["busy_ratio"], use["mem_peak_mib"], use["owed"]) == (0.6667, 70_000, 0)
    assert use["energy_j"] == 1_500_000
    # Stored twice, as by a leader that lost the first answer.
    assert queue.store(a_figure(job, busy_gpu_s=1.0)) == 0
    assert queue.reported_use(job) == use
    assert queue.use(job)["gpu_uuids"] == ["GPU-a", "GPU-b"]


def test_stored_use_never_exceeds_the_allocation(queue: GpuQueue) -> None:
    """The scrape and the runner have different clocks."""
    job = queue.run()
    queue.move(100)
    queue.end(job)
    queue.store(a_figure(job, covered_s=103.0, busy_gpu_s=206.0))
    assert (queue.use(job)["covered_s"], queue.use(job)["busy_gpu_s"]) == (100, 200)
    assert queue.reported_use(job)["busy_ratio"] == 1


def test_unknown_use_is_requested_again_and_then_given_up_with_a_reason(queue: GpuQueue) -> None:
    job = queue.run()
    queue.move(60)
    queue.end(job)
    again = queue.now + timedelta(seconds=120)
    assert queue.store({"job_id": job, "attempt": 1, "again_at": again.isoformat()}) == 0
    assert queue.owed() == []
    queue.move(120)
    assert queue.owed() == [(job, 1)]
    assert queue.store({"job_id": job, "attempt": 1, "gave_up": "it was too short"}) == 1
    assert queue.reported_use(job)["gave_up"] == "it was too short"
    assert queue.reported_use(job)["busy_ratio"] is None


def test_use_is_stored_per_attempt_and_shown_in_total(queue: GpuQueue) -> None:
    job = queue.run(requeue=True)
    queue.move(1000)
    queue.lose(job)
    assert queue.state(job) == "PENDING"
    assert queue.reported_use(job)["held_gpu_s"] == 2000
    assert job in queue.start()
    queue.began(job)
    queue.move(500)
    queue.end(job)
    assert queue.owed() == [(job, 1), (job, 2)]
    queue.store(a_figure(job, 1, covered_s=1000, busy_gpu_s=500, mem_peak_mib=10))
    queue.store(a_figure(job, 2, covered_s=500, busy_gpu_s=1000, mem_peak_mib=5, energy_j=None))
    use = queue.reported_use(job)
    assert (use["held_gpu_s"], use["seen_gpu_s"], use["busy_gpu_s"]) == (3000, 3000, 1500)
    assert (use["busy_ratio"], use["mem_peak_mib"], use["energy_j"]) == (0.5, 10, 1_500_000)


def test_attempts_without_gpus_or_that_never_ran_await_no_use(queue: GpuQueue) -> None:
    a_cluster(queue.sql, now=queue.now, cpu_x86=1, h100=1, more=[
        {"name": "gpu-1", "gpu_type": "h100", "gpus": 8, "cpus": 64, "mem_mib": 64_000},
    ])  # fmt: skip
    cpu = queue.run(gpus_per_node=0)
    declared = queue.run(node_list=["h100-1"])
    unstarted = queue.submit(gpus_per_node=1)
    assert unstarted in queue.start()
    queue.move(60)
    queue.end(cpu, declared, unstarted)
    assert queue.sql.values("select job_id from odc.gpu_use") == []
    assert [queue.reported_use(job) for job in (cpu, declared, unstarted)] == [None] * 3


def test_without_a_source_nothing_is_written(queue: GpuQueue) -> None:
    queue.meter(None)
    job = queue.run()
    queue.move(60)
    queue.end(job)
    assert queue.sql.values("select job_id from odc.gpu_use") == []
    assert queue.reported_use(job) is None


def test_by_nvml_parts_add_up_while_it_runs(queue: GpuQueue) -> None:
    queue.meter("nvml")
    job = queue.run()
    parts = [
        a_part(queue, job, minute, busy_gpu_s=30.0 * minute, mem_peak_mib=minute)
        for minute in range(3)
    ]
    queue.move(180)
    queue.add(parts[0])
    queue.add(parts[1])
    # The answer was lost, so it is reported again.
    queue.add(parts[1])
    queue.add(parts[2])
    use = queue.reported_use(job)
    assert (use["held_gpu_s"], use["seen_gpu_s"], use["busy_gpu_s"]) == (360, 360, 90)
    assert (use["mem_peak_mib"], use["energy_j"], use["owed"]) == (2, 3000, 0)
    assert queue.use(job)["gpu_uuids"] == ["GPU-0", "GPU-1", "GPU-2"]
    queue.end(job)
    assert queue.owed() == [(job, 1)]
    # The last part comes after the end.
    queue.add(a_part(queue, job, 3, busy_gpu_s=10.0))
    assert queue.store({"job_id": job, "attempt": 1}) == 1
    use = queue.reported_use(job)
    assert (use["busy_gpu_s"], use["seen_gpu_s"], use["gave_up"]) == (100, 360, None)
    queue.add(a_part(queue, job, 4, busy_gpu_s=1000.0))
    assert queue.reported_use(job) == use


def test_use_that_was_begun_is_awaited_whatever_the_source_is_now(queue: GpuQueue) -> None:
    queue.meter("nvml")
    job = queue.run()
    queue.add(a_part(queue, job, 0))
    queue.meter(None)
    queue.move(60)
    queue.end(job)
    assert queue.owed() == [(job, 1)]
    assert queue.reported_use(job)["held_gpu_s"] == 120


def a_part(queue: GpuQueue, job: int, minute: int, **fields: Any) -> dict[str, Any]:
    began = queue.use_began(job)
    return {
        "job_id": job, "attempt": 1, "from": (began + timedelta(minutes=minute)).isoformat(),
        "to": (began + timedelta(minutes=minute + 1)).isoformat(), "covered_s": 60.0,
        "busy_gpu_s": 60.0, "mem_peak_mib": 1, "energy_j": 1000.0, "gpu_uuids": [f"GPU-{minute}"],
        **fields,
    }  # fmt: skip


def test_the_past_shows_no_later_use(queue: GpuQueue) -> None:
    job = queue.run()
    queue.move(3600)
    queue.end(job)
    queue.move(60)
    moment = queue.now
    queue.move(60)
    queue.store(a_figure(job))
    queue.move(60)
    text = queue.sql.value("select odc.past_job($1, $2, null, $3)", moment, job, queue.now)
    [then] = json.loads(text)
    assert (then["gpu_use"]["owed"], then["gpu_use"]["busy_gpu_s"]) == (1, 0)
    text = queue.sql.value(
        "select odc.past_job($1, $2, null, $3)", NOW + timedelta(seconds=60), job, queue.now
    )
    assert json.loads(text)[0]["gpu_use"] is None


def test_only_the_leader_writes_gpu_use(queue: GpuQueue) -> None:
    for call in (
        "odc.set_gpu_meter(7, null, 0, 1)", "odc.owed_gpu_use(7, now(), 1, now())",
        "odc.store_gpu_use(7, '[]', now())", "odc.add_gpu_use(7, '[]')", "odc.live_gpus(7)",
        "odc.note_gpu_now(7, '[]', now(), now(), now())",
    ):  # fmt: skip
        with pytest.raises(LeadershipLost):
            queue.sql.rows(f"select * from {call}")


def test_the_attempts_to_measure_are_listed_with_their_gpus(queue: GpuQueue) -> None:
    first = queue.run(gpus_per_node=3)
    gang = queue.submit(gpus_per_node=5, node_count=2)
    assert gang in queue.start()
    rows = queue.sql.rows("select * from odc.live_gpus(0)")
    holders = [(r["job_id"], r["rank"], r["gpu_indexes"], r["running_at"] is None) for r in rows]
    assert holders[0] == (first, 0, [0, 1, 2], False)
    assert [(job, rank, len(bits), waits) for job, rank, bits, waits in holders[1:]] == [
        (gang, 0, 5, True), (gang, 1, 5, True),
    ]  # fmt: skip
    queue.end(first)
    assert first not in {r["job_id"] for r in queue.sql.rows("select * from odc.live_gpus(0)")}


class Ledger(RuleBasedStateMachine):
    """For any sequence of jobs and leaders, every attempt that had GPUs and ran has one row; the
    first report stays, and the sums are those of the parts."""

    sql: Sql

    def __init__(self) -> None:
        super().__init__()
        self.sql.begin()
        self.queue = GpuQueue(self.sql)
        self.live: set[int] = set()
        self.ran: dict[tuple[int, int], float] = {}
        self.stored: dict[tuple[int, int], float] = {}
        self.began: dict[int, Any] = {}

    def teardown(self) -> None:
        self.sql.rollback()

    @rule(gpus=st.integers(0, 4))
    def submit(self, gpus: int) -> None:
        self.queue.submit(gpus_per_node=gpus, requeue=True)

    @rule(seconds=st.integers(1, 5000))
    def time_passes(self, seconds: int) -> None:
        self.queue.move(seconds)

    @rule(begins=st.booleans())
    def start(self, begins: bool) -> None:
        for job in self.queue.start():
            self.live.add(job)
            self.began.pop(job, None)
            if begins:
                self.queue.began(job)
                self.began[job] = self.queue.now

    @rule(lost=st.booleans(), pick=st.randoms(use_true_random=False))
    def end(self, lost: bool, pick: Any) -> None:
        if not self.live:
            return
        job = pick.choice(sorted(self.live))
        attempt = self.queue.running(job)["attempt"]
        gpus = self.sql.value("select sum(gpus) from odc.allocation where job_id = $1", job)
        if gpus and job in self.began:
            self.ran[job, attempt] = (self.queue.now - self.began[job]).total_seconds()
        self.live.discard(job)
        if lost:
            self.queue.lose(job)
        else:
            self.queue.end(job)

    @rule(most=st.integers(1, 3), twice=st.booleans(), ratio=st.floats(0, 1))
    def pay(self, most: int, twice: bool, ratio: float) -> None:
        rows = self.sql.rows("select * from odc.owed_gpu_use(0, $1, $2, $1)", self.queue.now, most)
        found = []
        for row in rows:
            key = row["job_id"], row["attempt"]
            assert key not in self.stored
            self.stored[key] = ratio * self.ran[key] * row["gpus"]
            found.append(a_figure(*key, covered_s=self.ran[key], busy_gpu_s=self.stored[key]))
        assert self.queue.store(*found) == len(found)
        if twice:
            assert self.queue.store(*(one | {"busy_gpu_s": 1e9} for one in found)) == 0

    @invariant()
    def each_attempt_once(self) -> None:
        rows = self.sql.rows("select * from odc.gpu_use")
        assert {(r["job_id"], r["attempt"]): r["held_s"] for r in rows} == pytest.approx(self.ran)
        stored = {
            (r["job_id"], r["attempt"]): r["busy_gpu_s"] for r in rows if r["stored_at"] is not None
        }
        assert stored == pytest.approx(self.stored)
        assert set(self.queue.owed()) == self.ran.keys() - self.stored.keys()


@pytest.mark.long
def test_each_attempt_is_stored_once(database_url: str) -> None:
    with Sql(database_url) as sql:
        machine = type("TestLedger", (Ledger,), {"sql": sql})
        run_state_machine_as_test(
            machine, settings=settings(max_examples=15, stateful_step_count=25, deadline=None)
        )
