"""Messages that are one clear sentence, and times and names that a user can act on."""

from __future__ import annotations

import re

import click
import pytest

from odcctl.cli.usage import message_of
from odcctl.commands import events
from odcctl.text import bookings
from odcctl.text.jobs import local_times
from tests.odcctl.conftest import Odcctl
from tests.odcctl.objects import a_course
from tests.odcctl.peer import Peer

NOW_S = 1782894000.0  # 2026-07-01T08:20:00Z


def refused(message: str) -> dict[str, object]:
    return {"job_id": 15, "outcome": "refused", "code": "OD012", "message": message}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("job 15 cannot be held: it has ended", "job 15 not held: it has ended (OD012)"),
        ("job 15 has ended", "job 15 not held: it has ended (OD012)"),
        ("the booking of job 15 is over", "job 15 not held: the booking of job 15 is over (OD012)"),
    ],
)
def test_a_refusal_is_one_sentence(peer: Peer, odcctl: Odcctl, message: str, shown: str) -> None:
    peer.on("POST", "/v1/jobs/hold", {"jobs": [refused(message)]})
    assert odcctl("hold", "15").err.splitlines()[0] == f"odcctl: {shown}"


def test_an_unknown_or_missing_action_is_reported_with_the_actions(odcctl: Odcctl) -> None:
    assert re.search('"add" is none of: set, show, ', odcctl("notify", "add", "x").err)
    for command in ("notify", "node", "booking"):
        assert "ACTION is missing" in odcctl(command).err


def test_only_a_similar_option_is_suggested() -> None:
    names = ["--build", "--follow"]
    assert message_of(click.NoSuchOption("--tail", possibilities=names)) == 'no option "--tail"'
    assert message_of(click.NoSuchOption("--folow", possibilities=names)).endswith("--follow?")


def test_an_event_names_the_task_of_an_array() -> None:
    event = {"at": "2026-07-01T08:20:00Z", "kind": "started", "job_id": 78, "actor": "odcd"}
    assert "  job 78  " in events.line(event)
    assert "  job 77_1  " in events.line(event | {"array_job_id": 77, "array_task_id": 1})


def test_a_booking_is_shown_at_the_local_time_of_its_zone() -> None:
    course = a_course() | {"starts_at": "2026-07-06T07:00:00Z", "ends_at": "2026-07-06T10:00:00Z"}
    shown = bookings.describe(course | {"zone": "Europe/Berlin"})
    assert "2026-07-06 09:00:00 to 2026-07-06 12:00:00 in Europe/Berlin" in shown
    for zone in (None, "Europe/Nowhere"):
        assert " local " not in bookings.describe(course | {"zone": zone})


def test_a_time_in_a_few_minutes_has_seconds() -> None:
    assert re.search(r"after \d\d:20:40$", local_times("after 2026-07-01T08:20:40Z", NOW_S))
    assert re.search(r"after \d\d:45$", local_times("after 2026-07-01T08:45:40Z", NOW_S))
