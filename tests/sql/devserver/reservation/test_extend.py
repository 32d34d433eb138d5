"""Extending a dev server: by how much, how often, and which jobs it delays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from odcd.errors import BadRequest, LimitExceeded, WrongState
from tests.support.builders.dev_servers import HOUR, Reservations
from tests.support.builders.jobs import BOB, ROOT, Queue, a_cluster
from tests.support.harness.database import Sql


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    return Reservations(queue)


def test_an_extension_moves_the_end_and_nothing_else(
    reservations: Reservations, queue: Queue
) -> None:
    """EXP-06, CLI-31: half an hour stays half an hour."""
    dev_server = reservations.active(hours=2)
    before = reservations.row(dev_server)
    extension = reservations.extend(dev_server, 0.5)
    after = reservations.row(dev_server)
    assert after["expires_at"] == before["expires_at"] + timedelta(minutes=30)
    assert after["launched_at"] == before["launched_at"]
    assert extension["extended_s"] == 1800
    assert queue.running(dev_server)["ends_at"] == after["expires_at"] + timedelta(seconds=120)
    assert queue.contradictions() == []


def test_a_reservation_is_extended_once(reservations: Reservations) -> None:
    """EXP-07."""
    dev_server = reservations.active()
    reservations.extend(dev_server, 1)
    with pytest.raises(WrongState, match="was already extended"):
        reservations.extend(dev_server, 1)


@pytest.mark.parametrize("hours", [0, -1, 24.01, 1e5])
def test_an_extension_is_positive_and_at_most_24_hours(
    reservations: Reservations, hours: float
) -> None:
    """CLI-31."""
    dev_server = reservations.active(hours=1)
    with pytest.raises(BadRequest):
        reservations.extend(dev_server, hours)
    assert reservations.extend(dev_server, 24)["extended_s"] == 24 * HOUR


def test_only_an_active_reservation_is_extended(reservations: Reservations, queue: Queue) -> None:
    """EXP-08."""
    dev_server = reservations.reserve()
    with pytest.raises(WrongState, match=r"is (pending|queued)"):
        reservations.extend(dev_server, 1)
    queue.start()
    with pytest.raises(WrongState, match="is preparing"):
        reservations.extend(dev_server, 1)


def test_an_extension_is_possible_until_the_grace_is_over(
    reservations: Reservations, queue: Queue
) -> None:
    """EXP-10, EXP-17: a late extension is accepted, to the second."""
    dev_server = reservations.active(hours=1)
    queue.move(HOUR + 119)
    reservations.sweep()
    reservations.extend(dev_server, 1)
    queue.move(2)
    reservations.sweep()
    assert reservations.status(dev_server) == "active"


def test_partitions_and_bookings_limit_an_extension(
    reservations: Reservations, queue: Queue
) -> None:
    dev_server = reservations.active(hours=2)
    queue.sql.execute("update odc.partition set max_time_limit_s = $1", 3 * HOUR)
    with pytest.raises(LimitExceeded, match='partition "main"'):
        reservations.extend(dev_server, 2)
    assert reservations.extend(dev_server, 2, ROOT, dry_run=True)["dry_run"]
    reservations.extend(dev_server, 1)


def test_a_dry_run_of_an_extension_names_the_delayed_jobs(
    reservations: Reservations, queue: Queue
) -> None:
    """EXP-09: the two jobs that wait for the node start later."""
    reservations.active(gpus=8, gpu_type="h100", hours=12)
    dev_server = reservations.active(gpus=8, gpu_type="h100", hours=2)
    waits = reservations.reserve(BOB, gpus=8, gpu_type="h100", hours=1, name="bobs")
    queue.start()
    before, planned = reservations.row(dev_server), reservations.show(waits)["planned_start_at"]
    extension = reservations.extend(dev_server, 3, dry_run=True)
    [delay] = extension["delays"]
    assert (delay["job_id"], delay["user"], delay["name"]) == (waits, "bob", "bobs")
    assert delay["from"] == planned < delay["to"]
    assert reservations.row(dev_server) == before
    assert "extended" not in queue.events(dev_server)
    taken = reservations.extend(dev_server, 3)
    assert taken["delays"] == extension["delays"]
    queue.start()
    assert reservations.show(waits)["planned_start_at"] == delay["to"]


def test_a_dry_run_takes_no_turn_and_writes_nothing(database_url: str) -> None:
    with Sql(database_url) as sql, Sql(database_url) as changing:
        a_cluster(sql, h100=1)
        reservations = Reservations(Queue(sql))
        dev_server = reservations.active(hours=2)
        waiting = reservations.queue.submit(who=BOB, gpus=8, time_limit_s=600)
        reservations.queue.start()
        changing.begin()
        changing.execute("select odc._take_turn()")
        changing.rows("select from odc.running for update")
        sql.execute("set lock_timeout = '5s'")
        sql.execute("begin")
        extension = reservations.extend(dev_server, 3, dry_run=True)
        assert sql.value("select pg_current_xact_id_if_assigned()") is None
        assert not sql.rows(
            "select from pg_locks where pid = pg_backend_pid() "
            "and mode like '%Ex%' and locktype <> 'virtualxid'"
        )
        sql.execute("commit")
        changing.rollback()
        assert [late["job_id"] for late in extension["delays"]] == [waiting]
        real = reservations.extend(dev_server, 3)
        assert real == {**extension, "dry_run": False}
