"""Heterogeneous jobs: all components start in one commit, or none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odcd.errors import BadRequest, NeverFits, NotImplementedYet, OdcError
from odcd.jobs.submission import prepare
from odcd.records.job import MAX_COMPONENTS, ComponentSpec
from tests.support.builders.jobs import BOB, Queue, a_cluster, a_job, submit
from tests.support.harness.database import Sql

GPUS = {"gpus": 8, "gpu_type": "h100"}
CPUS = {"cpus_per_task": 8}


@pytest.fixture
def queue(sql: Sql) -> Iterator[Queue]:
    """Two nodes of 8 H100 and 64 CPUs, two of 4 L4 and 16 CPUs, one of 16 CPUs."""
    a_cluster(sql, h100=2, l4=2, cpu_x86=1)
    queue = Queue(sql)
    yield queue
    assert queue.contradictions() == []


def het(queue: Queue, *components: dict[str, Any], **fields: Any) -> int:
    return queue.submit(**job(*components), **fields)


def job(*components: dict[str, Any]) -> dict[str, Any]:
    return {"launch": "first", "components": [ComponentSpec(**one) for one in components]}


def refused(queue: Queue, *components: dict[str, Any], **fields: Any) -> OdcError:
    return queue.refused(**job(*components), **fields)


def ranks(queue: Queue, job_id: int) -> list[tuple[int, str, int, int]]:
    """Rank, node, GPUs and CPUs of each member."""
    rows = queue.sql.rows(
        "select a.rank, n.name, a.gpus, a.cpus from odc.allocation as a "
        "join odc.node as n on n.id = a.node_id where a.job_id = $1 order by a.rank",
        job_id,
    )
    return [(row["rank"], row["name"], row["gpus"], row["cpus"]) for row in rows]


def planned(queue: Queue, job_id: int) -> dict[str, Any]:
    return queue.sql.row("select * from odc.planned where job_id = $1", job_id)


def test_a_heterogeneous_job_takes_no_id_that_it_does_not_use(queue: Queue) -> None:
    """Before: each one left a gap."""
    first = queue.submit(gpus=1)
    assert het(queue, CPUS, CPUS, CPUS) == first + 1
    assert het(queue, CPUS, CPUS) == first + 4
    assert queue.submit(gpus=1) == first + 6


def test_components_start_together_with_ranks_in_their_order(queue: Queue) -> None:
    one = het(queue, CPUS, {**GPUS, "node_count": 2, "gpus": 16}, {"gpus": 2, "gpu_type": "l4"})
    assert queue.start() == [one]
    [first, *others] = ranks(queue, one)
    assert (first[0], first[1], first[2:]) == (0, "cpu-x86-1", (0, 8))
    assert [(rank, node, gpus) for rank, node, gpus, _ in others[:2]] == [
        (1, "h100-1", 8), (2, "h100-2", 8),
    ]  # fmt: skip
    assert (others[2][0], others[2][1][:2], others[2][2]) == (3, "l4", 2)
    assert queue.running(one)["node_count"] == 4


def test_a_component_without_options_is_one_task_on_one_node(queue: Queue) -> None:
    one = het(queue, {}, {**GPUS, "gpus": 1}, {})
    assert queue.start() == [one]
    assert [(rank, gpus, cpus) for rank, _, gpus, cpus in ranks(queue, one)][::2] == [
        (0, 0, 1), (2, 0, 1),
    ]  # fmt: skip


def test_a_job_of_which_one_component_does_not_fit_takes_nothing(queue: Queue) -> None:
    blocker = queue.submit(gpus=8, gpu_type="h100", time_limit_s=3600)
    assert queue.start() == [blocker]
    both = het(queue, {"gpus": 16, "gpu_type": "h100", "node_count": 2}, CPUS, time_limit_s=600)
    before = queue.sql.rows("select * from odc.node_free order by node_id")
    assert queue.start() == []
    assert queue.sql.rows("select * from odc.node_free order by node_id") == before
    assert ranks(queue, both) == []
    queue.end(blocker)
    assert queue.start() == [both]


def test_components_may_share_a_node(queue: Queue) -> None:
    one = het(queue, *[{"gpus": 4, "gpu_type": "h100"}] * 4)
    assert queue.start() == [one]
    assert [(node, gpus) for _, node, gpus, _ in ranks(queue, one)] in (
        [("h100-1", 4), ("h100-1", 4), ("h100-2", 4), ("h100-2", 4)],
        [("h100-2", 4), ("h100-2", 4), ("h100-1", 4), ("h100-1", 4)],
    )
    masks = queue.sql.rows(
        "select node_id, bit_and(gpu_mask) as shared from odc.allocation group by node_id"
    )
    assert [row["shared"] for row in masks] == [0, 0]


def test_the_component_with_the_fewest_nodes_chooses_first(queue: Queue) -> None:
    """In the order of the request, the first one would take the last node of the second one."""
    for node in ("h100-1", "l4-1", "l4-2"):
        queue.submit(node_list=[node], exclusive=True)
    queue.start()
    one = het(queue, {"cpus_per_task": 16}, {"exclusive": True, "node_list": ["cpu-x86-1"]})
    assert queue.start() == [one]
    assert [node for _, node, _, _ in ranks(queue, one)] == ["h100-2", "cpu-x86-1"]


def test_lists_of_nodes_apply_to_their_component(queue: Queue) -> None:
    one = het(
        queue, {"gpus": 1, "node_list": ["h100-2"]},
        {"gpus": 1, "gpu_type": "h100", "exclude_nodes": ["h100-2"]},
    )  # fmt: skip
    assert queue.start() == [one]
    assert [node for _, node, _, _ in ranks(queue, one)] == ["h100-2", "h100-1"]


def test_the_planned_start_is_the_first_moment_at_which_all_fit(queue: Queue) -> None:
    for limit_s, node in ((600, "h100-1"), (1800, "h100-2"), (1200, "cpu-x86-1")):
        queue.submit(node_list=[node], exclusive=True, time_limit_s=limit_s)
    queue.start()
    one = het(queue, GPUS, {"exclusive": True, "node_list": ["cpu-x86-1"]}, time_limit_s=600)
    two = het(queue, *[{"gpus": 8, "gpu_type": "h100"}] * 2, time_limit_s=600, who=BOB)
    queue.sql.execute("update odc.policy set plan_depth = 5")
    assert queue.start() == []
    plan = planned(queue, one)
    assert (plan["planned_start_at"] - queue.now).total_seconds() == pytest.approx(1200, abs=1)
    assert plan["node_names"] == ["h100-1", "cpu-x86-1"]
    assert "1 node with 8 free h100 GPUs + 1 node with no other jobs" in plan["detail"]
    plan = planned(queue, two)
    assert (plan["planned_start_at"] - queue.now).total_seconds() == pytest.approx(1800, abs=1)
    assert plan["node_names"] == ["h100-1", "h100-2"]


def test_no_job_behind_it_may_delay_it(queue: Queue) -> None:
    """Nodes are kept for each of its components, and jobs that end before it still start."""
    for limit_s, node in ((600, "h100-1"), (600, "h100-2")):
        queue.submit(node_list=[node], exclusive=True, time_limit_s=limit_s)
    queue.start()
    one = het(queue, GPUS, {"exclusive": True, "node_list": ["cpu-x86-1"]}, time_limit_s=600)
    long = queue.submit(node_list=["cpu-x86-1"], time_limit_s=3600, who=BOB)
    short = queue.submit(node_list=["cpu-x86-1"], time_limit_s=300, who=BOB)
    assert queue.start() == [short]
    queue.move(601)
    queue.end(*queue.sql.values("select job_id from odc.running order by 1"))
    assert one in queue.start()
    assert queue.state(long) == "PENDING"


def test_it_waits_behind_a_job_that_is_protected(queue: Queue) -> None:
    holder = queue.submit(gpus=8, node_list=["h100-1"], time_limit_s=600)
    queue.start()
    gang = queue.submit(gpus=16, gpu_type="h100", node_count=2, time_limit_s=600)
    late = het(queue, GPUS, CPUS, time_limit_s=3600, who=BOB)
    soon = het(queue, GPUS, CPUS, time_limit_s=300, who=BOB)
    assert queue.start() == [soon]
    queue.move(600)
    queue.end(holder, soon)
    assert queue.start() == [gang]
    assert queue.state(late) == "PENDING"


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_the_loss_of_any_component_requeues_the_whole_job(queue: Queue, lost: int) -> None:
    one = het(queue, CPUS, {"gpus": 16, "node_count": 2, "gpu_type": "h100"})
    queue.start()
    members = queue.members(one)
    facts(queue, members, "started")
    facts(queue, [members[lost]], "lost")
    assert queue.running(one)["state"] == "COMPLETING"
    facts(queue, [m for m in members if m["rank"] != lost], "exited", signal=15)
    assert queue.pending(one)["attempt"] == 2
    assert queue.sql.value("select count(*) from odc.allocation") == 0
    assert queue.start() == [one]
    assert len(ranks(queue, one)) == 3


def test_the_end_of_the_script_ends_all_components(queue: Queue) -> None:
    one = het(queue, CPUS, GPUS)
    queue.start()
    members = queue.members(one)
    facts(queue, members, "started")
    facts(queue, members[:1], "exited")
    stops = queue.sql.rows("select * from odc.take_stops(0, $1)", queue.now)
    assert [stop["job_id"] for stop in stops] == [one]
    facts(queue, members[1:], "exited", signal=15)
    assert queue.state(one) == "COMPLETED"


def facts(
    queue: Queue, members: list[dict[str, Any]], kind: str, signal: int | None = None
) -> None:
    n = len(members)
    code = 0 if kind == "exited" and signal is None else None
    queue.sql.rows(
        "select * from odc.record_facts(0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        [m["job_id"] for m in members], [m["attempt"] for m in members],
        [m["rank"] for m in members], [kind] * n, [queue.now] * n, [code] * n,
        [signal] * n, [None] * n, [None] * n, queue.now,
    )  # fmt: skip


def test_cancel_hold_and_requeue_apply_to_all_components(queue: Queue) -> None:
    one = het(queue, CPUS, GPUS)
    assert queue.hold(one) == {one: "held"}
    assert queue.start() == []
    queue.release(one)
    assert queue.start() == [one]
    assert queue.requeue(one) == {one: "requeueing"}
    queue.end(one)
    assert (queue.state(one), queue.start()) == ("PENDING", [one])
    queue.cancel(one)
    queue.end(one)
    assert queue.state(one) == "CANCELLED"
    two = het(queue, CPUS, GPUS)
    queue.cancel(two)
    assert (queue.state(two), queue.start()) == ("CANCELLED", [])


def test_a_dependency_on_it_waits_for_all(queue: Queue) -> None:
    one = het(queue, CPUS, GPUS)
    after = queue.submit(dependency=f"afterok:{one}")
    assert queue.start() == [one]
    facts(queue, queue.members(one)[:1], "exited")
    assert (queue.waits(after), queue.start()) == ("waiting", [])
    facts(queue, queue.members(one)[1:], "exited", signal=15)
    assert queue.start() == [after]


def test_a_dependency_on_a_component_is_one_on_the_job(queue: Queue) -> None:
    """Before: the component's id was refused as unknown."""
    plain = queue.submit()
    one = het(queue, CPUS, GPUS)
    after = queue.submit(dependency=f"afterok:{plain}:{one + 1}")
    later = queue.submit(hold=True)
    assert queue.update(later, changes={"dependency": f"afterany:{one + 1}"}) == {
        later: "updated",
    }  # fmt: skip
    assert {row["target_id"] for row in queue.sql.rows("select target_id from odc.dependency")} == {
        plain, one,
    }  # fmt: skip
    assert sorted(queue.start()) == sorted([plain, one])
    queue.end(plain)
    assert queue.start() == []
    queue.end(one)
    assert queue.start() == [after]
    assert queue.refused(dependency=f"afterok:{one + 2 + 1000}").code == "OD011"
    assert queue.refused(dependency=f"afterok:{one + 1}_1").code == "OD011"


def test_it_takes_consecutive_ids_and_no_job_gets_those_of_its_components(queue: Queue) -> None:
    answers = submit(queue.sql, a_job(), a_job(**job(CPUS, CPUS, CPUS)), a_job())
    before, one, after = (answer.job_id for answer in answers)
    assert None not in (before, one, after)
    later = queue.submit()
    taken = {before, after, later}
    assert not taken & {one, one + 1, one + 2}


def test_a_repeated_request_finds_the_same_job(queue: Queue) -> None:
    first, again = (submit(queue.sql, a_job(**job(CPUS, GPUS)), key="k") for _ in range(2))
    assert first == again


def test_the_same_components_in_another_order_are_another_job(queue: Queue) -> None:
    """The digest of a JSON array is the same after a rotation by 64 elements."""
    parts = [{"cpus_per_task": 1 + (at < 8)} for at in range(128)]
    for begin in range(0, 128, 16):
        het(queue, *parts[begin:], *parts[:begin], hold=True)


def test_the_executor_learns_how_many_nodes_each_component_has(queue: Queue) -> None:
    one = het(queue, CPUS, {"gpus": 16, "node_count": 2, "gpu_type": "h100"})
    queue.start()
    body = json.loads(queue.sql.value("select odc.dispatch_of($1)::text", one))
    assert (body["component_nodes"], len(body["members"])) == ([1, 2], 3)


def test_limits_count_what_all_components_ask_for(queue: Queue) -> None:
    queue.sql.execute(
        "insert into odc.resource_limit (scope, scope_id, per, what, value) "
        "select 'qos', id, 'user', 'gpus', 9 from odc.qos where name = 'normal'"
    )
    error = refused(queue, GPUS, {"gpus": 2})
    assert error.code == "OD009"
    one = het(queue, GPUS, {"gpus": 1})
    more = queue.submit(gpus=1)
    assert queue.start() == [one]
    queue.end(one)
    assert queue.start() == [more]


def test_licences_of_components_are_added(queue: Queue) -> None:
    queue.sql.execute("insert into odc.licence (name, total) values ('sim', 3)")
    one = het(queue, {"licences": {"sim": 1}}, {"licences": {"sim": 2}})
    other = queue.submit(licences={"sim": 1})
    assert queue.shape(one)["licences"] in ({"sim": 3}, '{"sim": 3}')
    assert queue.start() == [one]
    queue.end(one)
    assert queue.start() == [other]
    assert "licence" in refused(queue, *[{"licences": {"sim": 2}}] * 2).message


def test_it_does_not_preempt_others(queue: Queue) -> None:
    queue.sql.execute(
        "insert into odc.qos (name, priority, preempts) select 'high', 10, array[id] from odc.qos "
        "where name = 'normal'"
    )
    holders = [queue.submit(node_list=[name], exclusive=True, time_limit_s=600) for name in
               ("h100-1", "h100-2")]  # fmt: skip
    assert sorted(queue.start()) == holders
    one = het(queue, GPUS, CPUS, qos="high", who=BOB)
    assert queue.start() == []
    assert queue.sql.values("select job_id from odc.running where intent is not null") == []
    assert planned(queue, one)["planned_start_at"] is not None


SIZES = st.fixed_dictionaries({
    "gpus_per_node": st.integers(0, 8), "node_count": st.integers(1, 2),
    "cpus_per_task": st.integers(1, 16), "exclusive": st.booleans(),
})  # fmt: skip


@settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(jobs=st.lists(st.lists(SIZES, min_size=1, max_size=4), min_size=1, max_size=6))
def test_whatever_is_queued_each_job_has_all_its_nodes_or_none(
    sql: Sql, jobs: list[list[dict[str, Any]]]
) -> None:
    """Jobs of one component are not heterogeneous. None of them waits forever for one that is."""
    with sql.trial():
        a_cluster(sql, h100=2, l4=1, cpu_x86=1)
        sql.execute("update odc.policy set plan_depth = 3")
        queue = Queue(sql)
        asked: dict[int, int] = {}
        for parts in jobs:
            fields = parts[0] if len(parts) == 1 else job(*parts)
            [answer] = submit(sql, a_job(**{**fields, "time_limit_s": 60 * len(parts)}))
            if answer.job_id is not None:
                asked[answer.job_id] = sum(one["node_count"] for one in parts)
        for _ in range(len(asked) + 1):
            queue.start()
            assert queue.contradictions() == []
            for row in sql.rows(
                "select job_id, count(*) as n, min(rank) as low, max(rank) as high "
                "from odc.allocation group by job_id"
            ):
                count = asked[row["job_id"]]
                assert (row["n"], row["low"], row["high"]) == (count, 0, count - 1)
            queue.move(301)
            queue.end(*sql.values("select job_id from odc.running order by job_id"))
        waiting = sql.values("select job_id from odc.pending order by job_id")
        assert all(queue.shape(one)["components"] is not None for one in waiting)


def test_another_order_is_tried_if_the_components_take_each_others_nodes(queue: Queue) -> None:
    """Whichever comes first takes the fullest node that fits."""
    queue.submit(node_list=["l4-2"], exclusive=True)
    queue.start()
    one = het(
        queue, {"gpus_per_node": 5}, {"gpus_per_node": 3}, {"gpus_per_node": 1, "node_count": 2},
    )  # fmt: skip
    assert queue.start() == [one]


# -- answers ------------------------------------------------------------------------------------


def test_why_and_lists_answer_for_the_whole_job(queue: Queue) -> None:
    holders = [
        queue.submit(node_list=[node], exclusive=True, time_limit_s=limit_s)
        for node, limit_s in (("h100-1", 600), ("cpu-x86-1", 1200))
    ]
    assert sorted(queue.start()) == holders
    operator = json.dumps({"user": "root", "uid": 0, "operator": True})
    queue.sql.execute(
        "select odc.set_node_state($1::jsonb, '{h100-2}', 'DRAIN', 'fan', $2)", operator, queue.now
    )
    one = het(
        queue, {**GPUS, "name": "train"}, {"exclusive": True, "node_list": ["cpu-x86-1"]},
        time_limit_s=600,
    )  # fmt: skip
    queue.start()
    text = queue.sql.value("select odc.explain_job($1, $2)", one, queue.now)
    why = json.loads(text)["why"]
    assert why[0]["text"].startswith("needs at the same time 1 node with 8 free h100 GPUs + 1 node")
    assert {cause.get("job_id") for cause in why} >= set(holders)
    drained = queue.sql.values("select text from odc._why_nodes($1)", one)
    assert drained == ["h100-2 is drained: fan (by root)"]
    row = queue.sql.row("select * from odc.pending_job where id = $1", one)
    components = json.loads(row["components"])
    assert (row["gpus"], row["node_count"]) == (8, 2)
    assert [(part["name"], part["gpus_per_node"]) for part in components] == [
        ("train", 8), (None, 0),
    ]  # fmt: skip


ONE_NODE = {"exclusive": True, "node_list": ["cpu-x86-1"]}


def test_components_that_never_fit_beside_each_other_have_a_true_reason(queue: Queue) -> None:
    """Before: "the nodes that it could run on are down, drained, or allocated without a limit"."""
    one = het(queue, ONE_NODE, ONE_NODE)
    assert queue.start() == []
    assert reason(queue, one) == "Resources"
    need = "needs at the same time 1 node with no other jobs + 1 node with no other jobs"
    text = f"{need}; no time is in sight at which all of them fit"
    assert planned(queue, one)["detail"] == text
    answer = json.loads(queue.sql.value("select odc.explain_job($1, $2)", one, queue.now))
    assert [why["text"] for why in answer["why"]] == [text]


def test_a_component_whose_nodes_are_down_is_the_reason_of_its_job(queue: Queue) -> None:
    operator = json.dumps({"user": "root", "uid": 0, "operator": True})
    queue.sql.execute(
        "select odc.set_node_state($1::jsonb, '{h100-1,h100-2}', 'DRAIN', 'fan', $2)",
        operator, queue.now,
    )  # fmt: skip
    one = het(queue, ONE_NODE, {**GPUS, "node_count": 2})
    assert queue.start() == []
    assert reason(queue, one) == "ReqNodeNotAvail"


def reason(queue: Queue, job_id: int) -> str:
    return queue.sql.value("select reason from odc.pending_job where id = $1", job_id)


def test_a_preview_finds_the_moment_at_which_all_components_fit(queue: Queue) -> None:
    queue.submit(node_list=["cpu-x86-1"], exclusive=True, time_limit_s=1200)
    queue.start()
    [asked] = prepare(
        BOB, [a_job(**job(GPUS, {"exclusive": True, "node_list": ["cpu-x86-1"]}))], key=None,
        dry_run=True,
    ).request["jobs"]  # fmt: skip
    text = queue.sql.value(
        "select odc.preview_jobs($1::jsonb, $2)", json.dumps([asked | {"uid": BOB.uid}]), queue.now
    )
    [answer] = json.loads(text)
    assert answer["node_names"] == ["h100-1", "cpu-x86-1"] or answer["node_names"] == [
        "h100-2", "cpu-x86-1",
    ]  # fmt: skip
    late = datetime.fromisoformat(answer["start_at"]) - queue.now
    assert late.total_seconds() == pytest.approx(1200, abs=1)
    assert queue.sql.value("select count(*) from odc.pending") == 0


# -- bad input ----------------------------------------------------------------------------------


def test_a_component_that_no_node_could_run_refuses_the_whole_job(queue: Queue) -> None:
    error = refused(queue, CPUS, {"gpus": 9, "node_count": 1})
    assert isinstance(error, NeverFits)
    assert error.message.startswith("component 1: no node could ever run it")
    assert queue.sql.value("select count(*) from odc.job") == 0


def test_components_that_never_fit_together_are_refused(queue: Queue) -> None:
    error = refused(queue, *[GPUS] * 4)
    assert isinstance(error, NeverFits)
    assert "together they request 32 GPUs" in error.message
    error = refused(queue, {"exclusive": True, "node_count": 5}, CPUS)
    assert "together they request 5 nodes without other jobs on them" in error.message


@pytest.mark.parametrize("count", [1, MAX_COMPONENTS + 1])
def test_the_number_of_components_is_bounded(queue: Queue, count: int) -> None:
    with pytest.raises(BadRequest, match=f"2 to {MAX_COMPONENTS} components"):
        het(queue, *[CPUS] * count)


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"array": "0-3"}, "an array cannot be heterogeneous"), ({"gpus": 1}, "itself has gpus"),
     ({"launch": "all"}, "first node of its first component")],
)  # fmt: skip
def test_what_a_heterogeneous_job_cannot_be(
    queue: Queue, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadRequest, match=words):
        queue.submit(**{**job(CPUS, GPUS), **fields})


def test_several_partitions_are_refused(queue: Queue) -> None:
    queue.sql.execute(
        "insert into odc.partition (name, state, all_nodes) values ('other', 'UP', true)"
    )
    error = refused(queue, CPUS, GPUS, partitions=["main", "other"])
    assert isinstance(error, NotImplementedYet)


def test_its_partition_cannot_be_changed(queue: Queue) -> None:
    one = het(queue, CPUS, GPUS)
    assert queue.update(one, changes={"partitions": ["main"]}) == {one: "OD016"}
    assert queue.update(one, changes={"time_limit_s": 60}) == {one: "updated"}


def test_an_id_of_a_component_is_explained(queue: Queue) -> None:
    before, job_id = queue.submit(), het(queue, CPUS, CPUS, CPUS)
    after = queue.submit()
    hint = f"It is component {job_id}+2 of a heterogeneous job: name job {job_id}."
    outcomes = queue.change("hold", job_id + 2, after + 1)
    assert [one["hint"] for one in outcomes] == [hint, "`odcctl queue -t all` lists all jobs."]
    leaders = queue.sql.rows(
        "select c.id, odc._leader_of(c.id) as leader from unnest($1::bigint[]) as c (id)",
        [before, job_id, job_id + 1, job_id + 2, after],
    )
    assert [row["leader"] for row in leaders] == [None, None, job_id, job_id, None]
