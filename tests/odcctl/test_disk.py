"""disk: the output, the requests and the messages of its commands."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import a_disk, disks, some_disks
from tests.odcctl.peer import Peer, Reply, event_stream, problem
from tests.odcctl.test_terminal import Terminal, terminal

__all__ = ["terminal"]

PATH = "/v1/disks"
Screens = Callable[..., Terminal]


def test_a_list_has_every_state(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    """CLI-36, STO-19."""
    peer.on("GET", PATH, disks(*some_disks()))
    done = odcctl("disk", "list")
    golden("disks", done.out + "--\n" + done.err)
    bare = odcctl("disk", "list", "--no-header").out
    assert bare.split() == "".join(done.out.splitlines(True)[1:]).split()
    assert json.loads(odcctl("disk", "list", "--json").out) == disks(*some_disks())
    quiet = odcctl("disk", "list", "--output", "quiet")
    assert quiet.out.split() == [disk["name"] for disk in some_disks()]
    assert all(not one.query for one in peer.requests_to(PATH))
    peer.on("GET", PATH, disks(default_gib=None))
    assert "this daemon has no disks" in odcctl("disk", "list").err


def test_a_list_of_another_names_whose_they_are(peer: Peer, odcctl: Odcctl) -> None:
    """AUT-09: operators alone, says the daemon."""
    peer.on("GET", PATH, disks(a_disk(), a_disk(user="bob")))
    done = odcctl("disk", "list", "--user", "all")
    assert [line.split()[0] for line in done.out.splitlines()] == ["USER", "alice", "bob"]
    assert peer.requests_to(PATH)[0].query == {"user": "all"}
    refused = problem(403, "NotOwner", "OD013", "only operators may see the disks of all", "Ask.")
    peer.on("GET", PATH, refused)
    done = odcctl("disk", "list", "-u", "all")
    assert done.err == "odcctl: only operators may see the disks of all (OD013)\n  Ask.\n"


@pytest.mark.long
def test_a_watched_list_changes(peer: Peer, terminal: Screens, odcctl: Odcctl) -> None:
    """CLI-36: every two seconds, and when something happens."""
    peer.on("GET", PATH, disks(a_disk()), disks(a_disk()),
            disks(a_disk(state="backing-up", snapshot_progress=7)))  # fmt: skip
    peer.on("GET", "/v1/events", lambda _: Reply(pieces=event_stream([], peer.stopping)))
    screen = terminal("disk", "list", "--watch")
    screen.until(b"available")
    screen.until(b"backing-up 7 %")
    screen.type(b"\x03")
    screen.end()
    assert odcctl("disk", "list", "--watch").code == 2
    assert odcctl("disk", "list", "--watch", "--json").code == 2


def test_one_is_made(peer: Peer, odcctl: Odcctl) -> None:
    """CLI-37."""
    peer.on("POST", PATH, Reply(a_disk("data"), status=201))
    assert odcctl("disk", "create", "data").out == "disk data created: 100 GiB\n"
    assert odcctl("disk", "create", "data", "--size", "50", "--output", "quiet").out == "data\n"
    first, second = peer.requests_to(PATH)
    assert (first.body, second.body) == ({"name": "data"}, {"name": "data", "size_gib": 50})
    assert first.headers["idempotency-key"]


@pytest.mark.parametrize("name", ["a b", "ä", "x" * 51, "none", ""])
def test_a_name_that_cannot_be_is_refused_here(peer: Peer, odcctl: Odcctl, name: str) -> None:
    """CLI-37: on the client, too."""
    for arguments in (["create", name], ["rename", "main", name], ["clone", "main", name]):
        done = odcctl("disk", *arguments)
        assert (done.code, peer.requests) == (2, [])
        assert "1 to 50 letters, digits, - and _" in done.err


def test_deleting_tells_how_many_snapshots_and_asks(
    peer: Peer, terminal: Screens, odcctl: Odcctl
) -> None:
    """CLI-38, STO-15."""
    gone = a_disk(state="deleted", purge_at="2026-07-31T12:00:00Z")
    peer.on("GET", f"{PATH}/main", a_disk())
    peer.on("DELETE", f"{PATH}/main", gone)
    done = odcctl("disk", "delete", "main")
    assert (done.code, peer.requests) == (1, [])
    assert "disk delete main --yes" in done.err
    done = odcctl("disk", "delete", "main", "-y")
    assert done.out == (
        "disk main deleted: its 3 snapshots will be kept until 2026-07-31 12:00:00Z\n"
    )
    for answer, code in ((b"\r", 1), (b"y\r", 0)):
        screen = terminal("disk", "delete", "main")
        question = b"Delete disk main with its 3 snapshots; they are kept for 30 days? (y/n) [n]: "
        screen.until(question)
        screen.type(answer)
        screen.until(b"\n" if code else b"deleted")
        assert screen.end() == code
    assert [one.method for one in peer.requests_to(f"{PATH}/main")] == [
        "DELETE",
        "GET",
        "GET",
        "DELETE",
    ]


def test_one_is_renamed(peer: Peer, odcctl: Odcctl) -> None:
    """CLI-40."""
    peer.on("POST", f"{PATH}/a/rename", a_disk("b"))
    assert odcctl("disk", "rename", "a", "b", "-u", "bob").out == "disk a renamed to b\n"
    [request] = peer.requests
    assert (request.query, request.body) == ({"user": "bob"}, {"new_name": "b"})
    message = 'disk "a" cannot be renamed: reservation 7 is using it'
    peer.on("POST", f"{PATH}/a/rename", problem(409, "InUse", "OD028", message, "Cancel it."))
    done = odcctl("disk", "rename", "a", "b")
    assert (done.code, done.err) == (
        1,
        f"odcctl: disks not changed: {message} (OD028)\n  Cancel it.\n",
    )


def contents(**fields: object) -> dict[str, object]:
    return {
        "name": "main", "snapshot_id": "snap-1", "at": "2026-06-30T18:04:00Z",
        "used_bytes": 1_610_612_736, "contents": "1.5G\t/home/dev\n/home/dev/\x1b[31mred", **fields,
    }  # fmt: skip


def test_what_is_on_one_is_listed_without_a_reservation(peer: Peer, odcctl: Odcctl) -> None:
    """CLI-39, STO-17, STO-18: names of files do nothing to the terminal."""
    path = f"{PATH}/main/content"
    peer.on("GET", path, contents())
    done = odcctl("disk", "list-content", "main")
    assert done.out == "1.5G?/home/dev\n/home/dev/?[31mred\n"
    assert done.err == "odcctl: disk main as it was saved 2026-06-30 18:04:00Z, 1.5 GiB used\n"
    assert json.loads(odcctl("disk", "list-content", "main", "--json").out) == contents()
    peer.on("GET", path, contents(contents=None, used_bytes=None))
    done = odcctl("disk", "list-content", "main")
    assert (done.code, done.out) == (0, "not available\n")
    assert "the files themselves are saved" in done.err
    peer.on("GET", path, contents(snapshot_id=None, at=None, contents=None, used_bytes=None))
    done = odcctl("disk", "list-content", "main")
    assert (done.code, done.out) == (0, "")
    assert "has no snapshot yet" in done.err
    peer.on("GET", path, problem(410, "DiskDeleted", "OD037", 'disk "main" was deleted'))
    assert odcctl("disk", "list-content", "main").err == (
        'odcctl: disk "main" was deleted (OD037)\n'
    )


def test_operators_clone_and_unlock(peer: Peer, odcctl: Odcctl) -> None:
    """CLI-41."""
    peer.on("POST", f"{PATH}/a/clone", Reply(a_disk("b", user="bob"), status=201))
    done = odcctl("disk", "clone", "a", "b", "--user", "alice", "--new-user", "bob")
    assert done.out == "disk b of bob created from the newest snapshot of a\n"
    [request] = peer.requests
    assert (request.query, request.body) == (
        {"user": "alice"},
        {"new_name": "b", "new_user": "bob"},
    )
    peer.on("POST", f"{PATH}/a/unlock", a_disk("a"), a_disk("a", last_snapshot_at=None))
    assert odcctl("disk", "unlock", "a").out == (
        "disk a can be used again: its files are from 2026-06-30 18:04:00Z\n"
    )
    assert "it is empty, because it was never saved" in odcctl("disk", "unlock", "a").out


def test_strays_are_shown_to_operators(peer: Peer, odcctl: Odcctl) -> None:
    """STO-25: what the cloud has in odc's name and no disk knows."""
    stray = {
        "cloud_id": "snap-9", "kind": "snapshot", "user": "bob", "disk": None,
        "tags": {"created_at": "2026-06-30T18:04:00Z"}, "first_at": "2026-07-01T10:00:00Z",
        "seen_at": "2026-07-01T12:00:00Z",
    }  # fmt: skip
    peer.on("GET", "/v1/disk-strays", {"strays": [stray]})
    assert odcctl("disk", "strays").out.splitlines()[1].split() == [
        "snap-9", "snapshot", "bob", "-", "2026-06-30T18:04:00Z", "2026-07-01", "10:00:00Z",
    ]  # fmt: skip
    assert odcctl("disk", "strays", "--output", "quiet").out == "snap-9\n"


@pytest.mark.parametrize(
    "arguments",
    [["nothing"], ["list", "a"], ["create"], ["rename", "a"], ["delete", "a", "b"],
     ["list", "--yes"], ["create", "a", "--user", "b"], ["unlock", "a", "--size", "9"],
     ["create", "a", "--size", "x"]],
)  # fmt: skip
def test_wrong_usage_sends_no_request(peer: Peer, odcctl: Odcctl, arguments: list[str]) -> None:
    done = odcctl("disk", *arguments)
    assert (done.code, peer.requests) == (2, [])


def test_names_are_completed(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", PATH, disks(a_disk("main"), a_disk("more")))

    def completions(*line: str) -> list[str]:
        found = odcctl("completion", "words", "--", *line).out
        return [line.split("\t")[0] for line in found.splitlines()]

    assert completions("disk", "re") == ["rename"]
    assert completions("disk", "delete", "m") == ["main", "more"]
    assert completions("disk", "create", "") == []
    assert completions("reserve", "--disk", "") == ["main", "more", "none"]
