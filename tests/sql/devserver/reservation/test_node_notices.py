"""Notices to users of dev servers on nodes that are drained or have maintenance."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import NOW, ROOT, Queue, a_cluster
from tests.support.harness.database import Sql

HOUR = timedelta(hours=1)


@pytest.fixture
def queue(sql: Sql) -> Queue:
    a_cluster(sql, h100=2)
    return Queue(sql)


@pytest.fixture
def dev_server(queue: Queue) -> int:
    return Reservations(queue).active(hours=8, node_list=["h100-1"])


def set_state(queue: Queue, state: str, reason: str | None = None, name: str = "h100-1") -> None:
    actor = json.dumps({"user": ROOT.user, "uid": ROOT.uid, "operator": True})
    queue.sql.value(
        "select odc.set_node_state($1::jsonb, $2, $3, $4, $5)", actor, [name], state, reason,
        queue.now,
    )  # fmt: skip


def due(queue: Queue) -> list[tuple[int, str | None, datetime | None]]:
    rows = queue.sql.rows("select * from odc.take_node_notices(0, $1)", queue.now)
    return [(row["job_id"], row["text"], row["until_at"]) for row in rows]


def notified(queue: Queue, job_id: int, text: str | None) -> None:
    queue.sql.value("select odc.note_node_notice(0, $1, $2, null, $3)", job_id, text, queue.now)


def test_a_drain_is_reported_once_and_its_end_too(queue: Queue, dev_server: int) -> None:
    """Before: the user of a dev server did not learn that its node was drained."""
    assert due(queue) == []
    set_state(queue, "DRAIN", "new kernel")
    [(job_id, text, until_at)] = due(queue)
    assert (job_id, until_at) == (dev_server, None)
    assert text is not None
    assert text.startswith("h100-1 is drained: new kernel")
    assert due(queue), "until it was delivered it comes again"
    notified(queue, dev_server, text)
    assert due(queue) == []
    assert "node_warned" in queue.events(dev_server)
    set_state(queue, "UP")
    assert due(queue) == [(dev_server, None, None)]
    notified(queue, dev_server, None)
    assert due(queue) == []
    assert queue.events(dev_server).count("node_warned") == 1


def test_only_dev_servers_of_that_node_are_notified(queue: Queue, dev_server: int) -> None:
    set_state(queue, "DRAIN", "fan", name="h100-2")
    assert due(queue) == []
    queue.submit(gpus=1, node_list=["h100-1"])
    queue.start()
    set_state(queue, "DRAIN", "fan")
    assert [job_id for job_id, *_ in due(queue)] == [dev_server]


def test_a_spot_notice_leaves_two_minutes(queue: Queue, dev_server: int) -> None:
    node: dict[str, Any] = {
        "name": "h100-1", "gpu_type": "h100", "gpus": 8, "cpus": 192, "mem_mib": 1_000_000,
        "state": "DRAIN",
        "reason": "tainted aws-node-termination-handler/spot-itn:NoSchedule, "
        "which jobs do not tolerate",
    }  # fmt: skip
    queue.sql.execute(
        "select odc.register_nodes(0, $1::jsonb, false, $2)", json.dumps([node]), queue.now
    )
    [(_, text, until_at)] = due(queue)
    assert "spot-itn" in str(text)
    assert until_at == NOW + timedelta(minutes=2)


def test_maintenance_before_the_end_is_reported(queue: Queue, dev_server: int) -> None:
    def book(name: str, starts_at: datetime) -> None:
        queue.sql.execute(
            "with b as (insert into odc.booking (name, kind, state_at, starts_at, duration_s, "
            "created_by, created_at, node_list) values ($1, 'maintenance', $2, $3, 3600, 'root', "
            "$2, '{h100-1}') returning id) insert into odc.booking_node (booking_id, node_id) "
            "select b.id, n.id from b, odc.node as n where n.name = 'h100-1'",
            name, queue.now, starts_at,
        )  # fmt: skip

    book("later", NOW + 9 * HOUR)
    assert due(queue) == [], "it ends before that"
    book("firmware", NOW + 3 * HOUR)
    [(_, text, until_at)] = due(queue)
    assert str(text).startswith('h100-1 has maintenance "firmware" from ')
    assert until_at == NOW + 3 * HOUR


def test_the_notice_is_part_of_the_answer(queue: Queue, dev_server: int) -> None:
    reservations = Reservations(queue)
    assert reservations.show(dev_server)["node_notice"] is None
    set_state(queue, "DRAIN", "new kernel")
    shown = reservations.show(dev_server)
    assert "h100-1 is drained: new kernel" in shown["node_notice"]
    assert shown["node_notice_until"] is None
