"""list, show, connect, extend, edit, cancel, avail, status: dev servers as users see them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from odcctl.caller import me
from odcctl.http.address import Address
from odcctl.http.client import Client
from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import (
    a_cpu_type,
    a_job,
    a_reservation,
    a_type,
    availability,
    outcome,
    some_reservations,
)
from tests.odcctl.peer import Peer, Reply, Request, event_stream, problem
from tests.odcctl.test_terminal import Terminal, terminal

ME = me(Client([Address("/")], None))

__all__ = ["terminal"]

PATH = "/v1/reservations"
LIVE = "pending,queued,preparing,active"
UNKNOWN = problem(404, "UnknownJob", "OD006", "no such reservation", "odcctl list")


def listed(peer: Peer, *reservations: dict[str, Any]) -> None:
    """The daemon returns those with the requested statuses, and each one by its id."""

    def answer(request: Request) -> Reply:
        statuses = request.query.get("status", LIVE).split(",")
        return Reply({"reservations": [one for one in reservations if one["status"] in statuses]})

    peer.on("GET", PATH, answer)
    for one in reservations:
        peer.on("GET", f"{PATH}/{one['id']}", one)


def test_list_shows_what_gpu_devs_did(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    """CLI-19, CLI-22: columns, phase, place in the queue, OOM kills, failed ones."""
    peer.on("GET", PATH, {"reservations": some_reservations()})
    golden("list", odcctl("list").out)
    assert peer.requests[0].query == {}


def test_list_hands_its_filters_on(peer: Peer, odcctl: Odcctl) -> None:
    """CLI-20."""
    peer.on("GET", PATH, {"reservations": some_reservations()[:2]})
    assert odcctl("list", "-u", "all", "-s", "Active,queued", "-s", "failed", "-a").code == 0
    query = {"user": "all", "status": "active,queued,failed", "all": "true"}
    assert peer.requests[0].query == query
    assert odcctl("list", "--output", "quiet").out == "12\n13\n"
    assert json.loads(odcctl("list", "--json").out) == {"reservations": some_reservations()[:2]}
    unknown = odcctl("list", "--status", "active,running")
    assert (unknown.code, len(peer.requests)) == (2, 3)
    assert unknown.err.startswith('odcctl: "running" is not a status\n  Statuses: pending, queued')


@pytest.mark.long
def test_list_watches_every_two_seconds_without_flicker(
    peer: Peer, terminal: Callable[..., Terminal]
) -> None:
    """CLI-21: only the line that changed is written, and Ctrl-C gives the screen back."""
    peer.on("GET", "/v1/events", lambda _: Reply(pieces=event_stream([], peer.stopping)))
    others = [a_reservation(13), a_reservation(14, "preparing")]
    steps = [[a_reservation(12, "pending"), *others]] * 2 + [[a_reservation(12), *others]]
    peer.on("GET", PATH, *({"reservations": step} for step in steps))
    screen = terminal("list", "--watch")
    assert screen.until(b"\x1b[6;1H14").count(b"alice") == 3
    shown = screen.until(b"12  h100  alice  2     active ")
    assert b"\x1b[5;1H13" not in shown
    screen.type(b"\x03")
    screen.until(b"\x1b[?1049l")
    assert screen.end() == 130


def test_show_tells_a_reservations_own_fields_after_the_jobs(
    peer: Peer, odcctl: Odcctl, golden: Golden
) -> None:
    """LIF-05: and the history."""
    reservation = a_reservation(
        12, extensions=1, extended_s=7200, oom_count=1, last_oom_at="2026-07-01T11:00:00Z",
        warnings=[{"minutes": 30, "at": "2026-07-01T17:30:05Z"}], labels={"nsight": "true"},
        jupyter="running", jupyter_url="https://h/?token=x", secondary_users=["octocat"],
        message="it is active",
        history=[{"at": "2026-07-01T10:00:00Z", "text": "reserved by alice"},
                 {"at": "2026-07-01T10:00:05Z", "text": "active until 2026-07-01T18:00:05Z"}],
    )  # fmt: skip
    job = a_job(12, "RUNNING", kind="reservation", name="2x-h100", node_names=["gpu-01"])
    peer.on("GET", "/v1/jobs/12", {"jobs": [job]})
    peer.on("GET", f"{PATH}/12", reservation)
    golden("show-reservation", odcctl("show", "12").out)
    shown = json.loads(odcctl("show", "12", "--json").out)["jobs"]
    assert shown == [{**reservation, **job}]


def test_a_drained_node_is_named_in_lists_and_details(peer: Peer, odcctl: Odcctl) -> None:
    drained = a_reservation(12, node_notice="gpu-01 is drained: new kernel")
    booked = a_reservation(
        13, node_notice='gpu-01 has maintenance "firmware" from 2026-07-01T14:00:00Z',
        node_notice_until="2026-07-01T14:00:00Z",
    )  # fmt: skip
    listed(peer, drained, booked)
    rows = odcctl("list").out
    assert "active (node drained)" in rows
    assert "active (maintenance)" in rows
    shown = odcctl("show").out
    assert "gpu-01 is drained: new kernel" in shown
    assert "; time left: " in shown


def test_show_asks_nothing_more_of_a_batch_job(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs/7", {"jobs": [a_job(7)]})
    assert odcctl("show", "7").code == 0
    assert len(peer.requests) == 1


def test_show_without_an_id_tells_mine(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    listed(peer, *some_reservations())
    golden("show-mine", odcctl("show").out)
    assert peer.requests[0].query == {"status": LIVE}
    assert odcctl("show", "--output", "quiet").out == "12\n13\n14\n15\n"
    listed(peer)
    none = odcctl("show")
    assert (none.code, none.out) == (0, "")
    assert "you have no active or waiting reservation" in none.err


def test_show_takes_a_name_or_the_start_of_an_id(peer: Peer, odcctl: Odcctl) -> None:
    """CLI-23: an exact id wins."""
    listed(peer, a_reservation(41, name="a box"), a_reservation(415, name="b"))
    for number in (41, 415):
        peer.on("GET", f"/v1/jobs/{number}", {"jobs": [a_job(number, "RUNNING")]})
    for four in ("4", "42"):
        peer.on("GET", f"/v1/jobs/{four}", UNKNOWN)
    assert odcctl("show", "41", "--output", "quiet").out == "41\n"
    assert odcctl("show", "a box", "--output", "quiet").out == "41\n"
    several = odcctl("show", "4")
    assert several.code == 1
    assert several.err == (
        'odcctl: "4" names 2 of your reservations\n'
        "  41   a box  2 h100 GPUs  active\n"
        "  415  b      2 h100 GPUs  active\n"
    )
    assert odcctl("show", "42").err == "odcctl: no such reservation (OD006)\n  odcctl list\n"
    assert odcctl("show", "c").err == (
        'odcctl: "c" is not a job id, and you have no live reservation of that name\n'
        "  `odcctl queue --me` lists your jobs, and `odcctl list --all` your reservations.\n"
    )


STANDING: dict[str, tuple[dict[str, Any], str]] = {
    "queued": (
        {"status": "queued", "queue_position": 3, "planned_start_at": "2026-07-01T14:20:00Z",
         "message": "needs 8 free GPUs on one node; 3 are free"},
        "is queued: #3, expected 14:20 (in 2:20:00)\n  needs 8 free GPUs on one node; 3 are free\n"
        "  `odcctl list --watch` shows when it is active."),
    "preparing": (
        {"status": "preparing", "phase": "starting", "message": "its shell starts"},
        "is preparing: starting\n  its shell starts\n"
        "  `odcctl list --watch` shows when it is active."),
    "expired": (
        {"status": "expired"},
        "expired 2026-07-01 11:30:00Z\n  Reserve again: odcctl reserve"),
    "cancelled": (
        {"status": "cancelled", "message": "root cancelled it"},
        "has ended: root cancelled it (2026-07-01 11:30:00Z)\n"
        "  Reserve again: odcctl reserve"),
    "failed": (
        {"status": "failed", "failure_reason": "gpu-01 was lost"},
        "failed: gpu-01 was lost\n"
        "  `odcctl show 12` shows the details. Reserve again: odcctl reserve"),
    "out of reach": (
        {"status": "active", "connect": None, "message": "gpu-01 does not answer", "user": ME},
        "is active, but cannot be reached now\n  gpu-01 does not answer"),
    "somebody else's": (
        {"status": "active", "connect": None, "message": "it is theirs", "user": "bob"},
        "belongs to bob\n  Only its owner and operators can connect."),
}  # fmt: skip


@pytest.mark.parametrize("case", STANDING)
def test_connect_says_what_it_is_instead_of_active(peer: Peer, odcctl: Odcctl, case: str) -> None:
    """CLI-27."""
    fields, message = STANDING[case]
    listed(peer, a_reservation(12, **fields))
    done = odcctl("connect", "12")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"odcctl: not connected: reservation 12 {message}\n"


def test_connect_without_an_id_needs_exactly_one(peer: Peer, odcctl: Odcctl) -> None:
    """CLI-25: elsewhere than on a terminal."""
    listed(
        peer, a_reservation(12, name="a"), a_reservation(13, name="b"), a_reservation(14, "queued")
    )
    several = odcctl("connect")
    assert several.code == 1
    assert several.err == (
        "odcctl: not connected: 2 of your reservations are active: choose one\n"
        "  12  a  2 h100 GPUs  active\n"
        "  13  b  2 h100 GPUs  active\n"
        "  For example: odcctl connect 12\n"
    )
    listed(peer, a_reservation(14, "queued", name="a"))
    assert odcctl("connect").err == (
        "odcctl: not connected: you have no active reservation\n"
        "  Your other reservations:\n"
        "  14  a  2 h100 GPUs  queued\n"
    )
    listed(peer)
    assert odcctl("connect").err.endswith("  Create one: odcctl reserve\n")


def test_connect_lets_choose_on_a_terminal(peer: Peer, terminal: Callable[..., Terminal]) -> None:
    """CLI-25: the picker."""
    reservations = [
        a_reservation(12, name="a"),
        a_reservation(13, name="b", connect=None, user=ME),
    ]
    listed(peer, *reservations)
    screen = terminal("connect")
    shown = screen.until(b"Which one [1]: ")
    assert b"  1. 12  a  2 h100 GPUs  active\r\n" in shown
    screen.type(b"2\r")
    screen.until(b"reservation 13 is active, but cannot be reached now\r\n")
    assert screen.end() == 1


def test_a_word_names_an_exact_id_a_start_or_a_name(peer: Peer, odcctl: Odcctl) -> None:
    """CLI-23."""
    listed(
        peer,
        a_reservation(41, name="x", connect=None, user=ME),
        a_reservation(415, name="y", connect=None, user=ME),
        a_reservation(502, name="41", connect=None, user=ME),
        a_reservation(77, "expired", name="z"),
    )
    for word in ("4", "50", "9"):
        peer.on("GET", f"{PATH}/{word}", UNKNOWN)

    def named(word: str) -> str:
        return odcctl("connect", word).err.splitlines()[0].removeprefix("odcctl: not connected: ")

    assert named("41") == "reservation 41 is active, but cannot be reached now"
    assert named("50") == "reservation 502 is active, but cannot be reached now"
    assert named("y") == "reservation 415 is active, but cannot be reached now"
    assert named("4") == '"4" names 2 of your reservations'
    assert named("77").startswith("reservation 77 expired")
    assert named("9") == "no such reservation (OD006)"
    assert named("z") == 'you have no live reservation with the name "z"'


def test_somebody_elses_exact_id_is_refused_by_the_daemon(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", f"{PATH}/9", problem(403, "NotOwner", "OD013", "belongs to bob", "Ask bob."))
    done = odcctl("extend", "9", "-h", "1")
    assert (done.code, len(peer.requests)) == (1, 1)
    assert done.err == "odcctl: nothing extended: belongs to bob (OD013)\n  Ask bob.\n"


def extending(peer: Peer, *delays: dict[str, Any]) -> None:
    listed(peer, a_reservation(12))

    def answer(request: Request) -> Reply:
        answer = {
            "id": 12, "expires_at": "2026-07-01T18:30:05Z", "extended_s": 1800, "extensions": 1,
            "until": "2026-07-03T10:00:05Z", "delays": list(delays),
            "dry_run": request.body["dry_run"],
        }  # fmt: skip
        return Reply(answer)

    peer.on("POST", f"{PATH}/12/extend", answer)


DELAYS = [
    {"job_id": 4130 + at, "name": "train", "user": "bob", "from": "2026-07-01T18:00:05Z",
     "to": None if at == 1 else "2026-07-01T18:30:05Z"}
    for at in range(7)
]  # fmt: skip
EXTEND = f"{PATH}/12/extend"


def test_extend_that_delays_others_needs_a_yes_where_nobody_is_asked(
    peer: Peer, odcctl: Odcctl
) -> None:
    """It can be done only once, without a way to decline."""
    extending(peer, *DELAYS)
    refused = odcctl("extend", "-h", "0.5")
    assert refused.code == 1
    assert "7 jobs start later" in refused.err
    assert "--yes" in refused.err
    preview = odcctl("extend", "-h", "0.5", "--test-only")
    assert preview.code == 0
    assert "7 jobs start later" in preview.out
    assert [request.body["dry_run"] for request in peer.requests_to(EXTEND)] == [True, True]


def test_extend_tells_whom_it_delays_and_goes_on_with_a_yes(
    peer: Peer, odcctl: Odcctl, golden: Golden
) -> None:
    """CLI-31, CLI-32, EXP-09: half an hour stays half an hour."""
    extending(peer, *DELAYS)
    done = odcctl("extend", "-h", "0.5", "--yes")
    assert done.code == 0
    golden("extend", done.err + "--\n" + done.out)
    bodies = [request.body for request in peer.requests_to(EXTEND)]
    assert bodies == [{"hours": 0.5, "dry_run": True}, {"hours": 0.5, "dry_run": False}]
    extending(peer)
    quiet = odcctl("edit", "12", "--extend", ".5", "--json")
    assert (json.loads(quiet.out)["extended_s"], quiet.err) == (1800, "")
    assert peer.requests_to(EXTEND)[-1].body == {"hours": 0.5, "dry_run": False}


def test_extend_asks_on_a_terminal(peer: Peer, terminal: Callable[..., Terminal]) -> None:
    """CLI-31: also asks for the hours; Enter means no if another user would wait longer."""
    extending(peer, DELAYS[0])
    screen = terminal("extend")
    screen.until(b"any number up to 24): ")
    screen.type(b"\r")
    screen.until(b'for example 8 or 0.5, not ""\r\n')
    screen.type(b"30\r")
    screen.until(b"24, not 30\r\n")
    screen.type(b"0.5\r")
    shown = screen.until(b"(y/n) [n]: ")
    assert b"1 job starts later:\r\n    4130 train of bob by 30:00, to 18:30\r\n" in shown
    screen.type(b"\r")
    screen.until(b"nothing extended\r\n")
    assert screen.end() == 1
    assert [request.body["dry_run"] for request in peer.requests_to(EXTEND)] == [True]
    screen = terminal("extend", "12", "-h", "0.5")
    screen.until(b"(y/n) [n]: ")
    screen.type(b"yes\r")
    screen.until(b"reservation 12 extended: it expires 2026-07-01 18:30:05Z\r\n")
    assert screen.end() == 0
    screen = terminal("extend", "12", "-h", "0.5", "--yes")
    assert b"(y/n)" not in screen.until(b"extended: it expires 2026-07-01 18:30:05Z\r\n")
    assert screen.end() == 0


def test_a_refused_extension_is_told_in_the_daemons_words(peer: Peer, odcctl: Odcctl) -> None:
    """EXP-08."""
    listed(peer, a_reservation(12))
    message = "reservation 12 was extended once already"
    peer.on("POST", EXTEND, problem(409, "WrongState", "OD012", message, "Make another."))
    done = odcctl("extend", "12", "-h", "24")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"odcctl: nothing extended: {message} (OD012)\n  Make another.\n"
    assert len(peer.requests_to(EXTEND)) == 1


@pytest.mark.parametrize(
    ("option", "body", "outcome"),
    [
        (["--name", "new"], {"name": "new"}, "its name is new"),
        (["--add-user", "octocat"], {"add_user": "octocat"}, "octocat may connect, too"),
        (
            ["--enable-jupyter"],
            {"jupyter": True},
            "Jupyter Lab is running: odcctl connect 12 --jupyter",
        ),
        (["--disable-jupyter"], {"jupyter": False}, "Jupyter Lab was stopped"),
    ],
    ids=["name", "user", "jupyter", "no jupyter"],
)
def test_edit_sends_one_change(
    peer: Peer, odcctl: Odcctl, option: list[str], body: dict[str, Any], outcome: str
) -> None:
    """CLI-30."""
    listed(peer, a_reservation(12))
    peer.on("PATCH", f"{PATH}/12", a_reservation(12))
    done = odcctl("edit", *option)
    assert (done.code, done.out) == (0, f"reservation 12: {outcome}\n")
    assert peer.requests[-1].body == body


@pytest.mark.long
def test_jupyter_is_looked_at_until_it_runs_or_fails(peer: Peer, odcctl: Odcctl) -> None:
    """CLI-30, ACC-15: what is in its way is told."""
    listed(peer, a_reservation(12))
    starting = a_reservation(12, jupyter="starting")
    peer.on("PATCH", f"{PATH}/12", starting)
    peer.on("GET", f"{PATH}/12", starting, a_reservation(12, jupyter="running"))
    done = odcctl("edit", "--enable-jupyter")
    assert (done.code, len(peer.requests_to(f"{PATH}/12"))) == (0, 4), done.err
    failed = a_reservation(12, jupyter="failed", jupyter_error="there is no jupyter")
    peer.on("GET", f"{PATH}/12", failed)
    done = odcctl("edit", "--enable-jupyter")
    assert (done.code, done.out) == (1, "")
    assert "Jupyter Lab of reservation 12 failed: there is no jupyter" in done.err
    done = odcctl("connect", "12", "--jupyter")
    assert (done.code, "failed: there is no jupyter" in done.err) == (1, True)
    peer.on("GET", f"{PATH}/12", a_reservation(12))
    done = odcctl("connect", "12", "--jupyter")
    assert (done.code, "odcctl edit 12 --enable-jupyter" in done.err) == (1, True)


def test_edit_is_a_menu_on_a_terminal(peer: Peer, terminal: Callable[..., Terminal]) -> None:
    """CLI-30: when it is not said what to change."""
    extending(peer)
    peer.on("PATCH", f"{PATH}/12", a_reservation(12))
    screen = terminal("edit")
    shown = screen.until(b"Change [1]: ")
    assert b"  2. its name\r\n" in shown
    screen.type(b"2\r")
    screen.until(b"Its new name: ")
    screen.type(b"\r")
    screen.until(b"enter a name\r\nIts new name: ")
    screen.type(b"new\r")
    screen.until(b"reservation 12: its name is new\r\n")
    assert screen.end() == 0
    assert peer.requests[-1].body == {"name": "new"}
    screen = terminal("edit", "12")
    screen.until(b"Change [1]: ")
    screen.type(b"\r")
    screen.until(b"any number up to 24): ")
    screen.type(b"1\r")
    shown = screen.until(b"(y/n) [y]: ")
    assert b"1 hour more: reservation 12 expires" in shown
    screen.type(b"\r")
    screen.until(b"reservation 12 extended: it expires 2026-07-01 18:30:05Z\r\n")
    assert screen.end() == 0


def test_edit_asks_for_the_hours_of_extend(peer: Peer, terminal: Callable[..., Terminal]) -> None:
    extending(peer)
    for argv in (("edit", "12", "--extend"), ("edit", "--extend", "--yes")):
        screen = terminal(*argv)
        screen.until(
            b"More hours for reservation 12 (1, 2, 4, 8, 12, 24, or any number up to 24): "
        )
        screen.type(b"1\r")
        if "--yes" not in argv:
            screen.until(b"(y/n) [y]: ")
            screen.type(b"\r")
        screen.until(b"reservation 12 extended: it expires 2026-07-01 18:30:05Z\r\n")
        assert screen.end() == 0


WRONG = {
    "extend alone": ["edit", "12", "--extend"],
    "extend how long": ["extend", "12"],
    "extend nothing": ["extend", "12", "-h", "0"],
    "extend nothing at all": ["extend", "12", "-h", "0.0"],
    "extend too long": ["extend", "12", "-h", "24.5"],
    "extend words": ["extend", "12", "-h", "two"],
    "edit nothing": ["edit", "12"],
    "edit two": ["edit", "12", "--name", "a", "--add-user", "b"],
    "edit jupyter": ["edit", "12", "--enable-jupyter", "--disable-jupyter"],
    "edit empty": ["edit", "12", "--name", ""],
    "edit long": ["edit", "12", "--extend", "25"],
    "yes of a name": ["edit", "12", "--name", "a", "--yes"],
    "connect two": ["connect", "12", "13"],
    "connect json": ["connect", "12", "--json"],
    "list word": ["list", "12"],
    "list watch": ["list", "--watch"],
    "avail watch": ["avail", "--watch"],
    "status quiet": ["status", "--output", "quiet"],
    "cancel nothing": ["cancel"],
    "show script of nothing": ["show", "--script"],
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage_sends_no_request(peer: Peer, odcctl: Odcctl, case: str) -> None:
    """CLI-30, CLI-31."""
    done = odcctl(*WRONG[case])
    assert (done.code, done.out, peer.requests) == (2, "", [])


def test_cancel_without_an_id_is_a_menu_of_mine(
    peer: Peer, terminal: Callable[..., Terminal]
) -> None:
    """CLI-28."""
    listed(peer, *some_reservations())
    peer.on("POST", "/v1/jobs/cancel", {"jobs": [outcome(14, "cancelled")]})
    screen = terminal("cancel")
    shown = screen.until(b"Which one [1]: ")
    assert shown.count(b"\r\n") == 4
    screen.type(b"3\r")
    screen.until(b"Cancel reservation 14? (y/n) [n]: ")
    screen.type(b"y\r")
    screen.until(b"job 14 cancelled\r\n")
    assert screen.end() == 0
    assert peer.requests[-1].body == {"ids": ["14"]}
    request_count = len(peer.requests)
    screen = terminal("cancel")
    screen.until(b"Which one [1]: ")
    screen.type(b"\r")
    screen.until(b"(y/n) [n]: ")
    screen.type(b"\r")
    screen.until(b"odcctl: nothing cancelled: you did not confirm\r\n")
    assert screen.end() == 1
    assert len(peer.requests) == request_count + 1


def test_avail_shows_what_is_free_and_how_long_the_rest_takes(
    peer: Peer, odcctl: Odcctl, golden: Golden
) -> None:
    """CLI-34."""
    limit = {"start_at": None, "wait_s": None, "refused": None, "reason": "QOSMaxGRESPerUser"}
    limited = [{"gpus": gpus, "nodes": 1, **limit} for gpus in (1, 2, 4)]
    down = a_type("l4", 0, gpus_per_node=4, waits=limited)
    types = availability(a_type(), a_type("a100", 0), down, a_cpu_type())
    peer.on("GET", "/v1/availability", types)
    golden("avail", odcctl("avail").out)
    assert json.loads(odcctl("avail", "--json").out) == types
    assert odcctl("avail", "--output", "quiet").out == "h100\na100\nl4\ncpu-x86\n"


def test_avail_can_be_watched(peer: Peer, terminal: Callable[..., Terminal]) -> None:
    peer.on("GET", "/v1/events", lambda _: Reply(pieces=event_stream([], peer.stopping)))
    peer.on("GET", "/v1/availability", availability(a_type()))
    screen = terminal("avail", "--watch")
    screen.until(b"11/16")
    screen.type(b"\x03")
    screen.until(b"\x1b[?1049l")
    assert screen.end() == 130


def test_status_tells_the_clusters_totals(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    """CLI-35."""
    totals = {
        "at": "2026-07-01T12:00:00Z", "gpus": 40, "gpus_free": 23, "gpus_used": 17, "nodes": 6,
        "nodes_up": 5, "reservations": {"active": 3, "preparing": 1, "queued": 2},
        "jobs": {"running": 7, "pending": 12},
        "types": [{"gpu_type": "h100", "total": 32, "free": 21, "active": 3, "queued": 2}],
    }  # fmt: skip
    peer.on("GET", "/v1/cluster/use", totals)
    golden("status", odcctl("status").out)
    assert json.loads(odcctl("status", "--json").out) == totals
