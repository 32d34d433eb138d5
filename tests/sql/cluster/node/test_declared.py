"""Nodes that operators declare: created, changed, deleted, and kept beside the inventory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odcd.errors import BadRequest, NotOwner, OdcError, UnknownNode, WrongState
from odcd.stores.actor import actor_of
from tests.support.builders.jobs import ALICE, ROOT, Queue
from tests.support.harness.database import Sql

NODE: dict[str, Any] = {"gpu_type": "h100", "gpus": 8, "cpus": 64, "mem_mib": 64_000}


class Nodes:
    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    def call(self, line: str, *values: Any, who: Any = ROOT) -> None:
        self.queue.sql.value(line, actor_of(who), *values, self.queue.now)

    def create(self, name: str = "m1", who: Any = ROOT, **more: Any) -> None:
        ask = json.dumps({"name": name, **NODE, **more})
        self.call("select odc.create_node($1::jsonb, $2::jsonb, $3)", ask, who=who)

    def change(self, name: str = "m1", who: Any = ROOT, **more: Any) -> None:
        line = "select odc.change_node($1::jsonb, $2, $3::jsonb, $4)"
        self.call(line, name, json.dumps(more), who=who)

    def delete(self, name: str = "m1", who: Any = ROOT) -> None:
        self.call("select odc.delete_node($1::jsonb, $2, $3)", name, who=who)

    def set_state(self, state: str, name: str = "m1") -> None:
        line = "select odc.set_node_state($1::jsonb, $2, $3, 'test', $4)"
        self.call(line, [name], state)

    def register(self, *declared: str, keep: bool = True) -> None:
        """The inventory of a daemon: this machine, and nodes of --node."""
        body: list[dict[str, Any]] = [{"name": "self", **NODE}]
        body += [{"name": name, **NODE, "declared": True} for name in declared]
        self.queue.sql.execute(
            "select odc.register_nodes(0, $1::jsonb, true, $2, $3)",
            json.dumps(body), self.queue.now, keep,
        )  # fmt: skip

    def refused(self, error: type[OdcError], call: Any, *values: Any, **more: Any) -> str:
        before = self.list()
        with self.queue.sql.trial(), pytest.raises(error) as caught:
            call(*values, **more)
        assert self.list() == before
        return caught.value.message

    def list(self) -> dict[str, dict[str, Any]]:
        found = json.loads(self.queue.sql.value("select odc.list_nodes($1)", self.queue.now))
        return {node["name"]: node for node in found}

    def events(self) -> list[str]:
        return self.queue.sql.values(
            "select e.kind from odc.event as e join odc.node as n on n.id = e.node_id "
            "where n.name = 'm1' order by e.id"
        )


@pytest.fixture
def nodes(sql: Sql) -> Nodes:
    sql.execute("update odc.partition set policy = 'fifo'")
    found = Nodes(Queue(sql))
    found.register()
    return found


def test_a_declared_node_runs_jobs_and_stays_beside_the_inventory(nodes: Nodes) -> None:
    nodes.create(features=["nvme"], zone="z1")
    nodes.register()
    made = nodes.list()["m1"]
    assert (made["state"], made["declared"], made["features"]) == ("IDLE", True, ["nvme"])
    assert (made["gpus"], made["zone"], made["reason_by"]) == (8, "z1", None)
    job = nodes.queue.submit(gpus=8, constraint="nvme")
    assert nodes.queue.start() == [job]
    assert nodes.queue.contradictions() == []
    assert nodes.events() == ["node_created"]


def test_the_same_request_twice_creates_one_node_and_another_size_is_refused(nodes: Nodes) -> None:
    nodes.create()
    nodes.create()
    assert nodes.events() == ["node_created"]
    assert nodes.refused(WrongState, nodes.create, gpus=4) == "node m1 exists already"
    assert "exists already" in nodes.refused(WrongState, nodes.create, "self")


@pytest.mark.parametrize(
    "wrong",
    [{"gpus": -1}, {"gpus": 63}, {"cpus": 0}, {"cpus": 100_001}, {"mem_mib": 0}, {"mem_mib": -5},
     {"gpus": None}, {"gpu_type": None}],
)  # fmt: skip
def test_impossible_sizes_are_refused(nodes: Nodes, wrong: dict[str, Any]) -> None:
    nodes.refused(BadRequest, nodes.create, **wrong)
    nodes.create("m2")
    nodes.refused(BadRequest, nodes.change, "m2", **wrong)


def test_a_type_has_gpus_or_none(nodes: Nodes) -> None:
    refused = nodes.refused(BadRequest, nodes.create, gpu_type="cpu-x86", gpus=4)
    assert refused == "node m1 of type cpu-x86 cannot have GPUs"
    refused = nodes.refused(BadRequest, nodes.create, gpus=0)
    assert refused == "node m1 of type h100 cannot have 0 GPUs"
    nodes.create(gpu_type="cpu-x86", gpus=0)
    nodes.refused(BadRequest, nodes.change, gpus=1)
    nodes.refused(BadRequest, nodes.change, gpu_type="h100")
    nodes.change(gpu_type="h100", gpus=1)


def test_only_operators_declare_nodes_and_unknown_ones_are_named(nodes: Nodes) -> None:
    nodes.create()
    for call in (nodes.create, nodes.change, nodes.delete):
        nodes.refused(NotOwner, call, "m1", who=ALICE)
    for call in (nodes.change, nodes.delete):
        message = nodes.refused(UnknownNode, call, "m9")
        assert message == 'node "m9" does not exist'
        assert "was not declared" in nodes.refused(WrongState, call, "self")


def test_a_node_with_jobs_keeps_its_size_and_is_not_deleted(nodes: Nodes) -> None:
    nodes.create(features=["big"])
    first, second = (nodes.queue.submit(gpus=2, constraint="big") for _ in range(2))
    assert nodes.queue.start() == [first, second]
    ids = f"{first}, {second}"
    assert nodes.refused(WrongState, nodes.delete) == f"node m1 has jobs: {ids}"
    assert nodes.refused(WrongState, nodes.change, gpus=4).endswith(ids)
    nodes.change(features=["big", "nvme"], zone="z2")
    assert nodes.list()["m1"]["features"] == ["big", "nvme"]
    nodes.set_state("DRAIN")
    nodes.queue.end(first)
    nodes.queue.end(second)
    nodes.change(gpus=4, cpus=32)
    made = nodes.list()["m1"]
    assert (made["gpus"], made["gpus_used"], made["cpus"], made["state"]) == (4, 0, 32, "DRAIN")
    assert nodes.queue.contradictions() == []
    nodes.delete()
    assert "m1" not in nodes.list()
    assert nodes.queue.contradictions() == []
    assert nodes.events() == [
        "node_created", "node_changed", "node_drain", "node_changed", "node_deleted",
    ]  # fmt: skip


def test_a_deleted_node_is_unknown_and_its_name_can_be_used_again(nodes: Nodes) -> None:
    nodes.create(features=["old"])
    job = nodes.queue.submit(gpus=1, constraint="old")
    nodes.queue.start()
    nodes.queue.end(job)
    nodes.delete()
    nodes.register()
    assert set(nodes.list()) == {"self"}
    nodes.refused(UnknownNode, nodes.delete)
    nodes.refused(UnknownNode, nodes.change, gpus=4)
    nodes.refused(UnknownNode, nodes.set_state, "UP")
    assert isinstance(nodes.queue.refused(gpus=1, node_list=["m1"]), UnknownNode)
    lists = [
        nodes.queue.sql.value("select odc.list_partitions()"),
        nodes.queue.sql.values("select name from odc.map_nodes($1)", nodes.queue.now),
    ]
    assert "m1" not in str(lists)
    assert job in nodes.queue.sql.values("select id from odc.job where state = 'COMPLETED'")
    nodes.create(gpus=2)
    nodes.register()
    made = nodes.list()["m1"]
    assert (made["gpus"], made["features"], made["state"]) == (2, [], "IDLE")
    assert nodes.queue.contradictions() == []


def test_nothing_shows_a_deleted_node(nodes: Nodes) -> None:
    queue, sql = nodes.queue, nodes.queue.sql
    nodes.create(features=["old"])
    nodes.create("m2", gpu_type="a100")
    nodes.create("m3", gpu_type="cpu-x86", gpus=0)
    for name in ("m1", "m2", "m3"):
        nodes.delete(name)
    nodes.register()
    [kind] = json.loads(sql.value("select odc.list_availability($1)", queue.now))
    assert (kind["gpu_type"], kind["nodes"], kind["nodes_up"]) == ("h100", 1, 1)
    refused = queue.refused(gpus=1, constraint="nvme")
    assert refused.hint == "GPU types: h100. Features: none."
    queue.submit(gpus=8)
    waiting = queue.submit(gpus=8)
    queue.start()
    assert sql.values("select text from odc._why_nodes($1)", waiting) == []
    assert sql.values("select name from odc_report.node") == ["self"]


def test_a_declared_node_stays_up_after_a_drain(nodes: Nodes) -> None:
    nodes.create()
    nodes.set_state("DRAIN")
    nodes.register()
    assert nodes.list()["m1"]["state"] == "DRAIN"
    nodes.set_state("UP")
    nodes.register()
    assert nodes.list()["m1"]["state"] == "IDLE"


def test_the_option_of_the_daemon_replaces_a_declaration(nodes: Nodes) -> None:
    """--node wins; and what it no longer names goes down, as ever."""
    nodes.create(gpus=4, features=["nvme"])
    nodes.register("m1", "m2")
    assert (nodes.list()["m1"]["gpus"], nodes.list()["m1"]["features"]) == (8, [])
    nodes.set_state("DRAIN", "m2")
    nodes.set_state("UP", "m2")
    nodes.register("m1", "m2")
    nodes.register()
    assert {name: node["state"] for name, node in nodes.list().items()} == {
        "self": "IDLE", "m1": "DOWN", "m2": "DOWN",
    }  # fmt: skip
    nodes.create(gpus=4)
    nodes.delete("m2")
    nodes.register()
    assert (nodes.list()["m1"]["state"], "m2" in nodes.list()) == ("IDLE", False)
    nodes.register("m2")
    assert nodes.list()["m2"]["state"] == "IDLE"
    nodes.set_state("DOWN", "m2")
    nodes.register("m2")
    assert nodes.list()["m2"]["state"] == "DOWN"
    assert nodes.queue.contradictions() == []


def test_on_a_cluster_a_declared_node_goes_down(nodes: Nodes) -> None:
    nodes.create()
    nodes.register(keep=False)
    assert nodes.list()["m1"]["reason"] == "not in the inventory"


def test_an_unchanged_inventory_writes_nothing(nodes: Nodes) -> None:
    nodes.create()
    nodes.create("m2")
    nodes.set_state("DRAIN", "m2")
    nodes.register("m3")
    line = "select odc._inventory_differs($1::jsonb, true, true)"
    body = [{"name": "self", **NODE}, {"name": "m3", **NODE, "declared": True}]
    assert nodes.queue.sql.value(line, json.dumps(body)) is False
