"""Data of dev servers in pods: keys, phases, and restarted containers."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import Queue


@pytest.fixture
def boxes(queue: Queue) -> Reservations:
    return Reservations(queue)


def progress(
    boxes: Reservations, job_id: int, *told: tuple[int, str, str | None], attempt: int = 0
) -> None:
    """reports: rank, kind, detail."""
    now = boxes.queue.now
    attempt = attempt or boxes.queue.running(job_id)["attempt"]
    n = len(told)
    boxes.sql.rows(
        "select odc.record_progress(0, $1, $2, $3, $4, $5, $6, $7)",
        [job_id] * n, [attempt] * n, [one[0] for one in told], [one[1] for one in told], [now] * n,
        [one[2] for one in told], now,
    )  # fmt: skip


def keys(boxes: Reservations, job_id: int, host: str = "h") -> dict[str, Any] | None:
    rows = boxes.sql.rows(
        "select * from odc.keep_box_key(0, $1, $2, $3, 'g', 'gp', repeat('0a', 32), $4)",
        job_id, host, f"ssh-ed25519 {host}", boxes.queue.now,
    )  # fmt: skip
    return dict(rows[0]) if rows else None


def test_a_dispatch_says_that_it_is_a_box_and_what_was_asked(
    boxes: Reservations, queue: Queue
) -> None:
    box = boxes.reserve(asked={"ssh_keys": ["ssh-ed25519 A"]})
    queue.start()
    [row] = boxes.sql.rows("select body from odc.dispatches(0, $1)", [box])
    told = json.loads(row["body"])
    assert (told["kind"], told["ask"]) == ("reservation", {"ssh_keys": ["ssh-ed25519 A"]})
    job = queue.submit()
    queue.start()
    [row] = boxes.sql.rows("select body from odc.dispatches(0, $1)", [job])
    told = json.loads(row["body"])
    assert (told["kind"], told["ask"]) == ("batch", None)


def test_keys_are_made_once_and_go_when_it_is_over(boxes: Reservations, queue: Queue) -> None:
    """ACC-24"""
    box = boxes.reserve()
    assert keys(boxes, box) is None, "it is not being started"
    queue.start()
    assert keys(boxes, box, "first") == keys(boxes, box, "second")
    assert boxes.show(box)["host_keys"] == ["ssh-ed25519 first"]
    boxes.sweep()
    assert boxes.show(box)["host_keys"] != []
    boxes.facts(box, "started", 0)
    assert boxes.show(box)["connect"] == "ssh"
    boxes.facts(box, "lost", 0)
    boxes.sweep()
    assert boxes.show(box)["host_keys"] == []
    assert boxes.sql.value("select count(*) from odc.box_key") == 0


def test_the_phase_is_that_of_the_member_furthest_behind(boxes: Reservations, queue: Queue) -> None:
    """MNE-22, POD-14"""
    box = boxes.reserve(nodes=2, gpus=8)
    queue.start()
    progress(boxes, box, (0, "scheduling", None), (1, "scheduling", "0/3 nodes"))
    queue.move(5)
    progress(boxes, box, (0, "image_pull", "pulling x"))
    told = boxes.show(box)
    assert told["phase"] == "scheduling"
    assert told["message"].endswith(": pod 2 of 2: 0/3 nodes")
    queue.move(5)
    progress(boxes, box, (1, "ssh", "SSH"), (0, "gang_barrier", "ready"))
    told = boxes.show(box)
    assert (told["phase"], told["phase_at"]) == ("ssh", told["phases"][-2]["at"])
    assert "pod 2 of 2: SSH" in told["message"]
    boxes.facts(box, "started", 0, 1)
    told = boxes.show(box)
    assert (told["status"], told["phase"]) == ("active", None)
    assert [one["phase"] for one in told["phases"]][:4] == [
        "queued", "starting", "scheduling", "image_pull",
    ]  # fmt: skip
    assert [one["took_s"] for one in told["phases"]][2:4] == [5, 5]


def test_what_is_told_again_changes_the_words_alone(boxes: Reservations, queue: Queue) -> None:
    box = boxes.reserve()
    queue.start()
    progress(boxes, box, (0, "init", "one"))
    first = boxes.show(box)["phase_at"]
    queue.move(9)
    progress(boxes, box, (0, "init", "two"), (0, "init", "three"))
    told = boxes.show(box)
    assert (told["phase_at"], told["message"].rpartition(": ")[2]) == (first, "three")


def test_what_is_over_or_another_attempt_is_left_alone(boxes: Reservations, queue: Queue) -> None:
    """LIF-10"""
    box = boxes.reserve()
    queue.start()
    progress(boxes, box, (0, "init", "x"), attempt=2)
    assert boxes.show(box)["phase"] == "starting"
    boxes.facts(box, "start_failed", 0, detail="no image")
    progress(boxes, box, (0, "init", "x"), attempt=1)
    assert boxes.sql.value("select count(*) from odc.box_phase") == 0


def test_out_of_memory_is_counted_once_per_moment_and_is_no_end(
    boxes: Reservations, queue: Queue
) -> None:
    """LIF-14, EXP-15"""
    box = boxes.active()
    progress(boxes, box, (0, "oom", "OOMKilled"), (0, "oom", "OOMKilled"))
    progress(boxes, box, (0, "oom", "OOMKilled"))
    told = boxes.show(box)
    assert (told["status"], told["oom_count"]) == ("active", 1)
    assert told["last_oom_at"] == boxes.sql.value("select odc._iso($1)", queue.now)
    queue.now += timedelta(seconds=5)
    progress(boxes, box, (0, "oom", None), (0, "restart", "exit code 1"))
    queue.now += timedelta(seconds=5)
    progress(boxes, box, (0, "restart", "exit code 1"))
    told = boxes.show(box)
    assert (told["oom_count"], told["status"]) == (2, "active")
    said = [one["text"] for one in told["history"]]
    assert sum("ran out of memory" in text for text in said) == 2
    assert sum("exit code 1" in text for text in said) == 1
    kinds = boxes.sql.values("select kind from odc.event where kind like 'box%' order by id")
    assert kinds == ["box_oom", "box_oom", "box_restarted"]
