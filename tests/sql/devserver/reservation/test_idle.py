"""Idle reservations: found by consecutive observations, notified, and ended if the QOS says so."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from odcd.errors import BadRequest
from tests.support.builders.dev_servers import Reservations, actor
from tests.support.builders.jobs import ALICE, ROOT, Queue

EVERY = timedelta(minutes=5)


@pytest.fixture
def boxes(queue: Queue) -> Reservations:
    return Reservations(queue)


def policy(boxes: Reservations, **terms: int) -> dict[str, Any]:
    told = boxes.sql.value(
        "select odc.edit_qos($1::jsonb, 'normal', $2::jsonb, $3)",
        actor(ROOT), json.dumps(terms), boxes.queue.now,
    )  # fmt: skip
    return json.loads(told)


class Watched:
    """A reservation that is looked at every five minutes."""

    def __init__(self, boxes: Reservations, box: int) -> None:
        self.boxes = boxes
        self.box = box
        self.cpu_s = 100.0

    def look(
        self, minutes: float = 5, *, sessions: int = 0, gpu: int | None = 0, cpus: float = 0.01
    ) -> tuple[Any, ...] | None:
        """The notice for its user."""
        self.boxes.queue.now += timedelta(minutes=minutes)
        self.cpu_s += cpus * minutes * 60
        rows = self.boxes.sql.rows(
            "select * from odc.note_look(0, $1, 1, $2, $3, $4, $5, $6)",
            self.box, sessions, gpu, self.cpu_s, EVERY, self.boxes.queue.now,
        )  # fmt: skip
        return tuple(rows[0].values()) if rows else None

    def told(self, notice: tuple[Any, ...]) -> None:
        self.boxes.sql.value(
            "select odc.note_idle_told(0, $1, 1, $2, $3, $4) is null",
            self.box, *notice, self.boxes.queue.now,
        )  # fmt: skip

    @property
    def idle_s(self) -> int | None:
        return self.boxes.show(self.box)["idle_s"]


@pytest.fixture
def watched(boxes: Reservations) -> Watched:
    policy(boxes, idle_warn_s=1800, idle_release_s=3600)
    return Watched(boxes, boxes.active())


def due(boxes: Reservations) -> list[int]:
    return [row["job_id"] for row in boxes.sql.rows("select * from odc.due_looks(0)")]


def test_nothing_is_looked_at_unless_the_qos_says_so(boxes: Reservations) -> None:
    box = boxes.active()
    assert due(boxes) == []
    told = policy(boxes, idle_warn_s=1800)
    assert (told["idle_warn_s"], told["idle_release_s"]) == (1800, 0)
    assert due(boxes) == [box]
    policy(boxes, idle_warn_s=0)
    assert due(boxes) == []


def test_terms_that_cannot_be_are_refused(boxes: Reservations) -> None:
    for terms in ({"idle_warn_s": 599}, {"idle_release_s": 3600},
                  {"idle_warn_s": 3600, "idle_release_s": 1800}):  # fmt: skip
        with pytest.raises(BadRequest, match="out of range"):
            policy(boxes, **terms)


def test_one_that_nobody_uses_is_shown_told_and_ended(
    watched: Watched, boxes: Reservations
) -> None:
    watched.look()
    assert watched.idle_s is None, "one look tells nothing"
    assert watched.look() is None
    for _ in range(5):
        assert watched.look() is None
    assert watched.idle_s == 1500
    notice = watched.look()
    assert notice is not None
    began = boxes.queue.now - timedelta(minutes=30)
    assert notice == (1800, began + timedelta(hours=1))
    again = watched.look()
    assert again is not None, "until it was told"
    watched.told(again)
    for _ in range(4):
        assert watched.look() is None
        assert boxes.status(watched.box) == "active"
    assert watched.look() is None
    one = boxes.show(watched.box)
    assert (one["status"], one["phase"]) == ("cancelled", "cleaning_up")
    assert due(boxes) == []
    boxes.facts(watched.box, "exited", 0)
    one = boxes.show(watched.box)
    assert one["message"] == "it was idle for 01:00:00, and QOS normal ends idle reservations"
    texts = [event["text"] for event in one["history"]]
    assert "its user was notified that it had been idle for 00:35:00" in texts
    assert any(text.startswith("it was ended because it had been idle since") for text in texts)


@pytest.mark.parametrize(
    "use", [{"sessions": 1}, {"gpu": 1}, {"cpus": 0.5}, {"minutes": 16}, {"cpus": -0.1}],
    ids=["session", "GPU", "CPU", "not looked at", "began anew"],
)  # fmt: skip
def test_any_use_begins_it_anew_and_what_is_not_known_is_use(
    watched: Watched, use: dict[str, Any]
) -> None:
    for _ in range(6):
        watched.look()
    assert watched.idle_s == 1200
    assert watched.look(**use) is None
    assert watched.idle_s is None
    watched.look()
    assert watched.idle_s in (0, None)


def test_what_was_seen_long_ago_is_not_told(watched: Watched, boxes: Reservations) -> None:
    watched.look()
    watched.look()
    boxes.queue.now += timedelta(minutes=14)
    assert watched.idle_s == 14 * 60
    boxes.queue.now += timedelta(minutes=1)
    assert watched.idle_s is None


def test_whoever_comes_back_is_told_so_and_warned_anew(
    watched: Watched, boxes: Reservations
) -> None:
    watched.look()
    while (notice := watched.look()) is None:
        pass
    watched.told(notice)
    assert watched.look(sessions=1) == (None, None)
    assert watched.look(sessions=1) == (None, None), "until it was told"
    for _ in range(6):
        watched.look()
    second = watched.look()
    assert second is not None
    assert second[0] == 1800
    for _ in range(20):
        watched.look()
    assert boxes.status(watched.box) == "active", "who was not told keeps it"
    watched.told(second)
    watched.look()
    assert boxes.status(watched.box) == "active", "ten minutes from then"
    watched.look()
    assert boxes.status(watched.box) == "cancelled"


def test_without_a_time_of_release_it_stays(boxes: Reservations) -> None:
    policy(boxes, idle_warn_s=600)
    watched = Watched(boxes, boxes.active(ALICE))
    notices = [notice for _ in range(5) if (notice := watched.look())]
    assert notices[0] == (600, None)
    watched.told(notices[0])
    for _ in range(50):
        assert watched.look() is None
    assert boxes.status(watched.box) == "active"
