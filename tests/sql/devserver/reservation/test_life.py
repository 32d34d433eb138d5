"""The life of a dev server: its states as users know them, its clock, its end."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from odcd.errors import NotOwner, UnknownJob, WrongState
from tests.support.builders.dev_servers import HOUR, Reservations
from tests.support.builders.jobs import BOB, NOW, ROOT, Queue

GRACE_S = 120


@pytest.fixture
def boxes(queue: Queue) -> Reservations:
    return Reservations(queue)


def test_the_normal_way_has_the_names_that_users_know(boxes: Reservations, queue: Queue) -> None:
    """LIF-01, LIF-02, LIF-04: pending, preparing, active, expired; seen at once."""
    box = boxes.reserve(hours=1)
    assert boxes.status(box) == "pending"
    queue.start()
    assert boxes.status(box) == "preparing"
    boxes.facts(box, "started", 0)
    assert boxes.status(box) == "active"
    queue.move(HOUR + GRACE_S)
    boxes.sweep()
    told = boxes.show(box)
    assert (told["status"], told["phase"]) == ("expired", "cleaning_up")
    boxes.facts(box, "exited", 0, exit_code=0)
    told = boxes.show(box)
    assert (told["status"], told["phase"], told["state"]) == ("expired", None, "TIMEOUT")


def test_one_that_waits_is_queued_with_its_place(boxes: Reservations, queue: Queue) -> None:
    """SCH-01, SCH-03: the position counts within its GPU type."""
    for _ in range(2):
        boxes.active(gpus=8, gpu_type="h100", hours=2)
    first = boxes.reserve(gpus=8, gpu_type="h100", who=BOB)
    queue.move(1)
    second = boxes.reserve(gpus=8, gpu_type="h100")
    queue.start()
    told = [boxes.show(box) for box in (first, second)]
    assert [one["status"] for one in told] == ["queued", "queued"]
    assert [one["queue_position"] for one in told] == [1, 2]
    assert told[0]["planned_start_at"] is not None


def test_the_clock_starts_when_it_is_active(boxes: Reservations, queue: Queue) -> None:
    """LIF-06, LIF-09: one write sets the launch, the expiry and the end the plan goes by."""
    box = boxes.reserve(hours=2)
    queue.start()
    assert boxes.row(box)["launched_at"] is None
    queue.move(600)
    boxes.facts(box, "started", 0)
    row, run = boxes.row(box), queue.running(box)
    assert row["launched_at"] == NOW + timedelta(seconds=600)
    assert row["expires_at"] == NOW + timedelta(seconds=600 + 2 * HOUR)
    assert run["ends_at"] == row["expires_at"] + timedelta(seconds=GRACE_S)
    ends = queue.sql.values("select distinct ends_at from odc.allocation where job_id = $1", box)
    assert ends == [run["ends_at"]]
    # The page and all other places show the same end; the nodes stay allocated for the grace
    # period.
    end = queue.sql.row("select * from odc.show_end($1, $2)", box, queue.now)
    assert end["ends_at"] == row["expires_at"]
    assert queue.contradictions() == []


def test_a_gang_is_active_when_its_last_member_is_ready(boxes: Reservations, queue: Queue) -> None:
    """MNE-20, LIF-09: no clock runs while a rank is missing."""
    box = boxes.reserve(nodes=2, gpus=8)
    queue.start()
    boxes.facts(box, "started", 1)
    assert boxes.status(box) == "preparing"
    queue.move(30)
    boxes.facts(box, "started", 0)
    assert boxes.status(box) == "active"
    assert boxes.row(box)["launched_at"] == queue.now


def test_a_slow_preparation_does_not_use_up_the_time(boxes: Reservations, queue: Queue) -> None:
    """BUG-36: five minutes asked for, ten minutes of preparation."""
    box = boxes.reserve(hours=0.0834)
    queue.start()
    for _ in range(10):
        queue.move(60)
        boxes.sweep()
    assert boxes.status(box) == "preparing"
    assert queue.running(box)["ends_at"] > queue.now
    boxes.facts(box, "started", 0)
    assert boxes.status(box) == "active"
    assert queue.contradictions() == []


def test_what_is_not_ready_within_an_hour_fails(boxes: Reservations, queue: Queue) -> None:
    """LIF-15, LIF-27: its pods are asked to end, its resources are free again, and its keys are
    deleted."""
    box = boxes.reserve()
    queue.start()
    boxes.sql.rows(
        "select * from odc.keep_box_key(0, $1, 'h', 'hp', 'g', 'gp', repeat('0a', 32), $2)",
        box, queue.now,
    )  # fmt: skip
    queue.move(HOUR)
    boxes.sweep()
    [stop] = boxes.sql.rows("select job_id from odc.take_stops(0, $1)", queue.now)
    assert stop["job_id"] == box
    told = boxes.show(box)
    assert (told["status"], told["phase"]) == ("failed", "cleaning_up")
    boxes.facts(box, "exited", 0, exit_code=0)
    told = boxes.show(box)
    assert told["status"] == "failed"
    assert "not ready within 01:00:00" in told["failure_reason"]
    boxes.sweep()
    for table in ("allocation", "running", "box_key"):
        assert boxes.sql.value(f"select count(*) from odc.{table}") == 0, table


def test_it_is_tried_three_times_and_then_fails(boxes: Reservations, queue: Queue) -> None:
    """LIF-19, LIF-20: in between it waits at the place that it had, before who came later."""
    box = boxes.reserve()
    queued_at = queue.pending(box)["queued_at"]
    for attempt in (1, 2, 3):
        assert queue.pending(box)["queued_at"] == queued_at
        queue.move(600)
        queue.sweep()
        queue.start()
        assert queue.running(box)["attempt"] == attempt
        boxes.facts(box, "start_failed", 0, cause="launch", detail="no such folder")
    told = boxes.show(box)
    assert (told["status"], told["failure_reason"]) == ("failed", "no such folder")


def test_one_that_was_active_never_comes_back(boxes: Reservations, queue: Queue) -> None:
    """LIF-10, LIF-12, LIF-25: its node is lost, and its user learns it."""
    box = boxes.active()
    boxes.facts(box, "lost", 0, detail="node h100-0 is gone")
    assert boxes.status(box) == "failed"
    assert queue.start() == []
    [refused] = queue.change("requeue", box)
    assert refused["outcome"] == "refused"


def test_it_cannot_be_requeued_nor_given_another_limit(boxes: Reservations, queue: Queue) -> None:
    box = boxes.active()
    [answer] = queue.change("requeue", box)
    assert "is a reservation" in answer["message"]
    [answer] = queue.updates(box, changes={"time_limit_s": 60})
    assert "odcctl extend" in answer["hint"]


@pytest.mark.parametrize("when", ["queued", "preparing", "active"])
def test_cancelled_it_is_cancelled_at_any_time(
    boxes: Reservations, queue: Queue, when: str
) -> None:
    """LIF-23, LIF-24."""
    box = boxes.reserve()
    if when != "queued":
        queue.start()
    if when == "active":
        boxes.facts(box, "started", 0)
    queue.cancel(box)
    assert boxes.status(box) == "cancelled"
    if when != "queued":
        boxes.facts(box, "exited", 0, exit_code=0)
    told = boxes.show(box)
    assert told["status"] == "cancelled"
    assert told["message"] == "alice cancelled it"
    assert queue.contradictions() == []


def test_one_that_has_waited_too_long_is_cancelled(boxes: Reservations, queue: Queue) -> None:
    """SCH-19: after 48 hours, not five minutes."""
    for _ in range(2):
        queue.submit(gpus=8)
    queue.start()
    box = boxes.reserve(gpus=8)
    queue.move(47 * HOUR)
    boxes.sweep(48 * HOUR)
    assert boxes.status(box) == "queued" or boxes.status(box) == "pending"
    queue.move(HOUR)
    boxes.sweep(48 * HOUR)
    told = boxes.show(box)
    assert told["status"] == "cancelled"
    assert "waited longer" in told["message"]


def test_a_list_has_ones_own_and_the_last_hours(boxes: Reservations, queue: Queue) -> None:
    """CLI-19, CLI-20, LIF-08: ended ones stay, and are shown for an hour."""
    mine, gone = boxes.active(), boxes.active()
    other = boxes.active(BOB)
    queue.cancel(gone)
    boxes.facts(gone, "exited", 0, exit_code=0)
    assert boxes.list() == {mine: "active", gone: "cancelled"}
    assert boxes.list(users=["all"]) == {mine: "active", gone: "cancelled", other: "active"}
    assert boxes.list(users=["bob"]) == {other: "active"}
    assert boxes.list(statuses=["cancelled"]) == {gone: "cancelled"}
    queue.move(HOUR + 1)
    assert boxes.list() == {mine: "active"}
    assert boxes.list(ended=True) == {mine: "active", gone: "cancelled"}


def test_how_to_get_in_is_for_its_owner(boxes: Reservations) -> None:
    """SEC, AUT-08."""
    box = boxes.active()
    assert boxes.show(box)["connect"] == "terminal"
    assert boxes.show(box, BOB)["connect"] is None
    assert boxes.show(box, ROOT)["connect"] == "terminal"


def test_what_is_no_reservation_is_not_shown_as_one(boxes: Reservations, queue: Queue) -> None:
    """BUG-22, BUG-35: an id that is not there, or another thing, is an error."""
    job = queue.submit()
    for wrong in (job, 10**9):
        with pytest.raises(UnknownJob):
            boxes.show(wrong)
        with pytest.raises(UnknownJob):
            boxes.extend(wrong, 1)


def test_only_its_owner_and_operators_extend_it(boxes: Reservations) -> None:
    """AUT-08."""
    box = boxes.active()
    with pytest.raises(NotOwner):
        boxes.extend(box, 1, BOB)
    assert boxes.extend(box, 1, ROOT)["extensions"] == 1


def test_the_history_tells_what_happened(boxes: Reservations, queue: Queue) -> None:
    """LIF-05."""
    box = boxes.active(hours=1)
    boxes.extend(box, 2)
    texts = [one["text"] for one in boxes.show(box)["history"]]
    assert [re.split(" on | and | until ", text)[0] for text in texts] == [
        "alice requested it", "odc began to start it", "it became active", "alice extended it",
    ]  # fmt: skip


def test_one_that_is_slow_to_end_keeps_no_other_from_its_end(
    boxes: Reservations, queue: Queue
) -> None:
    """BUG-07, EXP-11: all ended ones are reported at once, their status first; the resources of one
    are free although another is still cleaned up."""
    slow, other = boxes.active(hours=1, gpus=8), boxes.active(hours=1, gpus=8)
    queue.move(HOUR + 121)
    boxes.sweep()
    assert [boxes.status(box) for box in (slow, other)] == ["expired", "expired"]
    assert {boxes.show(box)["phase"] for box in (slow, other)} == {"cleaning_up"}
    stops = boxes.sql.rows("select job_id from odc.take_stops(0, $1)", queue.now)
    assert {row["job_id"] for row in stops} == {slow, other}
    boxes.facts(other, "exited", 0)
    third = boxes.reserve(gpus=8)
    assert queue.start() == [third]
    assert (boxes.show(slow)["phase"], boxes.status(slow)) == ("cleaning_up", "expired")


def test_an_ended_one_cannot_be_extended(boxes: Reservations, queue: Queue) -> None:
    box = boxes.active(hours=1)
    queue.move(HOUR + GRACE_S)
    boxes.sweep()
    with pytest.raises(WrongState, match="is expired"):
        boxes.extend(box, 1)
