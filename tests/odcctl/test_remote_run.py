"""reserve with a command: what is sent, run and fetched, and that nothing is left behind."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odcctl.reservations.folders import Unpacked, unpack
from tests.odcctl.conftest import Odcctl, interrupt
from tests.odcctl.objects import a_reservation, an_event, outcome
from tests.odcctl.peer import Peer, Reply, Run, event_stream, problem

PATH = "/v1/reservations"
SSH = """#!/bin/sh
for word; do last=$word; done
printf '%s\\n' "$last" >> "$0.commands"
[ -z "$DROPS" ] || { case $last in *"$DROPS"*) echo "$STDERR" >&2; exit 255;; esac; }
exec sh -c "$(printf %s "$last" | sed "s#/workspace/run#$0.there#g")"
"""
"""Runs here what was to run there."""

Reservation = dict[str, Any]


@pytest.fixture
def reservation(peer: Peer) -> Reservation:
    one = a_reservation(12, connect="ssh", ssh_command="ssh -A odc-12")
    peer.on("POST", PATH, Reply(a_reservation(12, "pending"), status=201))
    peer.on("GET", f"{PATH}/12", a_reservation(12, "pending"), one)
    submitted = an_event(1, "submitted", job_id=12)
    peer.on("GET", "/v1/jobs/12/events",
            lambda _: Reply(pieces=event_stream([submitted], peer.stopping)))  # fmt: skip
    peer.on("POST", "/v1/jobs/cancel", {"jobs": [outcome(12, "cancelled")]})
    return one


@pytest.fixture
def there(home: Path) -> Path:
    """The content of /workspace/run in the reservation."""
    path = home / "bin/ssh"
    path.parent.mkdir()
    path.write_text(SSH)
    path.chmod(0o755)
    return path.with_name("ssh.there")


@pytest.fixture
def reserve(odcctl: Odcctl, there: Path) -> Callable[..., Run]:
    def run(*arguments: str, **env: str) -> Run:
        return odcctl("reserve", *arguments, PATH=f"{there.parent}:{os.environ['PATH']}", **env)

    return run


@pytest.fixture
def work(home: Path) -> Path:
    folder = home / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("ref")
    (folder / "sub/in put.txt").write_text("mine")
    (folder / "link").symlink_to("sub/in put.txt")
    (folder / "outside").symlink_to("/etc/hostname")
    os.utime(folder / "sub/in put.txt", (1_700_000_000, 1_700_000_000.5))
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def cancels(peer: Peer) -> list[Any]:
    return [request.body for request in peer.requests_to("/v1/jobs/cancel")]


def test_a_folder_is_sent_a_command_runs_in_it_and_what_is_new_comes_back(
    peer: Peer, reservation: Reservation, reserve: Callable[..., Run], there: Path, work: Path
) -> None:
    """CLI-50: and the reservation ends. Its options are its own, its words are words."""
    script = 'cat "sub/in put.txt" link; cat .git/HEAD; echo "$1" > out; echo new > sub/new; exit 7'
    command = ["sh", "-c", script, "-g", "$(touch pwned) it's"]
    done = reserve("-g", "2", "--send", "work", "--", *command)
    assert (done.code, done.out) == (7, "mine" * 2 + "ref"), done.err
    assert peer.requests_to(PATH)[0].body == {"gpus": 2, "ssh": True}
    assert (work / "out").read_text() == "$(touch pwned) it's\n"
    assert (work / "sub/new").read_text() == "new\n"
    assert not (there / "pwned").exists()
    assert (work / "outside").readlink() == Path("/etc/hostname")
    assert (work / "sub/in put.txt").stat().st_mtime == 1_700_000_000.5
    assert "sending work to reservation 12: 2 files, 7 bytes" in done.err
    assert "fetched new files into work: 2 files" in done.err
    assert "not fetched" not in done.err
    assert cancels(peer) == [{"ids": ["12"]}]
    assert not (there.parent.parent / ".odc/ssh/12.conf").exists()
    assert names(work) == [".git", "link", "out", "outside", "sub"]


def test_newer_local_files_are_kept(
    peer: Peer, reservation: Reservation, reserve: Callable[..., Run], work: Path
) -> None:
    """CLI-50"""
    change = f"echo older > link2; touch -d @5 link2; echo here > {work}/link2; echo x > new"
    assert reserve("--send", "work", "--", "sh", "-c", change).code == 0
    assert (work / "link2").read_text() == "here\n"
    assert (work / "new").read_text() == "x\n"


def test_without_a_folder_nothing_is_sent_or_fetched(
    peer: Peer, reservation: Reservation, reserve: Callable[..., Run], there: Path, work: Path
) -> None:
    """CLI-50: --no-fetch, --keep-alive."""
    done = reserve("--keep-alive", "--", "touch", "a")
    assert (done.code, cancels(peer)) == (0, []), done.err
    assert "reservation 12 continues until 2026-07-01 18:00:05" in done.err
    assert "odcctl cancel 12" in done.err
    assert names(there) == ["a"]
    [command] = there.with_name("ssh.commands").read_text().split("mkdir")[1:]
    assert "tar" not in command
    assert reserve("--send", "work", "--no-fetch", "--", "touch", "b").code == 0
    assert (there / "b").exists()
    assert not (work / "b").exists()


@pytest.mark.parametrize(
    ("drops", "stderr", "code", "word", "ended"),
    [
        ("sent-me", "Connection closed", 3, "was lost; it is active until", False),
        (
            "mkdir",
            "dev@odc-12: Permission denied (publickey).",
            1,
            "accepts none of your SSH",
            True,
        ),
        ("tar -cf", "Connection closed", 1, "files not fetched: the connection", False),
    ],
)
def test_failures_of_ssh_are_told_apart_from_the_commands(
    peer: Peer, reservation: Reservation, reserve: Callable[..., Run], there: Path, work: Path,
    drops: str, stderr: str, code: int, word: str, ended: bool,
) -> None:  # fmt: skip
    """CLI-50: what could not be fetched is not thrown away."""
    peer.on("GET", f"{PATH}/12", reservation)
    done = reserve("--send", "work", "--", "true", "sent-me", DROPS=drops, STDERR=stderr)
    assert (done.code, word in done.err) == (code, True), done.err
    assert bool(cancels(peer)) == ended


def test_without_a_folder_nothing_is_kept_for(
    peer: Peer, reservation: Reservation, reserve: Callable[..., Run]
) -> None:
    """CLI-50"""
    peer.on("GET", f"{PATH}/12", reservation)
    done = reserve("--", "true", "sent-me", DROPS="sent-me", STDERR="Connection closed")
    assert (done.code, "was lost" in done.err, len(cancels(peer))) == (3, True, 1), done.err


def test_255_of_the_command_is_its_own(
    peer: Peer, reservation: Reservation, reserve: Callable[..., Run], there: Path
) -> None:
    """CLI-50"""
    done = reserve("--", "sh", "-c", "exit 255")
    assert (done.code, "lost" in done.err, len(cancels(peer))) == (255, False, 1), done.err


@pytest.mark.long
def test_the_timeout_cancels(
    peer: Peer, reservation: Reservation, reserve: Callable[..., Run]
) -> None:
    """CLI-50: 124, as timeout(1)."""
    done = reserve("--timeout", "0:02", "--", "sh", "-c", "exec sleep 20 >/dev/null 2>&1")
    assert (done.code, cancels(peer)) == (124, [{"ids": ["12"]}]), done.err
    assert "the time limit of --timeout was reached" in done.err


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("when", ["waiting", "running"])
def test_ctrl_c_cancels(
    peer: Peer, reservation: Reservation, environment: dict[str, str], there: Path, number: int,
    code: int, when: str,
) -> None:  # fmt: skip
    """CLI-50: also while it waits."""
    if when == "waiting":
        peer.on("GET", f"{PATH}/12", a_reservation(12, "queued", queue_position=1))
    with subprocess.Popen(
        [sys.executable, "-m", "odcctl", "reserve", "--", "sh", "-c", "echo on; exec sleep 20"],
        env=environment | {"PATH": f"{there.parent}:{environment['PATH']}"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        if when == "waiting":
            peer.wait_for(f"{PATH}/12", 1)
        else:
            assert process.stdout.readline() == "on\n"
        assert interrupt(process, number) == code
    assert cancels(peer) == [{"ids": ["12"]}]


def test_where_ssh_reaches_nothing_nothing_is_reserved(
    peer: Peer, reservation: Reservation, reserve: Callable[..., Run]
) -> None:
    """CLI-50: on the local executor the daemon refuses it."""
    why = problem(501, "NotImplementedYet", "OD016", "ssh does not reach them", "Run it as a job.")
    peer.on("POST", PATH, why)
    done = reserve("--", "true")
    assert (done.code, done.out, cancels(peer)) == (1, "", [])
    assert done.err.splitlines() == [
        "odcctl: nothing reserved: ssh does not reach them (OD016)", "  Run it as a job.",
    ]  # fmt: skip
    assert peer.requests_to(PATH)[0].body == {"ssh": True}


def test_one_that_ssh_does_not_reach_all_the_same_is_told_and_ended(
    peer: Peer, reservation: Reservation, reserve: Callable[..., Run]
) -> None:
    """CLI-50"""
    peer.on("GET", f"{PATH}/12", a_reservation(12))
    done = reserve("--", "true")
    assert (done.code, len(cancels(peer))) == (1, 1)
    assert "odcctl run --gpus 1 COMMAND" in done.err


def test_one_that_fails_is_told(
    peer: Peer, reservation: Reservation, reserve: Callable[..., Run]
) -> None:
    """CLI-50"""
    peer.on("GET", f"{PATH}/12", a_reservation(12, "failed", message="no image"))
    done = reserve("--", "true")
    assert (done.code, "reservation 12 failed" in done.err) == (1, True), done.err


WRONG: dict[str, tuple[list[str], int, str]] = {
    "an option": (["--", "--gpus", "2"], 2, '"--gpus" is an option: write a command'),
    "nothing": (["--"], 2, "write a command after --"),
    "empty": (["--", ""], 2, "the command is empty"),
    "a folder alone": (["--send", "work"], 2, "--send requires a command"),
    "not waited": (["--no-wait", "--", "true"], 2, "--no-wait and a command"),
    "json": (["--json", "--", "true"], 2, "no other output format"),
    "no time": (["--timeout", "0", "--", "true"], 2, "a time above 0"),
    "foreign time": (["--timeout", "1x", "--", "true"], 2, 'not "1x"'),
    "words before": (["true", "--", "true"], 2, "unexpected argument"),
    "no folder": (["--send", "away", "--", "true"], 1, "away is not a folder"),
    "large": (["--send", "work", "--", "true"], 1, "work has 3 files, 1.5 GiB, but at most 1 GiB"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_invalid_command_reserves_nothing(
    peer: Peer, reserve: Callable[..., Run], work: Path, case: str
) -> None:
    """CLI-50"""
    options, code, message = WRONG[case]
    if case == "large":
        with (work / "large").open("wb") as file:
            file.truncate(1536 * 1024**2)
    done = reserve(*options)
    assert (done.code, peer.requests) == (code, []), done.err
    assert message in done.err


def unpacked(folder: Path, *members: tuple[str, dict[str, Any]]) -> Unpacked:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, fields in members:
            member = tarfile.TarInfo(name)
            member.mtime, member.mode = 2_000_000_000, 0o6777
            data = fields.pop("data", b"x")
            for field, value in fields.items():
                setattr(member, field, value)
            member.size = len(data) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(data))
    held.seek(0)
    return unpack(held, str(folder))


def test_nothing_leaves_the_folder(tmp_path: Path) -> None:
    """CLI-50: whatever a stream says, by its names or by links of it or of the folder."""
    folder, away = tmp_path / "folder", tmp_path / "away"
    folder.mkdir()
    away.mkdir()
    (away / "there").write_text("safe")
    (folder / "mine").symlink_to(away)
    link = tarfile.SYMTYPE
    bad: list[tuple[str, dict[str, Any]]] = [
        ("../out", {}), (f"{away}/out", {}), ("a/../../out", {}), ("mine/out", {}),
        ("mine/new/out", {}), ("up", {"type": link, "linkname": "../away"}),
        ("far", {"type": link, "linkname": str(away)}),
        ("turn", {"type": link, "linkname": "here/../../away"}),
        ("up/out", {"type": tarfile.DIRTYPE, "name": "../dir"}),
        ("hard", {"type": tarfile.LNKTYPE, "linkname": "../away/there"}),
        ("hard2", {"type": tarfile.LNKTYPE, "linkname": "mine/there"}),
        ("nul", {"pax_headers": {"path": "a\0b"}}), ("late", {"mtime": 1e30}),
        ("pipe", {"type": tarfile.FIFOTYPE}), ("disk", {"type": tarfile.BLKTYPE}),
    ]  # fmt: skip
    good: list[tuple[str, dict[str, Any]]] = [
        ("./deep/down/file", {"data": b"1"}),
        ("deep/again", {"type": tarfile.LNKTYPE, "linkname": "./deep/down/file"}),
        ("deep/link", {"type": link, "linkname": "../deep/down"}),
    ]
    done = unpacked(folder, *bad, *good)
    assert len(done.refused) == len(bad), done.refused
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("folder", "away")] == []
    assert [(path.name, path.read_text()) for path in away.iterdir()] == [("there", "safe")]
    assert (folder / "deep/again").read_text() == (folder / "deep/link/file").read_text() == "1"
    assert (folder / "deep/down/file").stat().st_mode & 0o7777 == 0o755
    assert names(folder) == ["deep", "mine"]


def test_a_stream_that_is_cut_off_leaves_no_half_file(tmp_path: Path) -> None:
    """CLI-50"""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        member = tarfile.TarInfo("a")
        member.size = 100_000
        tar.addfile(member, io.BytesIO(b"x" * 100_000))
    with pytest.raises(tarfile.ReadError):
        unpack(io.BytesIO(held.getvalue()[:50_000]), str(tmp_path))
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 5400), ("1:30", 90), ("8:00:00", 28_800), ("1-12", 129_600), ("1-0:30", 88_200)],
)
def test_times_are_those_of_sbatch(text: str, seconds: int) -> None:
    from odcctl.text.hours import read_time

    assert read_time(text) == seconds
