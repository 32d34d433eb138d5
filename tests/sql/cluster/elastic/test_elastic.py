"""Elastic groups: which nodes are requested for pending jobs, and which are removed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odcd.errors import NeverFits, OdcError, WrongState
from tests.support.builders.groups import Group, Groups
from tests.support.builders.jobs import Queue, a_cluster
from tests.support.harness.database import Sql

WHOLE: dict[str, Any] = {"gpus": 8, "gpu_type": "h100"}
HOUR = 3600


@pytest.fixture
def queue(sql: Sql) -> Queue:
    return Queue(sql)


def ready(queue: Queue, nodes: int, **fields: Any) -> Groups:
    """A group with this many nodes."""
    groups = Groups(queue, Group("g", desired=nodes, **fields))
    groups.launch("g")
    return groups


def emptied(groups: Groups, seconds: float) -> None:
    """Time passes, in rounds."""
    groups.see()
    groups.queue.move(seconds)
    groups.see()


# -- growing ---------------------------------------------------------------------------------------


def test_a_job_for_which_there_is_no_node_is_accepted_and_gets_one(queue: Queue) -> None:
    groups = Groups(queue, Group("g"))
    job = queue.submit(**WHOLE)
    assert queue.start() == []
    assert groups.grow() == {"g": 1}
    assert groups.needs() == {job: "g"}
    groups.ask()
    groups.launch("g")
    assert queue.start() == [job]
    assert groups.grow() == {}
    assert groups.needs() == {}
    assert queue.contradictions() == []


def test_a_job_that_no_group_could_run_is_still_rejected(queue: Queue) -> None:
    Groups(queue, Group("g", max_nodes=2))
    assert isinstance(queue.refused(gpus=9, gpu_type="h100", node_count=1), NeverFits)
    assert isinstance(queue.refused(node_count=3, gpus_per_node=8, gpu_type="h100"), NeverFits)
    assert queue.submit(node_count=2, gpus_per_node=8, gpu_type="h100")


def test_nodes_are_requested_for_as_many_jobs_as_the_maximum_allows(queue: Queue) -> None:
    groups = Groups(queue, Group("g", max_nodes=3))
    jobs = [queue.submit(**WHOLE) for _ in range(5)]
    queue.start()
    assert groups.grow() == {"g": 3}
    assert list(groups.needs()) == jobs[:3]


def test_small_jobs_share_a_new_node(queue: Queue) -> None:
    groups = Groups(queue, Group("g"))
    queue.sql.execute("update odc.partition set placement = 'spread'")
    for _ in range(9):
        queue.submit(gpus=1, gpu_type="h100")
    assert groups.grow() == {"g": 2}
    assert queue.sql.values("select distinct placement from odc.partition") == ["spread"]


def test_a_gang_gets_all_of_its_nodes_or_none(queue: Queue) -> None:
    groups = ready(queue, 1, max_nodes=3)
    gang = queue.submit(node_count=3, gpus_per_node=8, gpu_type="h100")
    queue.start()
    assert groups.grow() == {"g": 3}
    assert groups.needs() == {gang: "g"}


def test_a_gang_that_cannot_be_completed_requests_nothing(queue: Queue) -> None:
    groups = ready(queue, 1, max_nodes=3)
    busy = queue.submit(**WHOLE, time_limit_s=24 * HOUR)
    assert queue.start() == [busy]
    queue.submit(node_count=3, gpus_per_node=8, gpu_type="h100")
    queue.start()
    assert groups.grow() == {}
    assert groups.needs() == {}


def test_nodes_on_their_way_are_not_requested_twice(queue: Queue) -> None:
    groups = Groups(queue, Group("g", cooldown_s=0))
    job = queue.submit(**WHOLE)
    assert groups.grow() == {"g": 1}
    groups.ask()
    for _ in range(3):
        queue.move(10)
        groups.see()
        assert groups.grow() == {}
        assert groups.needs() == {job: "g"}
    groups.launch("g", join=False)
    assert groups.grow() == {}
    more = queue.submit(**WHOLE)
    assert groups.grow() == {"g": 2}
    assert groups.needs() == {job: "g", more: "g"}


@pytest.mark.parametrize("state", ["DOWN", "DRAIN"])
def test_a_node_that_has_just_joined_is_waited_for(queue: Queue, state: str) -> None:
    """It is not ready, or its device plugin offers no GPUs yet."""
    groups = Groups(queue, Group("g", cooldown_s=0))
    job = queue.submit(**WHOLE)
    groups.grow()
    groups.ask()
    groups.states["i-00000001"] = state
    groups.launch("g")
    assert queue.start() == []
    assert groups.grow() == {}
    assert groups.needs() == {job: "g"}
    queue.move(16 * 60)
    groups.see()
    assert groups.grow() == {"g": 2}


def test_a_group_does_not_grow_during_its_cooldown(queue: Queue) -> None:
    groups = Groups(queue, Group("g", cooldown_s=60))
    queue.submit(**WHOLE)
    assert groups.grow() == {"g": 1}
    groups.ask()
    groups.launch("g")
    assert queue.start()
    queue.submit(**WHOLE, time_limit_s=HOUR)
    queue.start()
    queue.move(59)
    groups.see()
    assert groups.grow() == {}
    queue.move(1)
    groups.see()
    assert groups.grow() == {"g": 2}


def test_a_job_that_starts_soon_without_a_new_node_gets_none(queue: Queue) -> None:
    groups = ready(queue, 1, boot_s=300)
    queue.submit(**WHOLE, time_limit_s=240)
    queue.start()
    queue.submit(**WHOLE)
    queue.start()
    assert groups.grow() == {}


def test_a_job_that_starts_later_without_a_new_node_gets_one(queue: Queue) -> None:
    groups = ready(queue, 1, boot_s=300)
    queue.submit(**WHOLE, time_limit_s=HOUR)
    queue.start()
    job = queue.submit(**WHOLE)
    queue.start()
    assert queue.job(job)
    assert groups.grow() == {"g": 2}


@pytest.mark.parametrize("hold", ["held", "licence", "begin"])
def test_a_job_that_something_else_keeps_gets_no_node(queue: Queue, hold: str) -> None:
    groups = Groups(queue, Group("g"))
    fields: dict[str, Any] = {
        "held": {"hold": True},
        "begin": {"begin_at": queue.now.replace(year=2027)},
        "licence": {"licences": {"matlab": 1}},
    }[hold]
    queue.sql.value(
        "select odc.set_licence($1::jsonb, 'matlab', 1, $2)",
        json.dumps({"user": "root", "uid": 0, "operator": True}), queue.now,
    )  # fmt: skip
    a_cluster(queue.sql, cpu_x86=1)
    holder = queue.submit(cpus_per_task=1, gpu_type="cpu-x86", licences={"matlab": 1})
    assert queue.start() == [holder]
    queue.submit(**WHOLE, **fields)
    queue.start()
    assert groups.grow() == {}


def test_the_job_says_that_it_needs_a_new_node(queue: Queue) -> None:
    groups = Groups(queue, Group("g"))
    job = queue.submit(**WHOLE)
    queue.start()
    groups.grow()
    row = queue.sql.row("select reason, why::text from odc.pending_job where id = $1", job)
    assert row["reason"] == "Resources"
    text = "needs a new node: group g was asked for 1 node, 0 are ready"
    assert [w["text"] for w in json.loads(row["why"])] == [text]
    why = json.loads(queue.sql.value("select odc.explain_job($1, $2)", job, queue.now))
    assert text in [w["text"] for w in why["why"]]


def test_a_group_that_launches_nothing_gives_up_and_another_is_tried(queue: Queue) -> None:
    groups = Groups(queue, Group("a"), Group("b"))
    job = queue.submit(**WHOLE)
    [first] = groups.grow()
    [other] = {"a", "b"} - {first}
    groups.ask()
    groups.see()
    queue.move(299)
    groups.see()
    assert groups.grow() == {}
    queue.move(1)
    groups.see()
    assert groups.grow() == {other: 1}
    groups.ask()
    assert groups.groups[first].desired == 0
    assert groups.needs() == {job: other}
    assert groups.listed()[first]["failures"] == 1
    assert "launched no instance" in groups.listed()[first]["failure"]


def test_a_launch_that_failed_is_given_up_at_once(queue: Queue) -> None:
    groups = Groups(queue, Group("a"), Group("b"))
    queue.submit(**WHOLE)
    [first] = groups.grow()
    groups.ask()
    queue.move(5)
    groups.groups[first].failure = "AWS launched no instance: InsufficientInstanceCapacity"
    groups.groups[first].failed_at = queue.now.isoformat()
    groups.see()
    assert list(groups.grow()) == [*{"a", "b"} - {first}]
    groups.ask()
    assert groups.groups[first].desired == 0
    assert "InsufficientInstanceCapacity" in groups.listed()[first]["failure"]


def test_the_pause_after_failures_grows(queue: Queue) -> None:
    groups = Groups(queue, Group("g"))
    queue.submit(**WHOLE)
    pauses: list[float] = []
    for _ in range(3):
        assert groups.grow() == {"g": 1}
        groups.ask(failure="no rights (AccessDenied)")
        assert groups.groups["g"].desired == 0
        retry_at = queue.sql.value("select retry_at from odc.elastic_group")
        pauses.append((retry_at - queue.now).total_seconds())
        queue.move(pauses[-1] - 1)
        groups.see()
        assert groups.grow() == {}
        queue.move(61)
        groups.see()
    assert pauses == [60, 120, 240]


def test_a_size_whose_request_was_lost_is_requested_again(queue: Queue) -> None:
    groups = Groups(queue, Group("g"))
    queue.submit(**WHOLE)
    groups.grow()
    groups.see()
    groups.ask()
    assert groups.groups["g"].desired == 1


@pytest.mark.parametrize(
    ("fields", "problem"),
    [({"min_nodes": 3, "max_nodes": 2}, "its minimum 3 is above its maximum 2"),
     ({"gpu_type": "h1000"}, 'its tag GpuType="h1000" names no GPU type'),
     ({"problem": "its tag x is no number"}, "its tag x is no number")],
)  # fmt: skip
def test_a_group_with_contradictory_tags_is_named_and_ignored(
    queue: Queue, fields: dict[str, Any], problem: str
) -> None:
    groups = Groups(queue, Group("good"), Group("bad", **fields))
    assert groups.see() == [{"group_name": "bad", "problem": problem}]
    assert list(groups.listed()) == ["good"]


# -- shrinking -------------------------------------------------------------------------------------


def test_a_node_that_was_empty_for_long_is_removed(queue: Queue) -> None:
    groups = ready(queue, 1, idle_s=600)
    [instance] = groups.groups["g"].instances
    name = groups.joined[instance]
    emptied(groups, 599)
    assert groups.shrink() == []
    emptied(groups, 1)
    assert groups.shrink() == [name]
    assert groups.node(instance)["state"] == "DRAIN"
    queue.submit(**WHOLE)
    assert queue.start() == []
    assert groups.confirm(instance)
    groups.remove(instance)
    groups.see()
    assert queue.sql.value("select state::text from odc.node where name = $1", name) == "DOWN"
    assert json.loads(queue.sql.value("select odc.list_nodes($1)", queue.now)) == []
    assert queue.contradictions() == []


def test_a_node_with_a_job_is_not_removed_and_is_empty_only_after_it(queue: Queue) -> None:
    groups = ready(queue, 1)
    job = queue.submit(gpus=1, gpu_type="h100", time_limit_s=24 * HOUR)
    assert queue.start() == [job]
    emptied(groups, 2 * HOUR)
    assert groups.shrink() == []
    queue.end(job)
    groups.see()
    queue.move(599)
    assert groups.shrink() == []
    queue.move(1)
    assert len(groups.shrink()) == 1


def test_a_short_job_between_two_rounds_counts(queue: Queue) -> None:
    groups = ready(queue, 1)
    emptied(groups, 500)
    job = queue.submit(gpus=1, gpu_type="h100")
    assert queue.start() == [job]
    queue.end(job)
    emptied(groups, 200)
    assert groups.shrink() == []


def test_a_node_with_a_pod_of_others_is_not_removed(queue: Queue) -> None:
    groups = ready(queue, 1)
    groups.pods.update(groups.groups["g"].instances)
    emptied(groups, HOUR)
    assert groups.shrink() == []


def test_a_group_keeps_its_minimum(queue: Queue) -> None:
    groups = ready(queue, 3, min_nodes=2)
    emptied(groups, HOUR)
    assert len(groups.shrink()) == 1
    assert groups.shrink() == []
    [leaving] = groups.leaving()
    assert groups.confirm(leaving["instance_id"])
    groups.remove(leaving["instance_id"])
    groups.see()
    assert groups.shrink() == []
    assert len(groups.groups["g"].instances) == groups.groups["g"].desired == 2


def test_a_node_on_which_a_job_is_planned_stays(queue: Queue) -> None:
    groups = ready(queue, 2, max_nodes=2)
    long = queue.submit(**WHOLE, time_limit_s=24 * HOUR)
    assert queue.start() == [long]
    queue.submit(node_count=2, gpus_per_node=8, gpu_type="h100")
    assert queue.start() == []
    emptied(groups, HOUR)
    assert groups.shrink() == []


@pytest.mark.parametrize(("kind", "stays"), [("use", True), ("maintenance", False)])
def test_a_node_in_a_booking_for_users_stays(queue: Queue, kind: str, stays: bool) -> None:
    groups = ready(queue, 1)
    booking = queue.sql.value(
        "insert into odc.booking (name, kind, state_at, starts_at, duration_s, created_by, "
        "created_at) values ('b', $1, $2, $2::timestamptz + interval '7 days', 3600, 'root', $2) "
        "returning id",
        kind, queue.now,
    )  # fmt: skip
    queue.sql.execute(
        "insert into odc.booking_node (booking_id, node_id) select $1, id from odc.node", booking
    )
    emptied(groups, HOUR)
    assert bool(groups.shrink()) is not stays


def test_a_node_that_an_operator_drained_stays(queue: Queue) -> None:
    groups = ready(queue, 1)
    groups.set_node(groups.joined[groups.groups["g"].instances[0]], "DRAIN")
    emptied(groups, HOUR)
    assert groups.shrink() == []


def test_a_leaving_node_that_an_operator_resumes_stays(queue: Queue) -> None:
    groups = ready(queue, 1)
    emptied(groups, HOUR)
    [name] = groups.shrink()
    [instance] = groups.groups["g"].instances
    groups.set_node(name, "UP")
    assert not groups.confirm(instance)
    assert groups.node(instance)["state"] == "UP"
    job = queue.submit(**WHOLE)
    assert queue.start() == [job]


def test_a_node_that_is_being_removed_cannot_be_resumed(queue: Queue) -> None:
    groups = ready(queue, 1)
    emptied(groups, HOUR)
    [name] = groups.shrink()
    [instance] = groups.groups["g"].instances
    assert groups.confirm(instance)
    with pytest.raises(WrongState, match="being removed by its elastic group"):
        groups.set_node(name, "UP")
    assert groups.confirm(instance)


def test_a_node_that_cannot_be_removed_returns(queue: Queue) -> None:
    groups = ready(queue, 1)
    emptied(groups, HOUR)
    groups.shrink()
    [instance] = groups.groups["g"].instances
    assert groups.confirm(instance)
    groups.remove(instance, kept="no rights")
    assert groups.node(instance)["state"] == "UP"
    emptied(groups, 599)
    assert groups.shrink() == []
    emptied(groups, 1)
    assert len(groups.shrink()) == 1


def test_a_group_that_is_no_longer_elastic_keeps_its_nodes(queue: Queue) -> None:
    groups = ready(queue, 1)
    emptied(groups, HOUR)
    groups.shrink()
    group = groups.groups.pop("g")
    groups.see()
    assert queue.sql.values("select state::text from odc.node") == ["UP"]
    assert groups.listed() == {}
    groups.groups["g"] = group
    groups.see()
    assert len(groups.listed()) == 1


def test_the_events_name_the_group_and_the_jobs(queue: Queue) -> None:
    groups = Groups(queue, Group("g"))
    job = queue.submit(**WHOLE)
    groups.grow()
    [detail] = queue.sql.values("select detail from odc.event where kind = 'nodes_requested'")
    assert json.loads(detail) == {"group": "g", "size": 1, "jobs": [job]}


def test_functions_of_the_loop_change_nothing_under_an_old_term(queue: Queue) -> None:
    for call in (
        "see_groups(-1, '[]', '[]', $1)", "grow_groups(-1, $1)", "shrink_groups(-1, $1)",
        "leaving_nodes(-1, $1)", "confirm_removal(-1, 'i', $1)", "note_removal(-1, 'i', null, $1)",
        "note_size(-1, 'g', 1, null, $1)",
    ):  # fmt: skip
        with queue.sql.trial(), pytest.raises(OdcError, match="term -1 is over"):
            queue.sql.rows(f"select * from odc.{call}", queue.now)


def test_a_job_on_a_fixed_cluster_requests_nothing(queue: Queue) -> None:
    a_cluster(queue.sql, h100=1)
    queue.submit(**WHOLE)
    assert queue.sql.rows("select * from odc.grow_groups(0, $1)", queue.now) == []
