"""Warnings before the end: each level once, never one too many, and again after an extension."""

from __future__ import annotations

import random

import pytest

from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import Queue

MINUTE = 60


@pytest.fixture
def boxes(queue: Queue) -> Reservations:
    return Reservations(queue)


def test_each_level_is_due_once_and_to_the_second(boxes: Reservations, queue: Queue) -> None:
    """EXP-01, EXP-04, EXP-10."""
    box = boxes.active(hours=1)
    told: list[tuple[int, int | None]] = []
    for _ in range(4):
        at = boxes.next_warning()
        assert at is not None
        queue.move((at - queue.now).total_seconds() - 1)
        assert boxes.due() == []
        queue.move(1)
        [one] = boxes.due()
        assert boxes.due() == [one], "until it was delivered it comes again"
        boxes.warned(*one)
        assert boxes.due() == []
        told.append(one)
    assert told == [(box, 30), (box, 15), (box, 5), (box, 0)]
    assert boxes.next_warning() is None
    assert [one["minutes"] for one in boxes.show(box)["warnings"]] == [30, 15, 5, 0]
    assert "its time is over; its processes are stopped at" in boxes.show(box)["message"]


def test_a_short_one_has_no_level_that_lies_before_it(boxes: Reservations, queue: Queue) -> None:
    """EXP-04: ten minutes have the warning of five, and not all three at once."""
    box = boxes.active(hours=1 / 6)
    assert boxes.due() == []
    queue.move(5 * MINUTE)
    assert boxes.due() == [(box, 5)]


def test_of_several_that_are_late_only_the_last_is_sent(boxes: Reservations, queue: Queue) -> None:
    """The daemon was away for half an hour."""
    box = boxes.active(hours=1)
    queue.move(46 * MINUTE)
    assert boxes.due() == [(box, 15)]
    boxes.warned(box, 15)
    queue.move(9 * MINUTE)
    assert boxes.due() == [(box, 5)]


def test_one_that_was_not_delivered_gives_way_to_the_next(
    boxes: Reservations, queue: Queue
) -> None:
    box = boxes.active(hours=1)
    queue.move(30 * MINUTE)
    assert boxes.due() == [(box, 30)]
    queue.move(15 * MINUTE)
    assert boxes.due() == [(box, 15)]


def test_an_extension_clears_them_and_they_come_anew(boxes: Reservations, queue: Queue) -> None:
    """EXP-05: files go, levels are due again, the history stays."""
    box = boxes.active(hours=1)
    queue.move(46 * MINUTE)
    boxes.warned(*boxes.due()[0])
    boxes.extend(box, 1)
    assert boxes.due() == [(box, None)]
    boxes.warned(box, None)
    assert boxes.due() == []
    queue.move(44 * MINUTE)
    assert boxes.due() == [(box, 30)]
    boxes.warned(box, 30)
    assert [one["minutes"] for one in boxes.show(box)["warnings"]] == [15, 30]


def test_a_level_that_lies_before_an_extension_is_not_sent(
    boxes: Reservations, queue: Queue
) -> None:
    """Extended by ten minutes: it ends in twelve, so the notices for 15 and 30 are not sent."""
    box = boxes.active(hours=1)
    queue.move(58 * MINUTE)
    boxes.warned(*boxes.due()[0])
    boxes.extend(box, 1 / 6)
    boxes.warned(box, None)
    assert boxes.due() == []
    queue.move(7 * MINUTE)
    assert boxes.due() == [(box, 5)]


def test_one_that_is_being_ended_is_not_warned(boxes: Reservations, queue: Queue) -> None:
    box = boxes.active(hours=1)
    queue.move(45 * MINUTE)
    queue.cancel(box)
    assert boxes.due() == []
    assert boxes.next_warning() is None


def test_what_did_not_arrive_is_kept(boxes: Reservations, queue: Queue) -> None:
    box = boxes.active(hours=1)
    queue.move(30 * MINUTE)
    boxes.due()
    boxes.warned(box, 30, "its home is not writable")
    [last] = [one["text"] for one in boxes.show(box)["history"]][-1:]
    assert "part of the notice was not delivered: its home is not writable" in last


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 20))]
)
def test_whatever_happens_each_level_is_sent_at_most_once_per_end(
    boxes: Reservations, queue: Queue, seed: int
) -> None:
    """Boxes of all lengths, a daemon that is away now and then, extensions, lost deliveries."""
    chance = random.Random(seed)
    living = [boxes.active(hours=chance.choice([1 / 12, 1 / 6, 0.4, 1, 2])) for _ in range(4)]
    sent: list[tuple[int, int | None, object]] = []
    for _ in range(60):
        queue.move(chance.choice([20, 60, 300, 900]))
        for box, minutes in boxes.due():
            row = boxes.row(box)
            left_s = (row["expires_at"] - queue.now).total_seconds()
            if minutes is not None:
                assert left_s <= minutes * MINUTE
                begun = max(row["launched_at"], row["extended_at"] or row["launched_at"])
                assert (row["expires_at"] - begun).total_seconds() > minutes * MINUTE
            if chance.random() < 0.7:
                boxes.warned(box, minutes)
                if minutes is not None:
                    sent.append((box, minutes, row["expires_at"]))
        boxes.sweep()
        for box in living:
            fresh = boxes.status(box) == "active" and boxes.row(box)["extensions"] == 0
            if fresh and chance.random() < 0.1:
                boxes.extend(box, chance.choice([0.1, 0.5, 2]))
    assert len(sent) == len(set(sent))
    assert queue.contradictions() == []
