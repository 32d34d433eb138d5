"""Warnings before the end: each level once, and again after an extension."""

from __future__ import annotations

import random

import pytest

from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import Queue

MINUTE = 60


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    return Reservations(queue)


def test_each_warning_is_due_once_and_to_the_second(
    reservations: Reservations, queue: Queue
) -> None:
    """EXP-01, EXP-04, EXP-10."""
    dev_server = reservations.active(hours=1)
    warnings: list[tuple[int, int | None]] = []
    for _ in range(4):
        at = reservations.next_warning()
        assert at is not None
        queue.move((at - queue.now).total_seconds() - 1)
        assert reservations.due() == []
        queue.move(1)
        [one] = reservations.due()
        assert reservations.due() == [one], "until it was delivered it comes again"
        reservations.warned(*one)
        assert reservations.due() == []
        warnings.append(one)
    assert warnings == [(dev_server, 30), (dev_server, 15), (dev_server, 5), (dev_server, 0)]
    assert reservations.next_warning() is None
    assert [one["minutes"] for one in reservations.show(dev_server)["warnings"]] == [30, 15, 5, 0]
    assert (
        "its time is over; its processes are stopped at" in reservations.show(dev_server)["message"]
    )


def test_a_short_reservation_skips_earlier_warnings(
    reservations: Reservations, queue: Queue
) -> None:
    """EXP-04: a reservation of ten minutes has only the warning at five minutes."""
    dev_server = reservations.active(hours=1 / 6)
    assert reservations.due() == []
    queue.move(5 * MINUTE)
    assert reservations.due() == [(dev_server, 5)]


def test_of_several_late_warnings_only_the_last_is_sent(
    reservations: Reservations, queue: Queue
) -> None:
    """The daemon was away for half an hour."""
    dev_server = reservations.active(hours=1)
    queue.move(46 * MINUTE)
    assert reservations.due() == [(dev_server, 15)]
    reservations.warned(dev_server, 15)
    queue.move(9 * MINUTE)
    assert reservations.due() == [(dev_server, 5)]


def test_an_undelivered_warning_is_replaced_by_the_next(
    reservations: Reservations, queue: Queue
) -> None:
    dev_server = reservations.active(hours=1)
    queue.move(30 * MINUTE)
    assert reservations.due() == [(dev_server, 30)]
    queue.move(15 * MINUTE)
    assert reservations.due() == [(dev_server, 15)]


def test_warnings_are_sent_again_after_an_extension(
    reservations: Reservations, queue: Queue
) -> None:
    """EXP-05: files are deleted, levels are due again, the history is kept."""
    dev_server = reservations.active(hours=1)
    queue.move(46 * MINUTE)
    reservations.warned(*reservations.due()[0])
    reservations.extend(dev_server, 1)
    assert reservations.due() == [(dev_server, None)]
    reservations.warned(dev_server, None)
    assert reservations.due() == []
    queue.move(44 * MINUTE)
    assert reservations.due() == [(dev_server, 30)]
    reservations.warned(dev_server, 30)
    assert [one["minutes"] for one in reservations.show(dev_server)["warnings"]] == [15, 30]


def test_a_warning_of_the_old_end_is_not_sent_after_an_extension(
    reservations: Reservations, queue: Queue
) -> None:
    """Extended by ten minutes: it ends in twelve, so the notices for 15 and 30 are not sent."""
    dev_server = reservations.active(hours=1)
    queue.move(58 * MINUTE)
    reservations.warned(*reservations.due()[0])
    reservations.extend(dev_server, 1 / 6)
    reservations.warned(dev_server, None)
    assert reservations.due() == []
    queue.move(7 * MINUTE)
    assert reservations.due() == [(dev_server, 5)]


def test_a_reservation_that_is_ending_gets_no_warning(
    reservations: Reservations, queue: Queue
) -> None:
    dev_server = reservations.active(hours=1)
    queue.move(45 * MINUTE)
    queue.cancel(dev_server)
    assert reservations.due() == []
    assert reservations.next_warning() is None


def test_failed_deliveries_are_recorded(reservations: Reservations, queue: Queue) -> None:
    dev_server = reservations.active(hours=1)
    queue.move(30 * MINUTE)
    reservations.due()
    reservations.warned(dev_server, 30, "its home is not writable")
    [last] = [one["text"] for one in reservations.show(dev_server)["history"]][-1:]
    assert "part of the notice was not delivered: its home is not writable" in last


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 20))]
)
def test_each_warning_is_sent_at_most_once_per_end(
    reservations: Reservations, queue: Queue, seed: int
) -> None:
    """Dev servers of all lengths, a daemon that pauses, extensions, lost deliveries."""
    chance = random.Random(seed)
    living = [
        reservations.active(hours=chance.choice([1 / 12, 1 / 6, 0.4, 1, 2])) for _ in range(4)
    ]
    sent: list[tuple[int, int | None, object]] = []
    for _ in range(60):
        queue.move(chance.choice([20, 60, 300, 900]))
        for dev_server, minutes in reservations.due():
            row = reservations.row(dev_server)
            left_s = (row["expires_at"] - queue.now).total_seconds()
            if minutes is not None:
                assert left_s <= minutes * MINUTE
                begun = max(row["launched_at"], row["extended_at"] or row["launched_at"])
                assert (row["expires_at"] - begun).total_seconds() > minutes * MINUTE
            if chance.random() < 0.7:
                reservations.warned(dev_server, minutes)
                if minutes is not None:
                    sent.append((dev_server, minutes, row["expires_at"]))
        reservations.sweep()
        for dev_server in living:
            fresh = (
                reservations.status(dev_server) == "active"
                and reservations.row(dev_server)["extensions"] == 0
            )
            if fresh and chance.random() < 0.1:
                reservations.extend(dev_server, chance.choice([0.1, 0.5, 2]))
    assert len(sent) == len(set(sent))
    assert queue.contradictions() == []
