"""odcctl booking and licence: what they send, and what they show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import a_booking, a_course, a_licence
from tests.odcctl.peer import Peer, problem

LIST = {"bookings": [a_course(), a_booking()]}


def test_bookings_are_listed_with_their_window_nodes_and_owners(
    peer: Peer, odcctl: Odcctl, golden: Golden
) -> None:
    peer.on("GET", "/v1/bookings", LIST)
    golden("bookings", odcctl("booking", "list").out)
    assert odcctl("booking", "list", "--ended", "--output", "quiet").out == "course\ndriver\n"
    assert [request.query for request in peer.requests] == [{}, {"all": "true"}]


def test_the_list_shows_the_zone_of_a_booking_that_repeats(peer: Peer, odcctl: Odcctl) -> None:
    """Before: its times looked as if they were in UTC."""
    peer.on("GET", "/v1/bookings", {"bookings": [a_course() | {"zone": "Europe/Berlin"}]})
    done = odcctl("booking", "list", "--output", "csv")
    assert ",weekly Europe/Berlin," in done.out


def test_one_is_shown_whole(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    peer.on("GET", "/v1/bookings/course", a_course())
    golden("booking", odcctl("booking", "show", "course").out)


CREATES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "maintenance": (
        ["--maintenance", "--start", "18:00", "--duration", "2:00:00", "--nodes", "gpu-[01-02,04]"],
        {"kind": "maintenance", "starts_at": "18:00", "duration": "2:00:00", "time_zone": "UTC",
         "node_list": ["gpu-01", "gpu-02", "gpu-04"]}),
    "course": (
        ["--start", "now+2h", "--end", "tomorrow 9am", "--type", "h100", "--count", "2",
         "--users", "alice,bob", "--users", "carol", "--accounts", "ml101",
         "--repeat", "weekly", "--until", "2026-09-30", "--comment", "Mondays"],
        {"starts_at": "now+2h", "ends_at": "tomorrow 9am", "time_zone": "UTC", "gpu_type": "h100",
         "node_count": 2, "users": ["alice", "bob", "carol"], "accounts": ["ml101"],
         "repeats": "weekly", "until": "2026-09-30", "comment": "Mondays"}),
    "forced": (
        ["--maintenance", "--start", "now", "--duration", "30", "--all", "--force"],
        {"kind": "maintenance", "starts_at": "now", "duration": "30", "time_zone": "UTC",
         "all_nodes": True, "ignore_running": True}),
}  # fmt: skip


@pytest.mark.parametrize("case", CREATES)
def test_create_sends_what_was_said_once(peer: Peer, odcctl: Odcctl, case: str) -> None:
    options, body = CREATES[case]
    peer.on("POST", "/v1/bookings", a_booking())
    done = odcctl("booking", "create", "driver", *options)
    assert done.out == (
        "booking driver created: 2026-07-01 18:00:00Z to 2026-07-01 20:00:00Z on gpu-[01-02,04]\n"
    )
    assert peer.requests[0].body == {"name": "driver", **body}
    assert peer.requests[0].headers["idempotency-key"]


def test_edit_sends_only_changes_and_an_empty_value_removes(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("PATCH", "/v1/bookings/driver", a_booking())
    done = odcctl("booking", "edit", "driver", "--until", "", "--comment", "", "--name", "next")
    assert done.out.startswith("booking driver changed: ")
    assert peer.requests[0].body == {
        "until": None, "comment": None, "name": "next", "time_zone": "UTC",
    }  # fmt: skip


def test_delete_says_so(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("DELETE", "/v1/bookings/driver", a_booking(state="DELETED"))
    assert odcctl("booking", "delete", "driver").out == "booking driver deleted\n"
    assert odcctl("booking", "delete", "driver", "--json").out.startswith('{"id": 3,')


def test_a_refusal_shows_its_code_and_hint(peer: Peer, odcctl: Odcctl) -> None:
    message = 'h100-1 is booked by "x"'
    peer.on("POST", "/v1/bookings", problem(409, "BookingConflict", "OD019", message, "Move it."))
    refused = odcctl("booking", "create", "b", "--start", "now", "--duration", "1", "--all")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (f"odcctl: bookings not changed: {message} (OD019)\n  Move it.\n")
    peer.on("GET", "/v1/bookings/x", problem(404, "UnknownBooking", "OD018", "no booking x"))
    assert odcctl("booking", "show", "x").err == "odcctl: no booking x (OD018)\n"


WRONG = {
    "no-action": ["make", "b"],
    "no-name": ["create", "--start", "now"],
    "two-names": ["show", "a", "b"],
    "list-name": ["list", "b"],
    "no-start": ["create", "b", "--duration", "1"],
    "foreign-option": ["show", "b", "--all"],
    "ended-of-create": ["create", "b", "--start", "now", "--ended"],
    "edit-nothing": ["edit", "b"],
    "edit-kind": ["edit", "b", "--maintenance"],
    "bad-count": ["create", "b", "--start", "now", "--count", "two"],
    "bad-nodes": ["create", "b", "--start", "now", "--nodes", "gpu-[3-1]"],
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage_sends_no_request(peer: Peer, odcctl: Odcctl, case: str) -> None:
    assert odcctl("booking", *WRONG[case]).code == 2
    assert peer.requests == []


def test_licences_are_listed_set_and_deleted(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    matlab = a_licence("matlab", 4, 3, [4127, 4128])
    peer.on("GET", "/v1/licences", {"licences": [a_licence("ansys", 1, 2, [7]), matlab]})
    peer.on("PUT", "/v1/licences/matlab", matlab)
    peer.on("DELETE", "/v1/licences/matlab", matlab)
    golden("licences", odcctl("licence", "list").out)
    assert odcctl("licence", "set", "matlab", "4").out == "licence matlab: 4 in all\n"
    assert peer.requests[-1].body == {"total": 4}
    assert odcctl("licence", "delete", "matlab").out == "licence matlab deleted\n"
    for wrong in (["set", "matlab"], ["set", "matlab", "x"], ["delete"], ["list", "x"], ["drop"]):
        assert odcctl("licence", *wrong).code == 2
