"""Data of dev servers in pods: keys, phases, and restarted containers."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import Queue


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    return Reservations(queue)


def progress(
    reservations: Reservations, job_id: int, *reports: tuple[int, str, str | None], attempt: int = 0
) -> None:
    """reports: rank, kind, detail."""
    now = reservations.queue.now
    attempt = attempt or reservations.queue.running(job_id)["attempt"]
    n = len(reports)
    reservations.sql.rows(
        "select odc.record_progress(0, $1, $2, $3, $4, $5, $6, $7)",
        [job_id] * n, [attempt] * n, [rank for rank, _, _ in reports],
        [kind for _, kind, _ in reports], [now] * n, [detail for _, _, detail in reports], now,
    )  # fmt: skip


def keys(reservations: Reservations, job_id: int, host: str = "h") -> dict[str, Any] | None:
    rows = reservations.sql.rows(
        "select * from odc.keep_box_key(0, $1, $2, $3, 'g', 'gp', repeat('0a', 32), $4)",
        job_id, host, f"ssh-ed25519 {host}", reservations.queue.now,
    )  # fmt: skip
    return dict(rows[0]) if rows else None


def test_a_dispatch_has_the_kind_and_the_request_of_a_reservation(
    reservations: Reservations, queue: Queue
) -> None:
    dev_server = reservations.reserve(details={"ssh_keys": ["ssh-ed25519 A"]})
    queue.start()
    [row] = reservations.sql.rows("select body from odc.dispatches(0, $1)", [dev_server])
    dispatch = json.loads(row["body"])
    assert (dispatch["kind"], dispatch["ask"]) == ("reservation", {"ssh_keys": ["ssh-ed25519 A"]})
    job = queue.submit()
    queue.start()
    [row] = reservations.sql.rows("select body from odc.dispatches(0, $1)", [job])
    dispatch = json.loads(row["body"])
    assert (dispatch["kind"], dispatch["ask"]) == ("batch", None)


def test_keys_are_created_once_and_deleted_at_the_end(
    reservations: Reservations, queue: Queue
) -> None:
    """ACC-24"""
    dev_server = reservations.reserve()
    assert keys(reservations, dev_server) is None, "it is not being started"
    queue.start()
    assert keys(reservations, dev_server, "first") == keys(reservations, dev_server, "second")
    assert reservations.show(dev_server)["host_keys"] == ["ssh-ed25519 first"]
    reservations.sweep()
    assert reservations.show(dev_server)["host_keys"] != []
    reservations.facts(dev_server, "started", 0)
    assert reservations.show(dev_server)["connect"] == "ssh"
    reservations.facts(dev_server, "lost", 0)
    reservations.sweep()
    assert reservations.show(dev_server)["host_keys"] == []
    assert reservations.sql.value("select count(*) from odc.box_key") == 0


def test_the_phase_is_that_of_the_slowest_member(reservations: Reservations, queue: Queue) -> None:
    """MNE-22, POD-14"""
    dev_server = reservations.reserve(nodes=2, gpus=8)
    queue.start()
    progress(reservations, dev_server, (0, "scheduling", None), (1, "scheduling", "0/3 nodes"))
    queue.move(5)
    progress(reservations, dev_server, (0, "image_pull", "pulling x"))
    shown = reservations.show(dev_server)
    assert shown["phase"] == "scheduling"
    assert shown["message"].endswith(": pod 2 of 2: 0/3 nodes")
    queue.move(5)
    progress(reservations, dev_server, (1, "ssh", "SSH"), (0, "gang_barrier", "ready"))
    shown = reservations.show(dev_server)
    assert (shown["phase"], shown["phase_at"]) == ("ssh", shown["phases"][-2]["at"])
    assert "pod 2 of 2: SSH" in shown["message"]
    reservations.facts(dev_server, "started", 0, 1)
    shown = reservations.show(dev_server)
    assert (shown["status"], shown["phase"]) == ("active", None)
    assert [one["phase"] for one in shown["phases"]][:4] == [
        "queued", "starting", "scheduling", "image_pull",
    ]  # fmt: skip
    assert [one["took_s"] for one in shown["phases"]][2:4] == [5, 5]


def test_a_repeated_report_changes_only_the_message(
    reservations: Reservations, queue: Queue
) -> None:
    dev_server = reservations.reserve()
    queue.start()
    progress(reservations, dev_server, (0, "init", "one"))
    first = reservations.show(dev_server)["phase_at"]
    queue.move(9)
    progress(reservations, dev_server, (0, "init", "two"), (0, "init", "three"))
    shown = reservations.show(dev_server)
    assert (shown["phase_at"], shown["message"].rpartition(": ")[2]) == (first, "three")


def test_reports_of_ended_or_other_attempts_are_ignored(
    reservations: Reservations, queue: Queue
) -> None:
    """LIF-10"""
    dev_server = reservations.reserve()
    queue.start()
    progress(reservations, dev_server, (0, "init", "x"), attempt=2)
    assert reservations.show(dev_server)["phase"] == "starting"
    reservations.facts(dev_server, "start_failed", 0, detail="no image")
    progress(reservations, dev_server, (0, "init", "x"), attempt=1)
    assert reservations.sql.value("select count(*) from odc.box_phase") == 0


def test_each_out_of_memory_kill_counts_once_and_ends_nothing(
    reservations: Reservations, queue: Queue
) -> None:
    """LIF-14, EXP-15"""
    dev_server = reservations.active()
    progress(reservations, dev_server, (0, "oom", "OOMKilled"), (0, "oom", "OOMKilled"))
    progress(reservations, dev_server, (0, "oom", "OOMKilled"))
    shown = reservations.show(dev_server)
    assert (shown["status"], shown["oom_count"]) == ("active", 1)
    assert shown["last_oom_at"] == reservations.sql.value("select odc._iso($1)", queue.now)
    queue.now += timedelta(seconds=5)
    progress(reservations, dev_server, (0, "oom", None), (0, "restart", "exit code 1"))
    queue.now += timedelta(seconds=5)
    progress(reservations, dev_server, (0, "restart", "exit code 1"))
    shown = reservations.show(dev_server)
    assert (shown["oom_count"], shown["status"]) == (2, "active")
    texts = [one["text"] for one in shown["history"]]
    assert sum("ran out of memory" in text for text in texts) == 2
    assert sum("exit code 1" in text for text in texts) == 1
    kinds = reservations.sql.values("select kind from odc.event where kind like 'box%' order by id")
    assert kinds == ["box_oom", "box_oom", "box_restarted"]
