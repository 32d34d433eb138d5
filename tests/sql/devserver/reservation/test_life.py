"""The life of a dev server: its states as users know them, its clock, its end."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from odcd.errors import NotOwner, UnknownJob, WrongState
from tests.support.builders.dev_servers import HOUR, Reservations
from tests.support.builders.jobs import BOB, NOW, ROOT, Queue, a_cluster

GRACE_S = 120


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    return Reservations(queue)


def test_states_have_the_names_that_users_see(reservations: Reservations, queue: Queue) -> None:
    """LIF-01, LIF-02, LIF-04: pending, preparing, active, expired; seen at once."""
    dev_server = reservations.reserve(hours=1)
    assert reservations.status(dev_server) == "pending"
    queue.start()
    assert reservations.status(dev_server) == "preparing"
    reservations.facts(dev_server, "started", 0)
    assert reservations.status(dev_server) == "active"
    queue.move(HOUR + GRACE_S)
    reservations.sweep()
    shown = reservations.show(dev_server)
    assert (shown["status"], shown["phase"]) == ("expired", "cleaning_up")
    reservations.facts(dev_server, "exited", 0, exit_code=0)
    shown = reservations.show(dev_server)
    assert (shown["status"], shown["phase"], shown["state"]) == ("expired", None, "TIMEOUT")


def test_a_queued_reservation_shows_its_position(reservations: Reservations, queue: Queue) -> None:
    """SCH-03, PLN-02: a position and a planned start."""
    for _ in range(2):
        reservations.active(gpus=8, gpu_type="h100", hours=2)
    first = reservations.reserve(gpus=8, gpu_type="h100", who=BOB)
    queue.move(1)
    second = reservations.reserve(gpus=8, gpu_type="h100")
    queue.start()
    shown = [reservations.show(dev_server) for dev_server in (first, second)]
    assert [one["status"] for one in shown] == ["queued", "queued"]
    assert [one["queue_position"] for one in shown] == [1, 2]
    assert shown[0]["planned_start_at"] is not None


def test_positions_of_other_gpu_types_do_not_count(
    reservations: Reservations, queue: Queue
) -> None:
    """SCH-01: one request for the other type waits longer, and takes no place in this queue."""
    a_cluster(queue.sql, h100=2, l4=1)
    for gpus, gpu_type in ((8, "h100"), (8, "h100"), (4, "l4")):
        reservations.active(gpus=gpus, gpu_type=gpu_type, hours=2)
    other = reservations.reserve(gpus=4, gpu_type="l4")
    queue.move(1)
    first = reservations.reserve(gpus=8, gpu_type="h100")
    queue.move(1)
    second = reservations.reserve(gpus=8, gpu_type="h100")
    queue.start()
    shown = [reservations.show(one)["queue_position"] for one in (other, first, second)]
    assert shown == [1, 1, 2]


def test_a_gang_has_one_place_in_the_queue_and_starts_whole(
    reservations: Reservations, queue: Queue
) -> None:
    """MNE-03: with one of two nodes free, no member starts."""
    holder = reservations.active(gpus=8)
    gang = reservations.reserve(nodes=2, gpus=8)
    assert queue.start() == []
    assert reservations.show(gang)["queue_position"] == 1
    assert queue.sql.value("select count(*) from odc.pending") == 1
    assert queue.sql.value("select count(*) from odc.allocation where job_id = $1", gang) == 0
    reservations.facts(holder, "exited", 0)
    assert queue.start() == [gang]
    assert queue.sql.value("select count(*) from odc.allocation where job_id = $1", gang) == 2


@pytest.mark.parametrize("ready", [True, False])
def test_a_failed_member_of_a_preparing_gang_releases_all(
    reservations: Reservations, queue: Queue, *, ready: bool
) -> None:
    """MNE-21: the other member, whether ready or not, is asked to end, and the gang is retried as
    one, or fails as one with the reason."""
    gang = reservations.reserve(nodes=2, gpus=8)
    queue.start()
    if ready:
        reservations.facts(gang, "started", 1)
    reservations.facts(gang, "start_failed", 0, cause="launch", detail="no such volume")
    assert queue.running(gang)["intent"] == "member_failed"
    reservations.facts(gang, "exited", 1, exit_code=143)
    assert queue.sql.value("select count(*) from odc.allocation") == 0
    shown = reservations.show(gang)
    assert (shown["status"], shown["attempt"], shown["node_names"]) == ("queued", 2, [])


def test_the_clock_starts_when_it_is_active(reservations: Reservations, queue: Queue) -> None:
    """LIF-06, LIF-09: one write sets the launch, the expiry, and the end that plans use."""
    dev_server = reservations.reserve(hours=2)
    queue.start()
    assert reservations.row(dev_server)["launched_at"] is None
    queue.move(600)
    reservations.facts(dev_server, "started", 0)
    row, run = reservations.row(dev_server), queue.running(dev_server)
    assert row["launched_at"] == NOW + timedelta(seconds=600)
    assert row["expires_at"] == NOW + timedelta(seconds=600 + 2 * HOUR)
    assert run["ends_at"] == row["expires_at"] + timedelta(seconds=GRACE_S)
    ends = queue.sql.values(
        "select distinct ends_at from odc.allocation where job_id = $1", dev_server
    )
    assert ends == [run["ends_at"]]
    # The page and all other places show the same end; the nodes stay allocated for the grace
    # period.
    end = queue.sql.row("select * from odc.show_end($1, $2)", dev_server, queue.now)
    assert end["ends_at"] == row["expires_at"]
    assert queue.contradictions() == []


def test_a_gang_is_active_when_its_last_member_is_ready(
    reservations: Reservations, queue: Queue
) -> None:
    """MNE-20, LIF-09: no clock runs while a rank is missing."""
    dev_server = reservations.reserve(nodes=2, gpus=8)
    queue.start()
    reservations.facts(dev_server, "started", 1)
    assert reservations.status(dev_server) == "preparing"
    queue.move(30)
    reservations.facts(dev_server, "started", 0)
    assert reservations.status(dev_server) == "active"
    assert reservations.row(dev_server)["launched_at"] == queue.now


def test_a_slow_preparation_does_not_use_up_the_time(
    reservations: Reservations, queue: Queue
) -> None:
    """BUG-36: five minutes requested, ten minutes of preparation."""
    dev_server = reservations.reserve(hours=0.0834)
    queue.start()
    for _ in range(10):
        queue.move(60)
        reservations.sweep()
    assert reservations.status(dev_server) == "preparing"
    assert queue.running(dev_server)["ends_at"] > queue.now
    reservations.facts(dev_server, "started", 0)
    assert reservations.status(dev_server) == "active"
    assert queue.contradictions() == []


def test_a_reservation_not_ready_within_an_hour_fails(
    reservations: Reservations, queue: Queue
) -> None:
    """LIF-15, LIF-27: its pods are asked to end, its resources are free again, and its keys are
    deleted."""
    dev_server = reservations.reserve()
    queue.start()
    reservations.sql.rows(
        "select * from odc.keep_box_key(0, $1, 'h', 'hp', 'g', 'gp', repeat('0a', 32), $2)",
        dev_server, queue.now,
    )  # fmt: skip
    queue.move(HOUR)
    reservations.sweep()
    [stop] = reservations.sql.rows("select job_id from odc.take_stops(0, $1)", queue.now)
    assert stop["job_id"] == dev_server
    shown = reservations.show(dev_server)
    assert (shown["status"], shown["phase"]) == ("failed", "cleaning_up")
    reservations.facts(dev_server, "exited", 0, exit_code=0)
    shown = reservations.show(dev_server)
    assert shown["status"] == "failed"
    assert "not ready within 1:00:00" in shown["failure_reason"]
    reservations.sweep()
    for table in ("allocation", "running", "box_key"):
        assert reservations.sql.value(f"select count(*) from odc.{table}") == 0, table


def test_a_reservation_is_tried_three_times_and_then_fails(
    reservations: Reservations, queue: Queue
) -> None:
    """LIF-19, LIF-20: in between it waits at the place that it had, before later jobs."""
    dev_server = reservations.reserve()
    queued_at = queue.pending(dev_server)["queued_at"]
    for attempt in (1, 2, 3):
        assert queue.pending(dev_server)["queued_at"] == queued_at
        queue.move(600)
        queue.sweep()
        queue.start()
        assert queue.running(dev_server)["attempt"] == attempt
        reservations.facts(dev_server, "start_failed", 0, cause="launch", detail="no such folder")
    shown = reservations.show(dev_server)
    assert (shown["status"], shown["failure_reason"]) == ("failed", "no such folder")


def test_a_failed_start_that_is_tried_again_never_shows_as_failed(
    reservations: Reservations, queue: Queue
) -> None:
    """LIF-10: a gang drains first, and was shown as failed until its last member had ended."""
    dev_server = reservations.reserve(nodes=2)
    for attempt in (1, 2, 3):
        queue.move(600)
        queue.sweep()
        queue.start()
        assert reservations.status(dev_server) == "preparing"
        reservations.facts(dev_server, "start_failed", 0, cause="launch", detail="no such folder")
        shown = reservations.show(dev_server)
        final = "failed" if attempt == 3 else "queued"
        assert (shown["status"], shown["phase"]) == (final, "cleaning_up")
        assert list(reservations.list(statuses=[final])) == [dev_server]
        reservations.facts(dev_server, "exited", 1, exit_code=0)
        assert reservations.status(dev_server) == final


def test_a_reservation_that_was_active_never_starts_again(
    reservations: Reservations, queue: Queue
) -> None:
    """LIF-10, LIF-12, LIF-25: its node is lost, and its user is notified."""
    dev_server = reservations.active()
    reservations.facts(dev_server, "lost", 0, detail="node h100-0 is gone")
    assert reservations.status(dev_server) == "failed"
    assert queue.start() == []
    [refused] = queue.change("requeue", dev_server)
    assert refused["outcome"] == "refused"


def test_a_reservation_cannot_be_requeued_nor_given_another_limit(
    reservations: Reservations, queue: Queue
) -> None:
    dev_server = reservations.active()
    [answer] = queue.change("requeue", dev_server)
    assert "is a reservation" in answer["message"]
    [answer] = queue.updates(dev_server, changes={"time_limit_s": 60})
    assert "odcctl extend" in answer["hint"]


@pytest.mark.parametrize("when", ["queued", "preparing", "active"])
def test_a_reservation_can_be_cancelled_at_any_time(
    reservations: Reservations, queue: Queue, when: str
) -> None:
    """LIF-23, LIF-24."""
    dev_server = reservations.reserve()
    if when != "queued":
        queue.start()
    if when == "active":
        reservations.facts(dev_server, "started", 0)
    queue.cancel(dev_server)
    assert reservations.status(dev_server) == "cancelled"
    if when != "queued":
        reservations.facts(dev_server, "exited", 0, exit_code=0)
    shown = reservations.show(dev_server)
    assert shown["status"] == "cancelled"
    assert shown["message"] == "alice cancelled it"
    assert queue.contradictions() == []


def test_a_reservation_that_waited_too_long_is_cancelled(
    reservations: Reservations, queue: Queue
) -> None:
    """SCH-19: after 48 hours, not five minutes."""
    for _ in range(2):
        queue.submit(gpus=8)
    queue.start()
    dev_server = reservations.reserve(gpus=8)
    queue.move(47 * HOUR)
    reservations.sweep(48 * HOUR)
    assert (
        reservations.status(dev_server) == "queued" or reservations.status(dev_server) == "pending"
    )
    queue.move(HOUR)
    reservations.sweep(48 * HOUR)
    shown = reservations.show(dev_server)
    assert shown["status"] == "cancelled"
    assert "waited longer" in shown["message"]


def test_a_list_has_the_users_own_reservations_of_the_last_hours(
    reservations: Reservations, queue: Queue
) -> None:
    """CLI-19, CLI-20, LIF-08: ended reservations are shown for an hour."""
    mine, gone = reservations.active(), reservations.active()
    other = reservations.active(BOB)
    queue.cancel(gone)
    reservations.facts(gone, "exited", 0, exit_code=0)
    assert reservations.list() == {mine: "active", gone: "cancelled"}
    assert reservations.list(users=["all"]) == {mine: "active", gone: "cancelled", other: "active"}
    assert reservations.list(users=["bob"]) == {other: "active"}
    assert reservations.list(statuses=["cancelled"]) == {gone: "cancelled"}
    queue.move(HOUR + 1)
    assert reservations.list() == {mine: "active"}
    assert reservations.list(ended=True) == {mine: "active", gone: "cancelled"}


def test_connection_details_are_for_the_owner(reservations: Reservations) -> None:
    """SEC, AUT-08."""
    dev_server = reservations.active()
    assert reservations.show(dev_server)["connect"] == "terminal"
    assert reservations.show(dev_server, BOB)["connect"] is None
    assert reservations.show(dev_server, ROOT)["connect"] == "terminal"


def test_other_jobs_are_not_shown_as_reservations(reservations: Reservations, queue: Queue) -> None:
    """BUG-22: an unknown id, or the id of another kind of job, is an error."""
    job = queue.submit()
    for wrong in (job, 10**9):
        with pytest.raises(UnknownJob):
            reservations.show(wrong)
        with pytest.raises(UnknownJob):
            reservations.extend(wrong, 1)


def test_only_its_owner_and_operators_extend_it(reservations: Reservations) -> None:
    """AUT-08."""
    dev_server = reservations.active()
    with pytest.raises(NotOwner):
        reservations.extend(dev_server, 1, BOB)
    assert reservations.extend(dev_server, 1, ROOT)["extensions"] == 1


def test_the_history_lists_every_change(reservations: Reservations, queue: Queue) -> None:
    """LIF-05."""
    dev_server = reservations.active(hours=1)
    reservations.extend(dev_server, 2)
    texts = [one["text"] for one in reservations.show(dev_server)["history"]]
    assert [re.split(" on | and | until ", text)[0] for text in texts] == [
        "alice requested it", "odc began to start it", "it became active", "alice extended it",
    ]  # fmt: skip


def test_a_slow_end_delays_no_other_end(reservations: Reservations, queue: Queue) -> None:
    """BUG-07, EXP-11: all ended ones are reported at once, their status first; the resources of one
    are free although another is still cleaned up."""
    slow, other = reservations.active(hours=1, gpus=8), reservations.active(hours=1, gpus=8)
    queue.move(HOUR + 121)
    reservations.sweep()
    assert [reservations.status(dev_server) for dev_server in (slow, other)] == [
        "expired",
        "expired",
    ]
    assert {reservations.show(dev_server)["phase"] for dev_server in (slow, other)} == {
        "cleaning_up"
    }
    stops = reservations.sql.rows("select job_id from odc.take_stops(0, $1)", queue.now)
    assert {row["job_id"] for row in stops} == {slow, other}
    reservations.facts(other, "exited", 0)
    third = reservations.reserve(gpus=8)
    assert queue.start() == [third]
    assert (reservations.show(slow)["phase"], reservations.status(slow)) == (
        "cleaning_up",
        "expired",
    )


def test_an_ended_reservation_cannot_be_extended(reservations: Reservations, queue: Queue) -> None:
    dev_server = reservations.active(hours=1)
    queue.move(HOUR + GRACE_S)
    reservations.sweep()
    with pytest.raises(WrongState, match="is expired"):
        reservations.extend(dev_server, 1)
