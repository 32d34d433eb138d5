"""wait, logs, events and run follow jobs to their end, also when the daemon goes away meanwhile."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.odcctl.conftest import Odcctl, interrupt, send
from tests.odcctl.objects import a_job, an_event, ended, outcome, submitted
from tests.odcctl.peer import Peer, Reply, Request, event_stream, problem

LOGS = "/v1/jobs/7/logs"
RESTARTS = problem(503, "DatabaseDown", "OD023", "PostgreSQL cannot be reached")


def test_wait_outlives_a_restart_of_the_daemon(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs/7", {"jobs": [], "ended": False}, Reply(lose=True), RESTARTS,
            {"jobs": [ended()], "ended": True})  # fmt: skip
    done = odcctl("wait", "7")
    assert (done.code, done.out) == (0, "")
    assert done.err == "odcctl: the daemon does not answer; waiting for it\n"
    assert [request.query["wait"] for request in peer.requests] == ["0", "300", "300", "300"]


def test_logs_copies_bytes_and_names_stream_and_rank(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(7, "RUNNING")], "next": None})
    peer.on("GET", LOGS, lambda _: Reply(pieces=[b"a\n", b"b\r\n", "ü".encode()]))
    assert odcctl("logs", "7").out == "a\nb\r\nü"
    assert peer.requests[-1].query == {"stream": "stdout", "rank": "0"}
    peer.on("GET", "/v1/jobs/7", {"jobs": [a_job(7, "RUNNING")], "next": None})
    odcctl("logs", "7", "-f", "--rank", "all", "--stderr")
    assert peer.requests[-1].query == {"stream": "stderr", "rank": "all", "follow": "true"}


def test_followed_output_goes_on_where_the_daemon_left(peer: Peer, odcctl: Odcctl) -> None:
    whole = [b"one\n", b"two\n", b"three\n"]
    peer.on("GET", "/v1/jobs/7", {"jobs": [a_job(7, "RUNNING")], "next": None})
    peer.on("GET", LOGS, Reply(pieces=[whole[0], b"tw"], cut=True), RESTARTS, Reply(pieces=whole))
    done = odcctl("logs", "-f", "7")
    assert (done.code, done.out) == (0, "one\ntwo\nthree\n")


def test_following_a_pending_job_says_why_it_waits(peer: Peer, odcctl: Odcctl) -> None:
    asked = threading.Event()
    why = [{"cause": "node", "text": "needs 1 node with 1 free GPU; none is free now"}]
    job = a_job(7, reason="Resources", why=why)

    def look(request: Request) -> Reply:
        if "limit" not in request.query:
            asked.set()
        return Reply({"jobs": [job], "next": None})

    def pieces() -> Iterator[bytes]:
        asked.wait(120)
        yield b"one\n"

    peer.on("GET", "/v1/jobs/7", look)
    peer.on("GET", LOGS, lambda _: Reply(pieces=pieces()))
    done = odcctl("logs", "-f", "7")
    assert (done.code, done.out) == (0, "one\n")
    waits = "odcctl: job 7 waits: Resources: needs 1 node with 1 free GPU; none is free now\n"
    assert done.err == waits


def test_output_of_all_ranks_that_breaks_off_is_not_taken_for_whole(
    peer: Peer, odcctl: Odcctl
) -> None:
    peer.on("GET", "/v1/jobs/7", {"jobs": [a_job(7, "RUNNING")], "next": None})
    peer.on("GET", LOGS, Reply(pieces=[b"0: a\n"], cut=True))
    done = odcctl("logs", "-f", "7", "--rank", "all")
    assert (done.code, done.out) == (3, "0: a\n")
    assert "in the middle of the output" in done.err


def test_followed_events_go_on_after_the_last_one(peer: Peer, environment: dict[str, str]) -> None:
    lagged = {"id": 2, "kind": "lagged", "actor": "odcd"}
    peer.on(
        "GET", "/v1/jobs/7/events",
        Reply(pieces=event_stream([an_event(1, "submitted")]), cut=True),
        Reply(pieces=event_stream([an_event(2, "started"), lagged])),
        Reply(pieces=event_stream([an_event(3, "ended")], peer.stopping)),
    )  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "odcctl", "events", "-f", "-j", "7", "--output", "quiet"],
        env=environment, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == ["1\n", "2\n", "3\n"]
        process.terminate()
    assert [request.query.get("after") for request in peer.requests] == ["0", "1", "2"]


class _Job:
    """Job 7 as the daemon reports it: pending until started, running until ended."""

    def __init__(self, peer: Peer, *, out: bytes = b"", err: bytes = b"", code: int = 0) -> None:
        self.state = "PENDING"
        self.started, self.over = threading.Event(), threading.Event()
        self.cancelled = threading.Event()
        self._peer, self._out, self._err, self._code = peer, out, err, code
        peer.on("POST", "/v1/submit-argv", Reply(submitted(wait=True), status=201))
        peer.on("GET", "/v1/jobs/7/events", lambda _: Reply(pieces=self._events()))
        peer.on("GET", "/v1/jobs/7", self._look)
        peer.on("GET", LOGS, lambda request: Reply(pieces=self._output(request)))
        peer.on("POST", "/v1/jobs/cancel", self._cancel)

    def start(self) -> None:
        self.state = "RUNNING"
        self.started.set()

    def _events(self) -> Iterator[bytes]:
        yield from event_stream([an_event(1, "submitted")])
        self.started.wait(120)
        yield from event_stream([an_event(2, "started")], self._peer.stopping)

    def _look(self, request: Request) -> Reply:
        if "wait" not in request.query:
            why = [{"cause": "node", "text": "needs 1 node with 1 free GPU; none is free now"}]
            pending = self.state == "PENDING"
            return Reply({"jobs": [a_job(state=self.state, reason="Resources" if pending else None,
                                         why=why if pending else [])]})  # fmt: skip
        self.over.wait(120)
        state = "CANCELLED" if self.cancelled.is_set() else "FAILED" if self._code else "COMPLETED"
        number = 15 if self.cancelled.is_set() else None
        return Reply(
            {"jobs": [ended(state=state, exit_code=self._code, signal=number)], "ended": True}
        )

    def _output(self, request: Request) -> Iterator[bytes]:
        yield self._out if request.query["stream"] == "stdout" else self._err
        if self.cancelled.is_set() or self._code or self._out:
            self.over.set()
        self.over.wait(120)

    def _cancel(self, _: Request) -> Reply:
        self.cancelled.set()
        self.over.set()
        return Reply({"jobs": [outcome(7, "cancelling")]})


def test_run_gives_the_jobs_output_and_code(peer: Peer, odcctl: Odcctl) -> None:
    _Job(peer, out=b"result\n", err=b"trouble\n", code=3).start()
    done = odcctl("run", "--gpus", "1", "python", "x.py", "--json")
    assert (done.code, done.out, done.err) == (3, "result\n", "trouble\n")
    body = peer.requests_to("/v1/submit-argv")[0].body
    assert (body["command"], body["argv"][2:]) == ("run", ["python", "x.py", "--json"])


def _running(peer: Peer, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "odcctl", "run", "sleep", "100"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_run_says_why_a_job_has_not_started(peer: Peer, environment: dict[str, str]) -> None:
    job = _Job(peer, out=b"at last\n")
    with _running(peer, environment) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == (
            "odcctl: job 7 waits: Resources: needs 1 node with 1 free GPU; none is free now\n"
        )
        job.start()
        assert process.wait(60) == 0


def _ctrl_c(process: subprocess.Popen[str]) -> str:
    """The messages sent to it."""
    stderr = process.stderr
    assert stderr is not None
    send(process, signal.SIGINT, lambda within_s: select.select([stderr], [], [], within_s)[0])
    return stderr.readline()


def test_one_ctrl_c_tells_the_state_and_two_cancel(peer: Peer, environment: dict[str, str]) -> None:
    job = _Job(peer)
    job.start()
    with _running(peer, environment) as process:
        assert process.stderr is not None
        peer.wait_for(LOGS, 2)
        assert _ctrl_c(process) == (
            "odcctl: job 7 is RUNNING; Ctrl-C again within a second cancels it\n"
        )
        assert not job.cancelled.is_set()
        line = ""
        while not line.startswith("odcctl: cancelling job 7;"):
            line = _ctrl_c(process)  # Again when this machine took over a second.
        assert process.wait(60) == 143
    assert peer.requests_to("/v1/jobs/cancel")[0].body == {"ids": ["7"]}


def test_a_run_that_is_terminated_takes_its_job_along(
    peer: Peer, environment: dict[str, str], home: Path
) -> None:
    job = _Job(peer)
    job.start()
    with _running(peer, environment) as process:
        peer.wait_for(LOGS, 2)
        assert interrupt(process, signal.SIGTERM) == 143
    assert job.cancelled.is_set()


def test_run_with_an_output_file_says_where_it_goes(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("POST", "/v1/submit-argv", Reply(submitted(wait=True), status=201))
    peer.on("GET", "/v1/jobs/7/events", Reply(pieces=event_stream([an_event(1, "started")])))

    def look(request: Request) -> Reply:
        if "wait" in request.query:
            return Reply({"jobs": [ended()], "ended": True})
        return Reply({"jobs": [a_job(state="RUNNING", stdout="out.txt")]})

    peer.on("GET", "/v1/jobs/7", look)
    done = odcctl("run", "-o", "out.txt", "true")
    assert (done.code, done.out) == (0, "")
    assert done.err == "odcctl: output of job 7 goes to out.txt\n"
