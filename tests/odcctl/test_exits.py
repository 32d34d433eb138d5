"""Exit codes and error messages of commands."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from odcctl.exits import job_exit_code
from tests.odcctl.conftest import Odcctl, interrupt
from tests.odcctl.objects import a_job, a_mixed_queue, ended, outcome
from tests.odcctl.peer import Peer, problem
from tests.odcctl.test_terminal import Terminal, terminal

__all__ = ["terminal"]

UNKNOWN = problem(404, "UnknownJob", "OD006", "job 9 does not exist", "`odcctl queue` lists jobs.")


def test_no_daemon_is_3_and_names_the_sockets_that_were_tried(odcctl: Odcctl, home: Path) -> None:
    done = odcctl("queue")
    assert (done.code, done.out) == (3, "")
    assert done.err == (
        f"odcctl: no daemon answers\n  tried {home}/odcd.sock: no such socket\n"
        "  Start one with: odcd up\n"
    )


@pytest.mark.parametrize(
    "argv",
    [
        ["quue"], [], ["queue", "--bogus"], ["queue", "word"], ["queue", "--output", "yaml"],
        ["queue", "-u"], ["queue", "-t", "SLEEPING"], ["queue", "--me", "-u", "bob"],
        ["queue", "--start", "-t", "R"], ["queue", "-j", "x"], ["show", "7.0"],
        ["show", "7_[1"], ["show", "--script"], ["cancel"], ["cancel", "--all", "7"],
        ["cancel", "abc", "7"], ["cancel", "abc", "-n", "x"], ["cancel", "7", "--yes"], ["hold"],
        ["update", "7"], ["update", "7", "--nice", "much"], ["logs", "7", "8"],
        ["logs", "7", "--rank", "first"], ["history", "-t", "RUNNING"], ["history", "--limit", "0"],
        ["history", "--since", "once"], ["node", "drain", "a"], ["node", "paint", "a"],
        ["node", "resume", "a", "--reason", "x"], ["node", "drain", "a[1-", "--reason", "x"],
        ["--output", "quiet", "submit", "x.sh"], ["--output", "yaml", "queue"],
        ["completion", "tcsh"], ["queue", "--watch"], ["--server", "http://x:", "queue"],
        ["submit", "--server"], ["queue", "--as-of", "soon"], ["why", "7", "--as-of", "2026-13-01"],
        ["queue", "--as-of", "2h", "--watch"], ["show", "7", "--as-of", "2h", "--script"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_usage_is_2_before_any_request(peer: Peer, odcctl: Odcctl, argv: list[str]) -> None:
    done = odcctl(*argv)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(("odcctl: ", "Usage: "))
    assert "\n  " in done.err
    changing = [request for request in peer.requests if request.method != "GET"]
    assert changing == []


def test_a_refusal_is_1_with_its_hint(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs/9", UNKNOWN)
    peer.on("GET", "/v1/reservations", {"reservations": []})
    done = odcctl("show", "9")
    assert (done.code, done.out) == (1, "")
    assert done.err == "odcctl: job 9 does not exist (OD006)\n  `odcctl queue` lists jobs.\n"


def test_a_server_that_is_no_daemon_is_reported_without_a_traceback(
    peer: Peer, odcctl: Odcctl
) -> None:
    peer.on("GET", "/v1/jobs", problem(500, "InternalError", "OD000", "odcd failed (error ab12)"))
    assert odcctl("queue").err == "odcctl: odcd failed (error ab12) (OD000)\n"


@pytest.mark.parametrize(
    ("jobs", "code"),
    [
        ([ended()], 0),
        ([ended(state="FAILED", exit_code=3)], 3),
        ([ended(state="FAILED", exit_code=0, signal=9)], 137),
        ([ended(state="CANCELLED", exit_code=None)], 4),
        ([ended(state="TIMEOUT", exit_code=0)], 4),
        ([ended(), ended(state="FAILED", exit_code=7), ended(state="FAILED", exit_code=2)], 7),
        ([ended(state="FAILED", exit_code=255), ended(state="FAILED", signal=15)], 255),
    ],
)  # fmt: skip
def test_the_code_of_jobs_is_the_highest_of_theirs(
    jobs: list[dict[str, object]], code: int
) -> None:
    assert job_exit_code(jobs) == code


def test_wait_exits_with_the_code_of_all_it_waited_for(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs/7", {"jobs": [], "ended": False}, {"jobs": [], "ended": False},
            {"jobs": [ended()], "ended": True})  # fmt: skip
    peer.on("GET", "/v1/jobs/8_[1-2]", {"jobs": [ended(9, "FAILED", exit_code=2)], "ended": True})
    done = odcctl("wait", "7", "8_[1-2]")
    assert (done.code, done.out, done.err) == (2, "", "")


def test_wait_refuses_an_unknown_job_before_it_waits(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs/7", {"jobs": [], "ended": False})
    peer.on("GET", "/v1/jobs/9", UNKNOWN)
    assert odcctl("wait", "7", "9").code == 1
    assert [request.path for request in peer.requests] == ["/v1/jobs/9"]


def test_cancel_tells_what_was_not_possible_and_exits_1(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("POST", "/v1/jobs/cancel", {"jobs": [
        outcome(7, "cancelled"), outcome(9, "cancelling", array_task_id=3),
        outcome(10, "cancelling"),
        outcome(8, "refused", code="OD013", message="job 8 belongs to bob", hint="Ask bob."),
    ]})  # fmt: skip
    done = odcctl("cancel", "7,8", "9", "10", "--signal", "TERM")
    assert (done.code, done.out) == (1, "job 7 cancelled\n2 jobs cancelling\n")
    assert done.err == "odcctl: job 8 not cancelled: it belongs to bob (OD013)\n  Ask bob.\n"
    assert peer.requests[0].body == {"ids": ["7", "8", "9", "10"], "signal": "TERM"}


def test_cancelled_tasks_are_named_as_they_were_asked_for(peer: Peer, odcctl: Odcctl) -> None:
    for tasks, name in (("8-9", "6_[8-9]"), ("8", "6_8")):
        jobs = [outcome(6, "cancelled", array_tasks=tasks)]
        peer.on("POST", "/v1/jobs/cancel", {"jobs": jobs})
        assert odcctl("cancel", name).out == f"job {name} cancelled\n"


def test_options_of_every_command_may_stand_before_it(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(7)], "next": None})
    for form in ("quiet", "json"):
        before, after = odcctl("--output", form, "queue"), odcctl("queue", "--output", form)
        assert (before.code, before.out, before.err) == (0, after.out, "")


def test_cancel_by_name_selects_only_ones_own_jobs(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("POST", "/v1/jobs/cancel", {"jobs": [outcome(7, "cancelled")]}, {"jobs": []})
    assert odcctl("cancel", "train", "eval").out == "job 7 cancelled\n"
    me = pwd.getpwuid(os.getuid()).pw_name
    assert peer.requests[-1].body == {"user": me, "name": "train,eval"}
    none = odcctl("cancel", "train")
    assert (none.code, none.err) == (
        1,
        f"odcctl: nothing cancelled: no live job of {me} has the name train\n",
    )


def test_cancel_all_ends_only_ones_own_jobs(
    peer: Peer, odcctl: Odcctl, terminal: Callable[..., Terminal]
) -> None:
    me = pwd.getpwuid(os.getuid()).pw_name
    peer.on("POST", "/v1/jobs/cancel", {"jobs": [outcome(7, "cancelled")]})
    assert odcctl("cancel", "-a").code == 0
    assert peer.requests[-1].body == {"user": me}
    assert odcctl("cancel", "--all", "--user", "bob").code == 0
    assert peer.requests[-1].body == {"user": "bob"}
    peer.on("GET", "/v1/jobs", {"jobs": a_mixed_queue(), "next": None})
    count = len(peer.requests_to("/v1/jobs/cancel"))
    screen = terminal("cancel", "--all")
    shown = screen.until(b"Cancel all of these jobs? (y/n) [n]: ")
    assert b"4130" in shown
    screen.type(b"\r")
    screen.until(b"you did not confirm")
    assert screen.end() == 1
    assert len(peer.requests_to("/v1/jobs/cancel")) == count
    screen = terminal("cancel", "--all")
    screen.until(b"(y/n) [n]: ")
    screen.type(b"y\r")
    screen.until(b"job 7 cancelled")
    assert screen.end() == 0
    screen = terminal("cancel", "--all", "--yes")
    assert b"(y/n)" not in screen.until(b"job 7 cancelled")


def test_changes_say_what_they_mean_to_the_daemon(peer: Peer, odcctl: Odcctl) -> None:
    for verb, word in (("hold", "held"), ("release", "released"), ("requeue", "requeueing")):
        peer.on("POST", f"/v1/jobs/{verb}", {"jobs": [outcome(7, word)]})
        assert odcctl(verb, "7", "8_[1-4]").out == f"job 7 {word}\n"
        assert peer.requests[-1].body["ids"] == ["7", "8_[1-4]"]
    peer.on("POST", "/v1/jobs/cancel", {"jobs": []})
    done = odcctl("cancel", "-u", "bob", "-t", "PD", "-p", "a,b")
    assert (done.code, done.err) == (0, "odcctl: no job matches\n")
    assert peer.requests[-1].body == {"user": "bob", "state": "PENDING", "partition": "a,b"}
    peer.on("PATCH", "/v1/jobs/7", {"jobs": [outcome(7, "updated")]})
    odcctl(
        "update",
        "7",
        "-t",
        "1-12",
        "--comment",
        "",
        "--throttle",
        "0",
        "-p",
        "a,b",
        "--begin",
        "noon",
    )
    assert peer.requests[-1].body == {
        "time_limit": "1-12", "comment": None, "array_throttle": None, "partitions": ["a", "b"],
        "begin": "noon", "time_zone": "UTC",
    }  # fmt: skip


def test_nodes_are_drained_one_by_one_and_the_refused_are_named(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("PATCH", "/v1/nodes/gpu-01", {})
    peer.on("PATCH", "/v1/nodes/gpu-02", problem(404, "UnknownNode", "OD007", "no such node"))
    done = odcctl("node", "drain", "gpu-[01-02]", "--reason", "driver")
    assert done.code == 1
    assert done.out == "node gpu-01: drained; its jobs continue, and no new jobs start\n"
    assert done.err == "odcctl: node gpu-02 not changed: no such node (OD007)\n"
    assert peer.requests[0].body == {"state": "DRAIN", "reason": "driver"}


def test_ctrl_c_is_130_and_silent(peer: Peer, home: Path, environment: dict[str, str]) -> None:
    waiting = peer.hold_on("GET", "/v1/jobs/7")
    with subprocess.Popen(
        [sys.executable, "-m", "odcctl", "wait", "7"], env=environment, stderr=subprocess.PIPE
    ) as process:
        assert waiting.wait(60)
        assert interrupt(process, signal.SIGINT) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_reader_that_leaves_is_no_error(
    peer: Peer, home: Path, environment: dict[str, str]
) -> None:
    jobs = [a_job(number) for number in range(3000)]
    peer.on("GET", "/v1/jobs", {"jobs": jobs, "next": None})
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m odcctl queue | head -1"],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("JOB")
    assert (done.returncode, done.stderr) == (141, "")


def test_output_that_cannot_be_written_is_told(peer: Peer, environment: dict[str, str]) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(name="ж")], "next": None})

    def shell(redirect: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", f"{sys.executable} -m odcctl queue {redirect}"],
            env={**environment, **env}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    full = shell("> /dev/full")
    assert (full.returncode, full.stderr) == (1, "odcctl: No space left on device\n")
    for closed in (">&-", "<&- >&-"):
        assert (shell(closed).returncode, shell(closed).stderr) == (0, "")
    latin = shell("", PYTHONIOENCODING="latin-1")
    assert (latin.returncode, latin.stderr) == (0, "")


@pytest.mark.parametrize("command", ["show", "logs", "cancel", "hold", "why", "wait", "queue"])
def test_a_component_is_answered_with_the_job_to_name(
    peer: Peer, odcctl: Odcctl, command: str
) -> None:
    done = odcctl(command, "33+1")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[:2] == [
        "odcctl: 33+1 is a component of a heterogeneous job",
        "  Name the whole job: 33.",
    ]
