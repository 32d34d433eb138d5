"""Preemption: which jobs it ends, which never, and that the preemptor gets their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from odcd.records.job import Identity
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue, a_cluster
from tests.support.harness.database import Sql


class Urgent(Queue):
    """A queue with a QOS that preempts another: urgent ends scavenger after a minute's grace."""

    def qos(self, name: str, preempts: tuple[str, ...] = (), **columns: Any) -> None:
        names = ", ".join(["name", "preempts", *columns])
        values = ", ".join(f"${n}" for n in range(3, 3 + len(columns)))
        self.sql.execute(
            f"insert into odc.qos ({names}) values ($1, "
            f"array(select id from odc.qos where name = any ($2)){', ' if values else ''}{values})",
            name, list(preempts), *columns.values(),
        )  # fmt: skip

    def run(self, gpus: int = 8, qos: str = "scavenger", **fields: Any) -> int:
        """Submit a job that starts at once, and say that it runs."""
        who: Identity = fields.pop("who", BOB)
        fields = {"gpus_per_node": gpus, "time_limit_s": 100_000, **fields}
        job = self.submit(who, qos=qos, **fields)
        assert self.start() == [job]
        self.begin(job)
        return job

    def begin(self, *jobs: int) -> None:
        members = self.sql.rows(
            "select job_id, rank from odc.allocation where job_id = any ($1)", list(jobs)
        )
        n = len(members)
        self.sql.rows(
            "select * from odc.record_facts(0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            [m["job_id"] for m in members], [1] * n, [m["rank"] for m in members],
            ["started"] * n, [self.now] * n, [None] * n, [None] * n, [None] * n, [None] * n,
            self.now,
        )  # fmt: skip

    def ask(self, gpus: int = 8, qos: str = "urgent", **fields: Any) -> int:
        who: Identity = fields.pop("who", ALICE)
        return self.submit(who, qos=qos, **{"gpus_per_node": gpus, "time_limit_s": 3600, **fields})

    def victims(self) -> dict[int, int]:
        """Whom the database wants ended, and for whom."""
        rows = self.sql.rows(
            "select job_id, preempted_by from odc.running where intent = 'preempt' order by 1"
        )
        return {row["job_id"]: row["preempted_by"] for row in rows}

    def stops(self) -> dict[int, float | None]:
        rows = self.sql.rows("select job_id, grace_s from odc.take_stops(0, $1)", self.now)
        return {row["job_id"]: row["grace_s"] for row in rows}

    def leave(self, *jobs: int) -> None:
        """They were asked to end, and do."""
        self.stops()
        self.move(1)
        self.end(*jobs, exit_code=0)

    def planned(self, job: int) -> tuple[float, list[str]]:
        row = self.sql.row("select * from odc.planned where job_id = $1", job)
        return (row["planned_start_at"] - self.now).total_seconds(), row["node_names"]

    def nodes(self, job: int) -> list[str]:
        return self.sql.values(
            "select n.name from odc.allocation as a join odc.node as n on n.id = a.node_id "
            "where a.job_id = $1 order by a.rank",
            job,
        )


@pytest.fixture
def urgent(sql: Sql) -> Iterator[Urgent]:
    """Two 8-GPU nodes."""
    a_cluster(sql, h100=2)
    sql.execute("update odc.partition set policy = 'fifo'")
    urgent = Urgent(sql)
    urgent.qos("scavenger", grace_s=60)
    urgent.qos("urgent", ("scavenger",), priority=1000)
    yield urgent
    assert urgent.contradictions() == []


# -- the jobs that it ends ------------------------------------------------------------------------


def test_the_cheapest_job_that_suffices_is_ended_and_the_preemptor_takes_its_node(
    urgent: Urgent,
) -> None:
    urgent.run()
    urgent.move(1000)
    young = urgent.run()
    urgent.move(1000)
    job = urgent.ask()
    assert urgent.start() == []
    assert urgent.victims() == {young: job}
    assert urgent.planned(job) == (60, ["h100-2"])
    assert urgent.stops() == {young: 60}
    urgent.move(30)
    assert urgent.start() == []
    assert urgent.victims() == {young: job}, "no other job is preempted while these end"
    urgent.end(young, exit_code=0)
    assert urgent.start() == [job]
    assert urgent.nodes(job) == ["h100-2"]
    assert urgent.state(young) == "PENDING"


def test_no_job_is_preempted_when_there_is_room(urgent: Urgent) -> None:
    urgent.run()
    job = urgent.ask()
    assert urgent.start() == [job]
    assert urgent.victims() == {}


def test_no_job_is_preempted_for_a_job_that_starts_as_soon_anyway(urgent: Urgent) -> None:
    urgent.run(gpus=8)
    urgent.run(gpus=8, time_limit_s=600)
    urgent.move(560)
    urgent.ask()
    assert urgent.start() == []
    assert urgent.victims() == {}


def test_a_qos_ends_only_those_it_preempts(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    urgent.run(qos="urgent")
    urgent.ask()
    assert urgent.start() == []
    assert urgent.victims() == {}


def test_no_job_is_preempted_in_vain(urgent: Urgent) -> None:
    """Four of the eight GPUs belong to a job that may not be preempted."""
    for _ in range(2):
        urgent.run(gpus=4)
        urgent.run(gpus=4, qos="normal")
    urgent.ask(gpus=8)
    assert urgent.start() == []
    assert urgent.victims() == {}


def test_as_few_as_needed_are_ended(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    jobs = [urgent.run(gpus=2) for _ in range(4)]
    urgent.move(100)
    job = urgent.ask(gpus=4)
    urgent.start()
    assert len(urgent.victims()) == 2
    assert set(urgent.victims()) < set(jobs)
    assert set(urgent.victims().values()) == {job}


def test_one_large_cheap_job_is_ended_rather_than_two_dear_ones(urgent: Urgent) -> None:
    dear = [urgent.run(gpus=4) for _ in range(2)]
    urgent.move(1000)
    cheap = urgent.run(gpus=8)
    urgent.move(1)
    urgent.ask(gpus=8)
    urgent.start()
    assert set(urgent.victims()) == {cheap}
    assert cheap not in dear


def test_a_checkpoint_makes_a_job_cheaper(urgent: Urgent) -> None:
    old = urgent.run()
    urgent.move(1000)
    urgent.run()
    urgent.move(1000)
    urgent.sql.execute(
        "update odc.running set checkpoint_at = $2 where job_id = $1", old, urgent.now
    )
    urgent.move(10)
    urgent.ask()
    urgent.start()
    assert set(urgent.victims()) == {old}
    assert urgent.sql.value(
        "select preemption ->> 'lost_gpu_s' from odc.running where job_id = $1", old
    ) == str(8 * 10)


def test_a_job_runs_as_long_as_its_qos_guarantees(urgent: Urgent) -> None:
    urgent.sql.execute("update odc.qos set exempt_s = 600 where name = 'scavenger'")
    old = urgent.run()
    urgent.move(300)
    urgent.run()
    urgent.move(200)
    job = urgent.ask()
    urgent.start()
    assert urgent.victims() == {}
    in_100_s = urgent.now + timedelta(seconds=100)
    texts = urgent.sql.values(
        "select text from odc._why_waiting($1, $2) where cause = 'running_job'", job, urgent.now
    )
    assert [
        text.endswith(f"; it may be preempted from {in_100_s:%Y-%m-%dT%H:%M:%S}Z on")
        for text in texts
    ] == [True], texts
    assert urgent.sql.value("select odc._next_chance($1)", urgent.now) == in_100_s
    urgent.move(100)
    urgent.start()
    assert set(urgent.victims()) == {old}, "the other one is cheaper, but has run for 5 minutes"


def test_a_job_that_ends_within_its_grace_is_left_to_end(urgent: Urgent) -> None:
    """The preemptible job is not enough without the other, which ends in 50 s."""
    urgent.run(qos="normal")
    urgent.run(gpus=4, time_limit_s=600)
    urgent.move(550)
    other = urgent.run(gpus=4)
    urgent.move(5)
    job = urgent.ask(gpus=8)
    urgent.start()
    assert urgent.victims() == {other: job}
    assert urgent.planned(job)[0] == 60


def test_a_job_ending_already_is_waited_for(urgent: Urgent) -> None:
    going = urgent.run()
    urgent.run()
    urgent.cancel(going, who=BOB)
    urgent.move(1)
    urgent.ask()
    urgent.start()
    assert urgent.victims() == {}


def test_a_gang_is_ended_whole(urgent: Urgent) -> None:
    gang = urgent.run(node_count=2)
    urgent.move(10)
    job = urgent.ask(gpus=1)
    urgent.start()
    assert urgent.victims() == {gang: job}
    urgent.leave(gang)
    other = urgent.submit(BOB, gpus_per_node=8, time_limit_s=60)
    assert set(urgent.start()) >= {job, other}


def test_a_gang_takes_whole_nodes_of_one_domain(sql: Sql) -> None:
    a_cluster(
        sql,
        more=[
            {"name": f"n{i}", "gpu_type": "h100", "gpus": 8, "cpus": 64, "mem_mib": 64_000,
             "declared": True, "efa_domain": "ab"[i // 2]}
            for i in range(4)
        ],
    )  # fmt: skip
    urgent = Urgent(sql)
    urgent.qos("scavenger", grace_s=60)
    urgent.qos("urgent", ("scavenger",))
    jobs = {name: urgent.run(node_list=[name]) for name in ("n0", "n2")}
    urgent.move(1000)
    jobs |= {name: urgent.run(node_list=[name]) for name in ("n1", "n3")}
    # The cheapest two are n1 and n3, but they lie in two domains; n2 has a checkpoint.
    urgent.move(10)
    sql.execute(
        "update odc.running set checkpoint_at = $2 where job_id = $1", jobs["n2"], urgent.now
    )
    job = urgent.ask(node_count=2)
    urgent.start()
    assert set(urgent.victims()) == {jobs["n2"], jobs["n3"]}
    urgent.leave(jobs["n2"], jobs["n3"])
    assert urgent.start()[0] == job
    assert urgent.nodes(job) == ["n2", "n3"]


def test_the_job_stays_on_nodes_it_may_use(urgent: Urgent) -> None:
    first, second = urgent.run(), urgent.run()
    urgent.move(10)
    urgent.sql.execute(
        "update odc.running set checkpoint_at = $1 where job_id = $2", urgent.now, first
    )
    urgent.ask(node_list=["h100-2"])
    urgent.start()
    assert set(urgent.victims()) == {second}


def test_a_booking_in_the_way_spares_the_jobs(urgent: Urgent) -> None:
    first, second = urgent.run(), urgent.run(time_limit_s=90_000)
    urgent.move(10)
    urgent.sql.execute(
        "with b as (insert into odc.booking (name, kind, state_at, starts_at, duration_s, "
        "node_list, ignore_running, created_by, created_at) values ('m', 'maintenance', $1, $2, "
        "3600, '{h100-1}', true, 'root', $1) returning id) insert into odc.booking_node "
        "select b.id, n.id from b, odc.node as n where n.name = 'h100-1'",
        urgent.now, urgent.now.replace(hour=1),
    )  # fmt: skip
    urgent.sql.execute(
        "update odc.running set checkpoint_at = $1 where job_id = $2", urgent.now, first
    )
    urgent.ask(time_limit_s=7200)
    urgent.start()
    assert set(urgent.victims()) == {second}


def test_a_job_over_a_limit_preempts_no_job(urgent: Urgent) -> None:
    urgent.run()
    urgent.run()
    urgent.sql.execute(
        "insert into odc.resource_limit select 'qos', id, 'user', 'gpus', 4 from odc.qos "
        "where name = 'urgent'"
    )
    urgent.sql.execute("update odc.qos set deny_on_limit = false where name = 'urgent'")
    urgent.ask()
    assert urgent.start() == []
    assert urgent.victims() == {}


def test_the_amount_left_for_a_preemptor_is_not_used_by_another_job(urgent: Urgent) -> None:
    """Alice may use 8 GPUs; without that limit one of her small jobs could start at once."""
    urgent.sql.execute(
        "insert into odc.resource_limit select 'qos', id, 'user', 'gpus', 8 from odc.qos "
        "where name = 'urgent'"
    )
    urgent.run(qos="normal")
    victim = urgent.run(gpus=7)
    job = urgent.ask(gpus=8)
    small = urgent.ask(gpus=1, time_limit_s=10)
    assert urgent.start() == []
    assert urgent.victims() == {victim: job}
    assert urgent.start() == []
    urgent.leave(victim)
    assert urgent.start() == [job]
    assert urgent.state(small) == "PENDING"


def test_an_exclusive_job_preempts_every_job_on_a_node(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    jobs = [urgent.run(gpus=1), urgent.run(gpus=2)]
    job = urgent.ask(gpus=1, exclusive=True)
    urgent.start()
    assert urgent.victims() == dict.fromkeys(jobs, job)


def test_jobs_without_gpus_cost_what_their_cpus_do(sql: Sql) -> None:
    a_cluster(sql, cpu_x86=2)
    urgent = Urgent(sql)
    urgent.qos("scavenger", grace_s=60)
    urgent.qos("urgent", ("scavenger",))
    urgent.run(gpus=0, cpus_per_task=16)
    small = urgent.run(gpus=0, cpus_per_task=8)
    urgent.move(100)
    urgent.ask(gpus=0, cpus_per_task=12)
    urgent.start()
    assert set(urgent.victims()) == {small}
    [event] = sql.values("select detail ->> 'lost_cpu_s' from odc.event where kind = 'preempting'")
    assert event == "800"


# -- the preemptor's claim ------------------------------------------------------------------------


def test_nodes_freed_for_a_preemptor_start_no_other_job(urgent: Urgent) -> None:
    """Other jobs are first in the order and would fit, but the node is reserved in every pass."""
    urgent.run(qos="normal")
    victim = urgent.run()
    job = urgent.ask(nice=100)
    urgent.start()
    assert urgent.victims() == {victim: job}
    urgent.submit(BOB, gpus_per_node=1, time_limit_s=7200)
    urgent.submit(BOB, gpus_per_node=8, time_limit_s=10)
    urgent.leave(victim)
    assert urgent.start() == [job]


def test_a_short_job_may_use_free_gpus_until_the_preemptor_starts(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    urgent.run(gpus=4)
    urgent.ask(gpus=8)
    short = urgent.submit(BOB, gpus_per_node=4, time_limit_s=30)
    long = urgent.submit(BOB, gpus_per_node=4, time_limit_s=300)
    assert urgent.start() == [short]
    assert urgent.start() == []
    assert urgent.state(long) == "PENDING"


def test_two_preemptors_never_count_on_the_same_victim(urgent: Urgent) -> None:
    first, second = urgent.run(), urgent.run()
    urgent.move(10)
    a, b, c = urgent.ask(), urgent.ask(), urgent.ask()
    urgent.start()
    assert set(urgent.victims()) == {first, second}
    assert set(urgent.victims().values()) == {a, b}
    urgent.leave(first, second)
    assert set(urgent.start()) == {a, b}
    assert urgent.state(c) == "PENDING"


def test_two_small_preemptors_share_one_node_of_one_victim(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    victim = urgent.run()
    a, b = urgent.ask(gpus=4), urgent.ask(gpus=4)
    urgent.start()
    assert urgent.victims() == {victim: a}
    urgent.start()
    urgent.leave(victim)
    assert urgent.start() == [a, b]


def test_a_cancelled_preemptor_leaves_its_victims_going_and_their_nodes_to_all(
    urgent: Urgent,
) -> None:
    urgent.run(qos="normal")
    victim = urgent.run()
    job = urgent.ask()
    urgent.start()
    urgent.cancel(job)
    urgent.submit(BOB, gpus_per_node=8)
    assert urgent.start() == []
    assert urgent.victims() == {victim: job}
    urgent.leave(victim)
    assert urgent.start() == [victim], "queued first of all that are left"


def test_a_held_preemptor_loses_its_claim_once_its_victims_are_gone(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    victim = urgent.run()
    job = urgent.ask()
    urgent.start()
    urgent.hold(job)
    urgent.leave(victim)
    other = urgent.submit(BOB, gpus_per_node=8)
    assert urgent.start() == [other] or urgent.state(victim) == "CONFIGURING"
    assert urgent.pending(job)["claim_nodes"] is None
    urgent.release(job)
    urgent.start()
    assert set(urgent.victims().values()) <= {job}


def test_a_preemptor_whose_node_went_down_looks_for_others(urgent: Urgent) -> None:
    dear = urgent.run()
    urgent.move(1000)
    cheap = urgent.run()
    urgent.move(10)
    job = urgent.ask()
    urgent.start()
    assert urgent.victims() == {cheap: job}
    urgent.sql.execute(
        "select odc.set_node_state(p_actor => $1::jsonb, p_names => '{h100-2}', "
        "p_state => 'DRAIN', p_reason => 'broken', p_now => $2)",
        '{"user": "root", "uid": 0, "operator": true}', urgent.now,
    )  # fmt: skip
    urgent.start()
    assert urgent.victims() == {cheap: job}, "its first victim still goes"
    urgent.leave(cheap)
    urgent.start()
    urgent.start()
    assert urgent.victims() == {dear: job}
    urgent.leave(dear)
    assert urgent.start()[0] == job


def test_each_task_of_an_array_preempts_for_itself(urgent: Urgent) -> None:
    victims = [urgent.run(), urgent.run()]
    array = urgent.ask(array="0-2")
    urgent.start()
    urgent.start()
    assert set(urgent.victims()) == set(victims)
    claimants = set(urgent.victims().values())
    assert claimants == {urgent.task(array, 0), urgent.task(array, 1)}
    urgent.leave(*victims)
    assert set(urgent.start()) == claimants


def test_the_last_task_of_an_array_preempts_as_the_array(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    victim = urgent.run()
    array = urgent.ask(array="7")
    urgent.start()
    assert urgent.victims() == {victim: array}
    urgent.leave(victim)
    assert urgent.start() == [array]


def test_a_preemptor_far_back_in_the_queue_ends_others_all_the_same(urgent: Urgent) -> None:
    urgent.run(gpus=8, qos="normal", time_limit_s=200_000)
    victim = urgent.run()
    for _ in range(40):
        urgent.submit(BOB, gpus_per_node=8)
    job = urgent.ask()
    urgent.start()
    assert urgent.victims() == {victim: job}


def test_a_protected_job_before_the_preemptor_is_not_delayed(urgent: Urgent) -> None:
    """Bob's gang is promised both nodes in 1000 s; an hour of the preemptor would run into that."""
    urgent.run(time_limit_s=1000)
    urgent.run(time_limit_s=1000)
    gang = urgent.submit(BOB, gpus_per_node=8, node_count=2)
    urgent.ask(time_limit_s=3600)
    short = urgent.ask(time_limit_s=600)
    urgent.start()
    assert set(urgent.victims().values()) == {short}
    assert urgent.planned(gang)[0] == 1000


def test_a_claim_holds_under_another_leader(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    victim = urgent.run()
    job = urgent.ask()
    urgent.start()
    term = urgent.sql.value("select odc.take_term(0, 0, 'another', null, $1)", urgent.now)
    urgent.submit(BOB, gpus_per_node=8)
    started = "select started from odc.plan_pass($1, $2)"
    assert urgent.sql.value(started, term, urgent.now) == []
    stops = "select job_id from odc.take_stops($1, $2)"
    assert urgent.sql.values(stops, term, urgent.now) == [victim]
    urgent.move(5)
    urgent.sql.execute(
        "select * from odc.record_facts($1, $2, '{1}', '{0}', '{exited}', $3, '{0}', '{null}', "
        "'{null}', '{null}', $4)",
        term, [victim], [urgent.now], urgent.now,
    )  # fmt: skip
    assert urgent.sql.value(started, term, urgent.now) == [job]


# -- the victim after its end ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "requeue", "state"),
    [("requeue", True, "PENDING"), ("requeue", False, "PREEMPTED"), ("cancel", True, "PREEMPTED")],
)
def test_a_victim_is_requeued_if_its_qos_and_the_job_allow_it(
    urgent: Urgent, mode: str, requeue: bool, state: str
) -> None:
    urgent.sql.execute("update odc.qos set preempt_mode = $1 where name = 'scavenger'", mode)
    urgent.run(qos="normal")
    victim = urgent.run(requeue=requeue)
    urgent.move(3 * 3600)
    job = urgent.ask()
    urgent.start()
    urgent.leave(victim)
    assert urgent.state(victim) == state
    record = urgent.sql.row("select * from odc.attempt where job_id = $1", victim)
    assert (record["state"], record["requeued"]) == ("PREEMPTED", state == "PENDING")
    text = urgent.sql.value("select odc._preemption_text(preemption) from odc.attempt")
    assert text == f"preempted by job {job} (QOS urgent) after 3 h; 24 GPU-hours lost"
    if state == "PREEMPTED":
        assert urgent.job(victim)["end_detail"] == text


def test_a_victim_that_ended_before_its_stop_keeps_its_own_end(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    victim = urgent.run()
    job = urgent.ask()
    urgent.start()
    urgent.end(victim, exit_code=0)
    assert urgent.state(victim) == "COMPLETED"
    assert urgent.job(victim)["end_detail"] is None
    assert urgent.start() == [job]


def test_a_victim_that_its_user_cancels_is_cancelled(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    victim = urgent.run()
    job = urgent.ask()
    urgent.start()
    urgent.stops()
    urgent.cancel(victim, who=BOB)
    assert urgent.stops() == {victim: None}
    urgent.end(victim)
    assert urgent.state(victim) == "CANCELLED"
    assert urgent.start() == [job]


def test_a_longer_limit_does_not_lengthen_the_grace(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    victim = urgent.run()
    job = urgent.ask()
    urgent.start()
    root = Identity(user="root", uid=0, gid=0, operator=True)
    urgent.update(victim, changes={"time_limit_s": 200_000}, who=root)
    urgent.start()
    assert urgent.planned(job)[0] == 60


def test_a_repeated_stop_has_the_rest_of_the_grace(urgent: Urgent) -> None:
    urgent.sql.execute("update odc.qos set grace_s = 600 where name = 'scavenger'")
    urgent.run(qos="normal")
    victim = urgent.run()
    urgent.ask()
    urgent.start()
    assert urgent.stops() == {victim: 600}
    urgent.move(100)
    assert urgent.stops() == {victim: 500}
    urgent.move(1000)
    assert urgent.stops() == {victim: 0}


def test_a_qos_without_grace_gives_the_usual_one(urgent: Urgent) -> None:
    urgent.sql.execute("update odc.qos set grace_s = 0 where name = 'scavenger'")
    urgent.run(qos="normal")
    victim = urgent.run()
    urgent.ask()
    urgent.start()
    assert urgent.stops() == {victim: None}


def test_the_events_name_the_preemptor_the_rule_and_the_cost(urgent: Urgent) -> None:
    urgent.run(qos="normal")
    victim = urgent.run()
    urgent.move(100)
    job = urgent.ask()
    urgent.start()
    event = urgent.sql.row("select * from odc.event where kind = 'preempting'")
    assert event["job_id"] == victim
    assert urgent.sql.value(
        "select detail @> $1::jsonb from odc.event where kind = 'preempting'",
        f'{{"by": {job}, "qos": "urgent", "victim_qos": "scavenger", "mode": "requeue", '
        '"ran_s": 100, "grace_s": 60, "lost_gpu_s": 800, "attempt": 1}',
    )
    assert urgent.sql.value(
        "select detail @> $1::jsonb from odc.event where kind = 'preempts' and job_id = $2",
        f'{{"victims": [{victim}], "nodes": ["h100-2"], "lost_gpu_s": 800}}', job,
    )  # fmt: skip
    urgent.leave(victim)
    assert urgent.events(victim)[-2:] == ["preempting", "requeued"]


# -- found by the state machine (tests/sql/test_promises.py) ---------------------------------------


def test_a_node_is_kept_for_a_preemptor_that_also_waits_for_a_job_that_was_asked_to_end(
    urgent: Urgent,
) -> None:
    """That job may run for another day; no other job may take the GPUs beside it."""
    stopping = urgent.run(4, qos="normal", node_list=["h100-1"])
    urgent.run(4, node_list=["h100-1"])
    urgent.requeue(stopping, who=ROOT)
    job = urgent.ask(node_list=["h100-1"])
    assert urgent.start() == []
    assert urgent.start() == []
    assert urgent.planned(job) == (60, ["h100-1"])
    [victim] = urgent.victims()
    urgent.leave(victim)
    urgent.submit(gpus_per_node=4, node_list=["h100-1"], time_limit_s=3600)
    assert urgent.start() == []
    urgent.end(stopping)
    assert urgent.start() == [job]
