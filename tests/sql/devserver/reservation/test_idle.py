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
def reservations(queue: Queue) -> Reservations:
    return Reservations(queue)


def policy(reservations: Reservations, **terms: int) -> dict[str, Any]:
    qos = reservations.sql.value(
        "select odc.edit_qos($1::jsonb, 'normal', $2::jsonb, $3)",
        actor(ROOT), json.dumps(terms), reservations.queue.now,
    )  # fmt: skip
    return json.loads(qos)


class Watched:
    """A reservation that is observed every five minutes."""

    def __init__(self, reservations: Reservations, dev_server: int) -> None:
        self.reservations = reservations
        self.dev_server = dev_server
        self.cpu_s = 100.0

    def look(
        self, minutes: float = 5, *, sessions: int = 0, gpu: int | None = 0, cpus: float = 0.01
    ) -> tuple[Any, ...] | None:
        """The notice for its user."""
        self.reservations.queue.now += timedelta(minutes=minutes)
        self.cpu_s += cpus * minutes * 60
        rows = self.reservations.sql.rows(
            "select * from odc.note_look(0, $1, 1, $2, $3, $4, $5, $6)",
            self.dev_server, sessions, gpu, self.cpu_s, EVERY, self.reservations.queue.now,
        )  # fmt: skip
        return tuple(rows[0].values()) if rows else None

    def delivered(self, notice: tuple[Any, ...]) -> None:
        self.reservations.sql.value(
            "select odc.note_idle_told(0, $1, 1, $2, $3, $4) is null",
            self.dev_server, *notice, self.reservations.queue.now,
        )  # fmt: skip

    @property
    def idle_s(self) -> int | None:
        return self.reservations.show(self.dev_server)["idle_s"]


@pytest.fixture
def watched(reservations: Reservations) -> Watched:
    policy(reservations, idle_warn_s=1800, idle_release_s=3600)
    return Watched(reservations, reservations.active())


def due(reservations: Reservations) -> list[int]:
    return [row["job_id"] for row in reservations.sql.rows("select * from odc.due_looks(0)")]


def test_dev_servers_are_observed_only_if_the_qos_requires_it(reservations: Reservations) -> None:
    dev_server = reservations.active()
    assert due(reservations) == []
    qos = policy(reservations, idle_warn_s=1800)
    assert (qos["idle_warn_s"], qos["idle_release_s"]) == (1800, 0)
    assert due(reservations) == [dev_server]
    policy(reservations, idle_warn_s=0)
    assert due(reservations) == []


def test_impossible_idle_settings_are_refused(reservations: Reservations) -> None:
    for terms in ({"idle_warn_s": 599}, {"idle_release_s": 3600},
                  {"idle_warn_s": 3600, "idle_release_s": 1800}):  # fmt: skip
        with pytest.raises(BadRequest, match="out of range"):
            policy(reservations, **terms)


def test_an_idle_reservation_is_shown_notified_and_ended(
    watched: Watched, reservations: Reservations
) -> None:
    watched.look()
    assert watched.idle_s is None, "one observation is not enough"
    assert watched.look() is None
    for _ in range(5):
        assert watched.look() is None
    assert watched.idle_s == 1500
    notice = watched.look()
    assert notice is not None
    began = reservations.queue.now - timedelta(minutes=30)
    assert notice == (1800, began + timedelta(hours=1))
    again = watched.look()
    assert again is not None, "until it was delivered"
    watched.delivered(again)
    for _ in range(4):
        assert watched.look() is None
        assert reservations.status(watched.dev_server) == "active"
    assert watched.look() is None
    one = reservations.show(watched.dev_server)
    assert (one["status"], one["phase"]) == ("cancelled", "cleaning_up")
    assert due(reservations) == []
    reservations.facts(watched.dev_server, "exited", 0)
    one = reservations.show(watched.dev_server)
    assert one["message"] == "it was idle for 1:00:00, and QOS normal ends idle reservations"
    texts = [event["text"] for event in one["history"]]
    assert "its user was notified that it had been idle for 35:00" in texts
    assert any(text.startswith("it was ended because it had been idle since") for text in texts)


@pytest.mark.parametrize(
    "use", [{"sessions": 1}, {"gpu": 1}, {"cpus": 0.5}, {"minutes": 16}, {"cpus": -0.1}],
    ids=["session", "GPU", "CPU", "not observed", "restarted"],
)  # fmt: skip
def test_any_use_restarts_the_idle_time_and_unknown_counts_as_use(
    watched: Watched, use: dict[str, Any]
) -> None:
    for _ in range(6):
        watched.look()
    assert watched.idle_s == 1200
    assert watched.look(**use) is None
    assert watched.idle_s is None
    watched.look()
    assert watched.idle_s in (0, None)


def test_old_observations_are_not_shown(watched: Watched, reservations: Reservations) -> None:
    watched.look()
    watched.look()
    reservations.queue.now += timedelta(minutes=14)
    assert watched.idle_s == 14 * 60
    reservations.queue.now += timedelta(minutes=1)
    assert watched.idle_s is None


def test_use_after_a_notice_is_acknowledged_and_a_new_notice_follows(
    watched: Watched, reservations: Reservations
) -> None:
    watched.look()
    while (notice := watched.look()) is None:
        pass
    watched.delivered(notice)
    assert watched.look(sessions=1) == (None, None)
    assert watched.look(sessions=1) == (None, None), "until it was delivered"
    for _ in range(6):
        watched.look()
    second = watched.look()
    assert second is not None
    assert second[0] == 1800
    for _ in range(20):
        watched.look()
    assert reservations.status(watched.dev_server) == "active", (
        "a user who was not notified keeps it"
    )
    watched.delivered(second)
    watched.look()
    assert reservations.status(watched.dev_server) == "active", "ten minutes from then"
    watched.look()
    assert reservations.status(watched.dev_server) == "cancelled"


def test_an_idle_reservation_stays_without_a_release_time(reservations: Reservations) -> None:
    policy(reservations, idle_warn_s=600)
    watched = Watched(reservations, reservations.active(ALICE))
    notices = [notice for _ in range(5) if (notice := watched.look())]
    assert notices[0] == (600, None)
    watched.delivered(notices[0])
    for _ in range(50):
        assert watched.look() is None
    assert reservations.status(watched.dev_server) == "active"
