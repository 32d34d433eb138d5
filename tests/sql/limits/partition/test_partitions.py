"""Changes of partitions and policies by operators: applied by the next pass, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odcd.errors import (
    BadRequest,
    InUse,
    NotOwner,
    UnknownNode,
    UnknownPartition,
    UnknownPolicy,
    WrongState,
)
from odcd.records.job import Identity
from tests.support.builders.jobs import ALICE, NOW, ROOT, Queue
from tests.support.harness.database import Sql


class Desk:
    """Changes of partitions and policies by operators."""

    def __init__(self, sql: Sql, who: Identity = ROOT) -> None:
        self.sql = sql
        self.actor = json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator})

    def _call(self, function: str, *arguments: object) -> dict[str, Any]:
        places = ", ".join(f"${at}" for at in range(2, len(arguments) + 2))
        return json.loads(
            self.sql.value(f"select odc.{function}($1::jsonb, {places})", self.actor, *arguments)
        )

    def edit(self, name: str, **changes: object) -> dict[str, Any]:
        return self._call("edit_partition", name, json.dumps(changes), NOW)

    def create(self, name: str, **changes: object) -> dict[str, Any]:
        return self._call("create_partition", name, json.dumps(changes), NOW)

    def delete(self, name: str) -> dict[str, Any]:
        return self._call("delete_partition", name, NOW)

    def create_policy(self, name: str, like: str | None = None, **terms: object) -> dict[str, Any]:
        return self._call("create_policy", name, like, json.dumps(terms), NOW)

    def edit_policy(self, name: str, **changes: object) -> dict[str, Any]:
        return self._call("edit_policy", name, json.dumps(changes), NOW)

    def delete_policy(self, name: str) -> dict[str, Any]:
        return self._call("delete_policy", name, NOW)

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        rows = self.sql.rows(
            "select kind, detail from odc.event where kind ~ '^(partition|policy)_' order by id"
        )
        return [(row["kind"], _json(row["detail"])) for row in rows]


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


@pytest.fixture
def desk(queue: Queue) -> Desk:
    return Desk(queue.sql)


def test_a_change_of_a_partition_is_stored_and_returned(desk: Desk) -> None:
    partition = desk.edit("main", policy="fifo", placement="spread", tier=2, max_nodes=4)
    changed = {"policy": "fifo", "placement": "spread", "tier": 2, "max_nodes": 4}
    assert partition | changed == partition
    [(kind, detail)] = desk.events()
    assert (kind, detail["name"]) == ("partition_edited", "main")
    new = {"policy": "fifo", "placement": "spread", "tier": 2, "max_nodes": 4}
    # The depth is that of the other policy; nothing else changed.
    assert {**detail["new"], **new} == detail["new"]
    assert set(detail["new"]) <= {*new, "plan_depth"}
    assert detail["old"]["placement"] == "pack"
    desk.edit("main", placement="spread")
    assert len(desk.events()) == 1
    assert desk.edit("main", max_nodes=None)["max_nodes"] is None


def test_a_partition_is_created_with_its_nodes(desk: Desk, queue: Queue) -> None:
    partition = desk.create("few", node_list=["h100-2"], tier=2, default_time_limit_s=60)
    assert (partition["node_names"], partition["gpus"], partition["all_nodes"]) == (
        ["h100-2"],
        8,
        False,
    )
    job = queue.submit(partitions=["few"], gpus=1)
    assert queue.start() == [job]
    assert queue.job(job)["time_limit_s"] == 60
    assert desk.edit("few", all_nodes=True)["node_names"] == ["h100-1", "h100-2"]


def test_a_new_default_partition_replaces_the_old_one(desk: Desk, queue: Queue) -> None:
    desk.create("other", all_nodes=True, is_default=True)
    named = queue.sql.values("select name from odc.partition where is_default")
    assert named == ["other"]
    queue.submit()


def test_the_next_pass_applies_the_change(desk: Desk, queue: Queue) -> None:
    desk.edit("main", placement="spread")
    one, two = queue.submit(gpus=1), queue.submit(gpus=1)
    queue.start()
    nodes = queue.sql.values(
        "select count(distinct node_id) from odc.allocation where job_id = any ($1)", [one, two]
    )
    assert nodes == [2]


REFUSED: dict[str, tuple[type[Exception], str, dict[str, object]]] = {
    "policy": (UnknownPolicy, 'policy "slurm" does not exist', {"policy": "slurm"}),
    "placement": (BadRequest, "placement heap", {"placement": "heap"}),
    "tier": (BadRequest, "tier -1", {"tier": -1}),
    "no tier": (BadRequest, "tier", {"tier": None}),
    "limit": (BadRequest, "max_time_limit_s 0", {"max_time_limit_s": 0}),
    "default above the limit": (
        BadRequest, "default time limit 1:00:00 exceeds the maximum of 1:00",
        {"max_time_limit_s": 60, "default_time_limit_s": 3600},
    ),
    "nodes": (BadRequest, "max_nodes -3", {"max_nodes": -3}),
    "state": (BadRequest, "state ASLEEP", {"state": "ASLEEP"}),
    "closed default": (WrongState, "would accept no jobs", {"state": "INACTIVE"}),
    "no default": (BadRequest, "is_default false", {"is_default": False}),
    "unknown node": (UnknownNode, '"h9"', {"node_list": ["h9"]}),
    "all and some": (BadRequest, "all nodes or a list", {"all_nodes": True, "node_list": ["n"]}),
    "depth": (BadRequest, "plan_depth -1", {"plan_depth": -1}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_invalid_partition_is_refused(desk: Desk, name: str) -> None:
    error, message, changes = REFUSED[name]
    with pytest.raises(error, match=message):
        desk.edit("main", **changes)


def test_two_orders_for_the_same_nodes_are_refused(desk: Desk) -> None:
    desk.create("a", node_list=["h100-1"])
    with pytest.raises(
        WrongState, match=r'"a".*"main".*share nodes and both have tier 1'
    ) as refused:
        desk.edit("a", policy="fifo")
    assert "odcctl partition edit main --tier 2" in (refused.value.hint or "")
    desk.edit("a", policy="fifo", tier=2)
    with pytest.raises(WrongState):
        desk.edit("a", tier=1)
    # Partitions without common nodes may.
    desk.edit("main", node_list=["h100-2"])
    desk.edit("a", tier=1)
    with pytest.raises(WrongState):
        desk.edit("main", all_nodes=True)


def test_the_depth_of_a_partition_is_its_policys_alone(desk: Desk) -> None:
    assert desk.edit("main", plan_depth=7)["plan_depth"] == 7
    desk.create("b")
    with pytest.raises(WrongState, match="also used by partition b") as refused:
        desk.edit("main", plan_depth=8)
    assert "policy create NAME --like odc --plan-depth 8" in (refused.value.hint or "")


def test_only_operators_create_and_change_partitions(desk: Desk, queue: Queue) -> None:
    alice = Desk(queue.sql, ALICE)
    for change in (
        lambda: alice.edit("main", tier=2),
        lambda: alice.create("mine"),
        lambda: alice.create_policy("mine", ordering="sjf"),
        lambda: alice.edit_policy("odc", plan_depth=2),
        lambda: alice.delete_policy("fifo"),
        lambda: alice.delete("main"),
    ):
        with pytest.raises(NotOwner, match="alice may not"):
            change()
    with pytest.raises(UnknownPartition, match='"x" does not exist'):
        desk.edit("x", tier=2)
    with pytest.raises(InUse, match="already exists"):
        desk.create("main")
    with pytest.raises(BadRequest, match="is not a valid partition name"):
        desk.create("a b")


def test_a_partition_is_deleted_once_nothing_needs_it(desk: Desk, queue: Queue) -> None:
    made = desk.create("b", all_nodes=True, limits={"user": {"gpus": 2}})
    job = queue.submit(partitions=["b"], gpus=1)
    with pytest.raises(InUse, match=f'"b" is in use: job {job} is pending or running there'):
        desk.delete("b")
    assert queue.start() == [job]
    with pytest.raises(InUse, match=f'"b" is in use: job {job} is pending or running there'):
        desk.delete("b")
    queue.end(job)
    queue.sql.execute(
        "insert into odc.association (account_id, uid, user_name, partition_id, made_at) "
        "select 1, 5001, 'ann', id, $1 from odc.partition where name = 'b'", NOW
    )  # fmt: skip
    with pytest.raises(InUse, match="account memberships for it alone: ann in default"):
        desk.delete("b")
    queue.sql.execute("delete from odc.association")
    assert desk.delete("b") == made
    assert queue.sql.values("select name from odc.partition") == ["main"]
    assert queue.sql.rows("select * from odc.resource_limit") == []
    assert queue.sql.value("select partition from odc.ended_job where id = $1", job) == "b"
    assert [kind for kind, _ in desk.events()][-1] == "partition_deleted"
    job = queue.submit(gpus=1)
    assert queue.start() == [job]
    desk.edit("main", plan_depth=5)


def test_a_partition_that_is_the_default_or_is_booked_stays(desk: Desk, queue: Queue) -> None:
    with pytest.raises(WrongState, match='"main" is the default one'):
        desk.delete("main")
    with pytest.raises(UnknownPartition, match='"x" does not exist'):
        desk.delete("x")
    desk.create("b", all_nodes=True)
    queue.sql.execute(
        "insert into odc.booking (name, kind, state_at, starts_at, duration_s, partition_id, "
        "created_by, created_at) select 'night', 'maintenance', $1, $1, 60, id, 'root', $1 "
        "from odc.partition where name = 'b'", NOW
    )  # fmt: skip
    with pytest.raises(InUse, match="its bookings: night"):
        desk.delete("b")


def test_a_policy_is_created_changed_and_deleted(desk: Desk) -> None:
    made = desk.create_policy("mine", ordering="sjf", max_wait_s=3600, backfill="sjbf")
    assert made == {
        "name": "mine", "ordering": "sjf", "max_wait_s": 3600, "backfill": "sjbf",
        "plan_depth": 1, "partitions": [],
    }  # fmt: skip
    assert desk.create_policy("deep", "mine", plan_depth=50)["backfill"] == "sjbf"
    assert desk.edit_policy("mine", max_wait_s=None, plan_depth=0)["max_wait_s"] is None
    desk.edit("main", policy="mine")
    with pytest.raises(InUse, match='policy "mine" is in use by partition main'):
        desk.delete_policy("mine")
    desk.edit("main", policy="odc")
    desk.delete_policy("mine")
    with pytest.raises(UnknownPolicy, match='"mine" does not exist'):
        desk.delete_policy("mine")
    kinds = [kind for kind, _ in desk.events()]
    assert kinds == [
        "policy_created", "policy_created", "policy_edited", "partition_edited",
        "partition_edited", "policy_deleted",
    ]  # fmt: skip


BAD_POLICIES: dict[str, tuple[str, dict[str, object]]] = {
    "ordering": ("ordering lifo", {"ordering": "lifo"}),
    "backfill": ("backfill best", {"ordering": "fifo", "backfill": "best"}),
    "wait": ("max_wait_s 0", {"ordering": "fifo", "max_wait_s": 0}),
    "negative wait": ("max_wait_s -5", {"ordering": "fifo", "max_wait_s": -5}),
    "depth": ("plan_depth -1", {"ordering": "fifo", "plan_depth": -1}),
    "no ordering": ("needs an ordering", {"max_wait_s": 5}),
}


@pytest.mark.parametrize("name", BAD_POLICIES)
def test_an_invalid_policy_is_refused(desk: Desk, name: str) -> None:
    message, terms = BAD_POLICIES[name]
    with pytest.raises(BadRequest, match=message):
        desk.create_policy("mine", **terms)


def test_names_of_policies_are_unique(desk: Desk) -> None:
    with pytest.raises(InUse, match='"fifo" already exists'):
        desk.create_policy("fifo", ordering="fifo")
    with pytest.raises(UnknownPolicy, match='"nobody"'):
        desk.create_policy("mine", "nobody")
    desk.edit("main", policy="fifo")
    with pytest.raises(InUse, match="new partitions use it"):
        desk.delete_policy("odc")
