"""Jupyter Lab as requested: due starts and stops, their results, and the users who may reach it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from odcd.errors import BadRequest, NotOwner, WrongState
from odcd.records.job import Identity
from tests.support.builders.dev_servers import Reservations, actor
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue

SSH: dict[str, object] = {"ssh_keys": []}
WITH: dict[str, object] = {**SSH, "jupyter": True}
TOKEN = "0a" * 32


@pytest.fixture
def boxes(queue: Queue) -> Reservations:
    return Reservations(queue)


def ask(boxes: Reservations, box: int, on: bool, who: Identity = ALICE) -> None:
    boxes.sql.value(
        "select odc.set_jupyter($1::jsonb, $2, $3, $4) is null",
        actor(who), box, on, boxes.queue.now,
    )  # fmt: skip


def due(boxes: Reservations) -> list[tuple[int, bool]]:
    rows = boxes.sql.rows("select * from odc.due_jupyters(0)")
    return [(row["job_id"], row["wanted"]) for row in rows]


def note(boxes: Reservations, box: int, running: bool, error: str | None = None) -> None:
    boxes.queue.now += timedelta(seconds=1)
    attempt = boxes.queue.running(box)["attempt"]
    boxes.sql.value(
        "select odc.note_jupyter(0, $1, $2, $3, $4, $5) is null",
        box, attempt, running, error, boxes.queue.now,
    )  # fmt: skip


def enter(boxes: Reservations, box: int, rank: int = 0, who: Identity = ALICE) -> int:
    return boxes.sql.value(
        "select odc.enter_reservation($1::jsonb, $2, $3, 'jupyter')", actor(who), box, rank
    )


def keyed(boxes: Reservations, box: int) -> None:
    boxes.sql.rows(
        "select * from odc.keep_box_key(0, $1, 'h', 'hp', 'g', 'gp', $2, $3)",
        box, TOKEN, boxes.queue.now,
    )  # fmt: skip


def told(boxes: Reservations, box: int, who: Identity = ALICE) -> tuple[Any, ...]:
    one = boxes.show(box, who)
    return one["jupyter"], one["jupyter_error"], one["jupyter_url"]


URL = f"http://127.0.0.1:8888/lab?token={TOKEN}"


def test_it_starts_with_a_box_that_asked_for_it_and_is_told_when_it_runs(
    boxes: Reservations, queue: Queue
) -> None:
    """CLI-07, ACC-13, ACC-14"""
    box = boxes.reserve(asked=WITH)
    assert (due(boxes), told(boxes, box)) == ([], (None, None, None))
    queue.start()
    keyed(boxes, box)
    assert due(boxes) == [], "it is not ready"
    boxes.facts(box, "started", 0)
    assert due(boxes) == [(box, True)]
    assert told(boxes, box) == ("starting", None, None)
    note(boxes, box, True)
    assert (due(boxes), told(boxes, box)) == ([], ("running", None, URL))
    assert told(boxes, box, ROOT)[2] == URL
    assert told(boxes, box, BOB) == ("running", None, None)


def test_it_is_enabled_and_disabled_at_any_time_and_twice_is_once(boxes: Reservations) -> None:
    """ACC-13, ACC-15, ACC-16"""
    box = boxes.active(asked=SSH)
    keyed(boxes, box)
    assert (due(boxes), told(boxes, box)[0]) == ([], None)
    with pytest.raises(WrongState, match="has no Jupyter Lab"):
        enter(boxes, box)
    ask(boxes, box, True)
    ask(boxes, box, True)
    assert due(boxes) == [(box, True)]
    note(boxes, box, True)
    ask(boxes, box, True)
    assert (due(boxes), enter(boxes, box)) == ([], 1)
    ask(boxes, box, False)
    assert (due(boxes), told(boxes, box)) == ([(box, False)], ("ending", None, None))
    with pytest.raises(WrongState, match="has no Jupyter Lab"):
        enter(boxes, box)
    note(boxes, box, False)
    ask(boxes, box, False)
    assert (due(boxes), told(boxes, box)) == ([], (None, None, None))
    ask(boxes, box, True)
    assert (due(boxes), told(boxes, box)[0]) == ([(box, True)], "starting")
    history = [one["text"] for one in boxes.show(box)["history"]]
    assert history.count("alice asked to start Jupyter Lab") == 2
    assert TOKEN not in str(history)


def test_an_error_is_kept_and_asking_again_tries_again(boxes: Reservations) -> None:
    """ACC-15"""
    box = boxes.active(asked=WITH)
    note(boxes, box, True, "there is no jupyter")
    assert (due(boxes), told(boxes, box)[:2]) == ([], ("failed", "there is no jupyter"))
    assert told(boxes, box, BOB)[1] is None
    ask(boxes, box, True)
    assert (due(boxes), told(boxes, box)[:2]) == ([(box, True)], ("starting", None))
    ask(boxes, box, False)
    assert (due(boxes), told(boxes, box)[:2]) == ([], (None, None))
    ask(boxes, box, True)
    note(boxes, box, True)
    ask(boxes, box, False)
    note(boxes, box, False, "it does not end")
    assert (due(boxes), told(boxes, box)[:2]) == ([], ("failed", "it does not end"))
    ask(boxes, box, False)
    assert due(boxes) == [(box, False)]


def test_it_is_seen_to_after_a_container_began_anew(boxes: Reservations, queue: Queue) -> None:
    """LIF-26"""
    box = boxes.active(asked=WITH)
    note(boxes, box, True)
    queue.now += timedelta(minutes=1)
    boxes.sql.rows(
        "select odc.record_progress(0, array[$1::bigint], '{1}', '{0}', '{restart}', "
        "array[$2::timestamptz], '{x}', $2)",
        box, queue.now,
    )  # fmt: skip
    assert due(boxes) == [(box, True)]
    note(boxes, box, True)
    assert due(boxes) == []


def test_only_its_owner_asks_and_its_first_member_has_it(boxes: Reservations, queue: Queue) -> None:
    """ACC-16, AUT-08: and no one once it is over."""
    box = boxes.active(asked=WITH, nodes=2, gpus=8)
    with pytest.raises(NotOwner):
        ask(boxes, box, False, BOB)
    with pytest.raises(NotOwner):
        enter(boxes, box, who=BOB)
    with pytest.raises(BadRequest, match="member 1"):
        enter(boxes, box, 1)
    note(boxes, box, True)
    for rank in (0, 1):
        boxes.facts(box, "lost", rank)
    boxes.sweep()
    assert boxes.sql.value("select count(*) from odc.box_jupyter") == 0
    with pytest.raises(WrongState, match="is over"):
        ask(boxes, box, True)
    other = boxes.active()
    with pytest.raises(WrongState, match="does not run odc's start program"):
        ask(boxes, other, True)
