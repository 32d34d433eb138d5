"""reserve with a disk: which it is, one that is not there, and one that somebody has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.odcctl.conftest import Odcctl
from tests.odcctl.objects import a_disk, a_reservation, disks, some_disks
from tests.odcctl.peer import Reply, problem
from tests.odcctl.test_reserve import DevServer, dev_server
from tests.odcctl.test_terminal import Terminal, terminal

__all__ = ["dev_server", "terminal"]

ALL = ("-t", "h100", "-g", "1", "-h", "1")
WAITS = 'it waits (DiskBusy): disk "data" is in use by reservation 7'
Screens = Callable[..., Terminal]


@pytest.fixture
def rich(dev_server: DevServer) -> DevServer:
    """A user with disks."""
    dev_server.peer.on("GET", "/v1/disks", disks(*some_disks()))
    dev_server.peer.on(
        "POST", "/v1/disks", lambda request: Reply(a_disk(request.body["name"]), status=201)
    )
    return dev_server


def test_the_guide_offers_a_new_one_and_makes_it(rich: DevServer, terminal: Screens) -> None:
    """CLI-02, CLI-37: a name that cannot be, or is taken, is asked again."""
    screen = terminal("reserve", "-t", "h100", "-g", "1")
    screen.until(b"[8]: ")
    screen.type(b"1\r")
    screen.until(b"Disk [2]: ")
    screen.type(b"new\r")
    for name in (b"a b", b"data", b"none", b"fresh"):
        screen.until(b"Name of the disk: ")
        screen.type(name + b"\r")
    shown = screen.until(b"HOURS\r\n")
    assert b"As one command: odcctl reserve -t h100 -g 1 -h 1 --disk fresh\r\n" in shown
    assert [one.body for one in rich.peer.requests_to("/v1/disks") if one.method == "POST"] == [
        {"name": "fresh"}
    ]
    assert rich.sent["disk"] == "fresh"


def test_the_guide_makes_a_first_one_by_default(rich: DevServer, terminal: Screens) -> None:
    rich.peer.on("GET", "/v1/disks", disks())
    screen = terminal("reserve", "-t", "h100", "-g", "1", "-h", "1.5", "--no-interactive")
    assert screen.end() == 0
    screen = terminal("reserve", "-t", "h100", "-g", "1")
    screen.until(b"[8]: ")
    screen.type(b"1\r")
    screen.until(b"Disk [1]: ")
    screen.type(b"\r")
    screen.until(b"Name of the disk [main]: ")
    screen.type(b"\r")
    screen.until(b"HOURS\r\n")
    assert rich.peer.requests_to("/v1/reservations")[-1].body["disk"] == "main"


@pytest.mark.parametrize("option", ["--no-persist", "--disk=none"])
def test_disk_none_is_not_asked_about(rich: DevServer, terminal: Screens, option: str) -> None:
    """CLI-08, CLI-09."""
    screen = terminal("reserve", "-t", "h100", "-g", "1", option)
    screen.until(b"[8]: ")
    screen.type(b"1\r")
    shown = screen.until(b"HOURS\r\n")
    assert b"Which disk" not in shown


def test_the_guide_offers_to_create_a_missing_disk(rich: DevServer, terminal: Screens) -> None:
    screen = terminal("reserve", *ALL, "--disk", "fresh")
    screen.until(b'You have no disk "fresh". Create it (100 GiB)? (y/n) [y]: ')
    screen.type(b"n\r")
    shown = screen.until(b"shows your disks.\r\n")
    assert b'odcctl: nothing reserved: there is no disk "fresh"' in shown
    assert screen.end() == 1
    screen = terminal("reserve", *ALL, "--disk", "fresh")
    screen.until(b"(y/n) [y]: ")
    screen.type(b"\r")
    assert b"Disk fresh created: 100 GiB." in screen.until(b"HOURS\r\n")
    assert rich.sent["disk"] == "fresh"


CHOICES = [(b"1", "data"), (b"wait", "data"), (b"none", "none"), (b"another", "main")]


@pytest.mark.parametrize(("answer", "disk"), CHOICES)
def test_one_that_is_in_use_has_choices(
    rich: DevServer, terminal: Screens, answer: bytes, disk: str
) -> None:
    """STO-03: by whom, and what can be done: wait, another disk, none."""
    screen = terminal("reserve", *ALL, "--disk", "data")
    shown = screen.until(b"Choice [1]: ")
    assert b"Disk data is in use by reservation 12.\r\n" in shown
    screen.type(answer + b"\r")
    if answer == b"another":
        shown = screen.until(b"Disk [1]: ")
        assert b"data" not in shown
        screen.type(b"\r")
    screen.until(b"HOURS\r\n")
    assert rich.sent["disk"] == disk


def test_one_that_is_being_saved_is_told_as_that(rich: DevServer, terminal: Screens) -> None:
    screen = terminal("reserve", *ALL, "--disk", "saved")
    shown = screen.until(b"Choice [1]: ")
    assert b"Disk saved is backing-up 40 %" in shown
    screen.type(b"\x03")
    screen.until(b"odcctl: nothing reserved\r\n")
    assert rich.peer.requests_to("/v1/reservations") == []


def test_the_question_is_skipped_when_it_is_answered_already(
    rich: DevServer, terminal: Screens
) -> None:
    """CLI-10: it waits for the disk; a home that is lost is never put in its place (STO-11)."""
    screen = terminal("reserve", *ALL, "--disk", "data", "--ignore-no-persist")
    shown = screen.until(b"HOURS\r\n")
    assert b"Choice" not in shown
    assert rich.sent["disk"] == "data"


def test_without_a_terminal_it_waits_and_says_so(rich: DevServer, odcctl: Odcctl) -> None:
    """STO-03, STO-06."""
    busy = a_reservation(
        12, "queued", disk_name="data", disk_state="busy", reason="DiskBusy", message=WAITS
    )
    rich.will(busy, a_reservation(12, disk_name="data", disk_state="in-use"))
    done = odcctl("reserve", *ALL, "--disk", "data")
    assert done.code == 0
    assert f"odcctl: reservation 12: queued; {WAITS}\n" in done.err
    assert "storage: disk data\n" in done.out
    rich.peer.on("POST", "/v1/reservations", Reply(busy, status=201))
    done = odcctl("reserve", *ALL, "--disk", "data", "--no-wait")
    assert done.err.splitlines()[0] == f"odcctl: {WAITS}"
    assert rich.peer.requests_to("/v1/disks") == []


def test_a_daemon_without_disks_says_why(rich: DevServer, terminal: Screens) -> None:
    rich.peer.on("GET", "/v1/disks", disks(default_gib=None))
    rich.peer.on(
        "POST", "/v1/reservations",
        problem(501, "NotImplementedYet", "OD016", "this daemon has no disks", "Set X."),
    )  # fmt: skip
    screen = terminal("reserve", *ALL, "--disk", "data")
    assert b"nothing reserved: this daemon has no disks (OD016)" in screen.until(b"Set X.\r\n")
    assert screen.end() == 1
