"""The nodes of a booking, and their replacement when they fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odcd.errors import KeyReused, NotOwner
from tests.sql.limits.booking.desk import HOUR, Desk
from tests.support.builders.jobs import ALICE, BOB, ROOT, a_cluster


def nodes(desk: Desk, name: str = "b") -> list[str]:
    return desk.show(name)["node_names"]


def domain_nodes(**domains: list[str]) -> list[dict[str, Any]]:
    """Eight-GPU nodes of an EFA type in these domains."""
    return [
        {"name": name, "gpu_type": "h200", "gpus": 8, "cpus": 64, "mem_mib": 64_000,
         "efa_domain": domain, "declared": True}
        for domain, names in domains.items() for name in names
    ]  # fmt: skip


def test_idle_nodes_are_chosen_before_busy_ones(desk: Desk) -> None:
    desk.queue.submit(gpus_per_node=1, node_list=["h100-1"], time_limit_s=600)
    desk.queue.start()
    assert desk.create(gpu_type="h100", node_count=2)["node_names"] == ["h100-2", "h100-3"]
    assert desk.create("more", gpu_type="h100", node_count=2)["node_names"] == ["h100-1", "h100-4"]


def test_nodes_where_jobs_are_planned_come_last_among_the_idle(desk: Desk) -> None:
    desk.sql.execute(
        "insert into odc.planned (job_id, pass_id, planned_start_at, node_names, fitting, detail) "
        "values (1, 1, $1, '{l4-1}', 0, '')",
        desk.at(60),
    )
    assert desk.create(gpu_type="l4", node_count=1)["node_names"] == ["l4-2"]


def test_several_nodes_are_chosen_in_one_efa_domain(desk: Desk) -> None:
    a_cluster(desk.sql, h100=4, l4=2, more=domain_nodes(a=["n1", "n4"], b=["n2", "n3", "n5"]))
    desk.queue.submit(gpus_per_node=1, node_list=["n2"], time_limit_s=600)
    desk.queue.start()
    assert desk.create(gpu_type="h200", node_count=2)["node_names"] == ["n1", "n4"]
    assert desk.create("three", gpu_type="h200", node_count=3)["node_names"] == ["n2", "n3", "n5"]


def test_a_partition_a_type_and_a_count_narrow_each_other(desk: Desk) -> None:
    sql = desk.sql
    sql.execute("insert into odc.partition (name) values ('part')")
    sql.execute(
        "insert into odc.partition_node select p.id, n.id from odc.partition as p, odc.node as n "
        "where p.name = 'part' and n.name in ('h100-3', 'l4-1', 'l4-2')"
    )
    assert desk.create(partition="part")["node_names"] == ["l4-1", "l4-2", "h100-3"]
    desk.delete()
    assert desk.create(partition="part", gpu_type="l4")["node_names"] == ["l4-1", "l4-2"]
    desk.delete()
    assert desk.create(partition="part", gpu_type="h100", node_count=1)["node_names"] == ["h100-3"]
    desk.delete()
    assert len(desk.create(all_nodes=True)["node_names"]) == 6


def test_a_node_that_fails_is_replaced_by_a_free_one(desk: Desk) -> None:
    desk.create(gpu_type="h100", node_count=2)
    desk.queue.submit(gpus_per_node=8, node_list=["h100-3"], time_limit_s=3 * HOUR)
    desk.queue.start()
    desk.node("h100-1", "DOWN")
    desk.queue.sweep()
    assert nodes(desk) == ["h100-2", "h100-4"]
    assert desk.show()["reason"] is None
    event = desk.sql.row("select actor, detail from odc.event where kind = 'booking_nodes'")
    detail = json.loads(event["detail"])
    assert (event["actor"], detail["added"], detail["removed"]) == ("odcd", "h100-4", "h100-1")


def test_a_failed_node_without_a_replacement_stays_and_is_reported(desk: Desk) -> None:
    desk.create("other", gpu_type="h100", node_count=2)
    desk.create(gpu_type="h100", node_count=2)
    desk.node("h100-4", "DRAIN")
    desk.queue.sweep()
    assert nodes(desk) == ["h100-3", "h100-4"]
    assert desk.show()["reason"] == "h100-4 is not up, and no other node can replace it"
    desk.delete("other")
    desk.queue.sweep()
    assert nodes(desk) == ["h100-1", "h100-3"]
    assert desk.show()["reason"] is None


def test_a_node_that_is_deleted_is_replaced_too(desk: Desk) -> None:
    desk.create(gpu_type="l4", node_count=1)
    desk.sql.execute("delete from odc.node where name = 'l4-1'")
    desk.queue.sweep()
    assert nodes(desk) == ["l4-2"]
    desk.sql.execute("delete from odc.node where name = 'l4-2'")
    desk.queue.sweep()
    assert desk.show()["reason"] == "1 of its nodes is gone, and no other node can replace it"


def test_named_nodes_and_maintenance_are_not_replaced(desk: Desk) -> None:
    desk.create("named", node_list=["h100-1"])
    desk.create("works", gpu_type="h100", node_count=1, kind="maintenance")
    for node in ("h100-1", "h100-2"):
        desk.node(node, "DOWN")
    desk.queue.sweep()
    assert (nodes(desk, "named"), nodes(desk, "works")) == (["h100-1"], ["h100-2"])
    assert desk.show("named")["reason"] == "h100-1 is not up"
    assert desk.show("works")["reason"] is None


def test_a_booking_of_all_takes_in_a_new_node(desk: Desk) -> None:
    desk.create(all_nodes=True, kind="maintenance")
    a_cluster(desk.sql, h100=5, l4=2)
    desk.queue.sweep()
    assert "h100-5" in nodes(desk)


def test_an_edit_keeps_the_nodes_it_may_keep(desk: Desk) -> None:
    desk.queue.submit(gpus_per_node=1, node_list=["h100-1"], time_limit_s=600)
    desk.queue.start()
    desk.create(gpu_type="h100", node_count=2)
    desk.create("later", node_list=["h100-2"], starts_at=desk.at(4 * HOUR))
    assert desk.edit(node_count=3)["node_names"] == ["h100-2", "h100-3", "h100-4"]
    assert desk.edit(node_count=2)["node_names"] == ["h100-2", "h100-3"]
    assert desk.edit(duration_s=3 * HOUR)["node_names"] == ["h100-3", "h100-4"]


def test_nodes_show_their_current_and_next_booking(desk: Desk) -> None:
    desk.create("now", node_list=["l4-1"], starts_at=desk.at(0))
    desk.create("then", node_list=["l4-1", "l4-2"], kind="maintenance")
    bookings = {
        node["name"]: (node["booking"] or {}, node["next_booking"] or {})
        for node in json.loads(desk.sql.value(
            """select odc.list_nodes($1, '{"operator": true}')""", desk.now
        ))
    }  # fmt: skip
    assert [one.get("name") for one in bookings["l4-1"]] == ["now", "then"]
    assert [one.get("name") for one in bookings["l4-2"]] == [None, "then"]
    assert bookings["h100-1"] == ({}, {})
    assert bookings["l4-1"][1] == {
        "id": desk.show("then")["id"], "name": "then", "kind": "maintenance",
        "starts_at": "2026-01-01T02:00:00Z", "ends_at": "2026-01-01T03:00:00Z",
    }  # fmt: skip


def test_owners_see_their_bookings_and_operators_all(desk: Desk) -> None:
    desk.create("alices", node_list=["h100-1"])
    desk.create("bobs", node_list=["h100-2"], users=["bob"])
    desk.queue.submit(BOB)
    desk.create("default", node_list=["h100-3"], users=[], accounts=["default"])
    desk.create("works", node_list=["h100-4"], kind="maintenance")
    assert sorted(desk.list(ROOT)) == ["alices", "bobs", "default", "works"]
    assert desk.list(ALICE) == ["alices"]
    assert sorted(desk.list(BOB)) == ["bobs", "default"]
    assert desk.show("bobs", BOB)["users"] == ["bob"]
    with pytest.raises(NotOwner):
        desk.show("bobs", ALICE)


def test_the_same_request_under_a_key_books_once(desk: Desk) -> None:
    ask = {"name": "b", "node_list": ["l4-1"]}
    first = desk.request(ask, key="k", digest="d")
    assert desk.request(ask, key="k", digest="d") == first
    assert desk.sql.value("select count(*) from odc.booking") == 1
    with pytest.raises(KeyReused):
        desk.request({"name": "c", "node_list": ["l4-2"]}, key="k", digest="e")


def test_every_change_records_its_actor(desk: Desk) -> None:
    desk.create(node_list=["l4-1"])
    desk.edit(comment="x")
    desk.delete()
    assert desk.events() == [
        ("booking_created", "root"), ("booking_edited", "root"), ("booking_deleted", "root"),
    ]  # fmt: skip
