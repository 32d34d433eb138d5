"""A job's user cannot prevent its processes from ending at a cancel or at the time limit."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odcd.runner.log import MAX_LIMITED
from odcd.runner.server import MAX_MALFORMED
from tests.support.harness.database import make_home, remove_home
from tests.support.harness.runner import (
    RequestRefused,
    RunnerHome,
    a_dispatch,
    a_file,
    a_part,
    forked_runner,
    is_running,
    until,
)
from tests.support.harness.users import account, folder_of, ids_of, needs_root

pytestmark = needs_root

ANN = {"uid": 64001, "gid": 64001}
BOB = {"uid": 64002, "gid": 64002}
PYTHON = "#!/usr/bin/env -S python3 -S\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = make_home()
    yield folder
    remove_home(folder)


@pytest.fixture
def home(folder: Path) -> Iterator[RunnerHome]:
    home = RunnerHome(folder / "runner")
    home.launch()
    yield home
    home.end()


@pytest.fixture
def work_dir(folder: Path) -> Path:
    work_dir = folder / "work"
    work_dir.mkdir()
    os.chown(work_dir, ANN["uid"], ANN["gid"])
    return work_dir


def pids_in(path: Path, count: int) -> list[int]:
    def read() -> list[int]:
        numbers = path.read_text().split() if path.exists() else []
        return [int(number) for number in numbers] if len(numbers) >= count else []

    return until(read)


@contextmanager
def as_user(ids: dict[str, int], work: Callable[[], None]) -> Iterator[int]:
    """A process of the user that runs this work until it is killed; its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(ids["gid"], ids["gid"], ids["gid"])
            os.setresuid(ids["uid"], ids["uid"], ids["uid"])
            work()
        finally:
            os._exit(1)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def may_kill(ids: dict[str, int], pid: int) -> bool:
    """True if the user may signal the process."""
    reading, writing = os.pipe()

    def work() -> None:
        try:
            os.kill(pid, 0)
            os.write(writing, b"y")
        except PermissionError:
            os.write(writing, b"n")

    with as_user(ids, work):
        answer = os.read(reading, 1)
    os.close(reading)
    os.close(writing)
    return answer == b"y"


def signal_all_shims(number: int, *, once: bool = False) -> None:
    """Forever: every process that has the name of a shim, as their forks do until exec."""
    done: set[str] = set()
    while True:
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or entry.name in done:
                continue
            with contextlib.suppress(OSError):
                if (entry / "comm").read_text() == "odc-shim\n":
                    os.kill(int(entry.name), number)
                    if once:
                        done.add(entry.name)


@pytest.mark.parametrize("what", ["stdout", "stderr", "stdin"])
@pytest.mark.parametrize("path", ["fifo", "/proc/self/cwd/fifo"])
def test_a_fifo_as_a_jobs_file_is_refused_at_once(
    home: RunnerHome, work_dir: Path, what: str, path: str
) -> None:
    os.mkfifo(work_dir / "fifo")
    os.chown(work_dir / "fifo", ANN["uid"], ANN["gid"])
    client = home.client()
    part = a_part(0, work_dir, **{what: path if what == "stdin" else a_file(path)})
    client.start(a_dispatch(1, "#!/bin/sh\n", work_dir, members=[part], **ANN))
    end = client.wait_end(1)
    assert (end["kind"], end["cause"]) == ("start_failed", "unknown")
    assert "neither a regular file nor /dev/null" in end["detail"]
    client.start(a_dispatch(2, "#!/bin/sh\necho well\n", work_dir, **ANN))
    assert client.wait_end(2)["exit_code"] == 0


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_a_job_may_still_use_the_null_device(home: RunnerHome, work_dir: Path, device: str) -> None:
    client = home.client()
    part = a_part(0, work_dir, stdin=device, stdout=a_file("/dev/null"))
    client.start(a_dispatch(1, "#!/bin/sh\nhead -c 1; echo x\n", work_dir, members=[part], **ANN))
    assert client.wait_end(1)["exit_code"] == 0


def test_no_process_between_runner_and_script_runs_as_the_user(
    home: RunnerHome, work_dir: Path
) -> None:
    """A user who signals every shim, all the time, harms no job."""
    with as_user(ANN, lambda: signal_all_shims(signal.SIGKILL)):
        client = home.client()
        jobs = range(1, 61)
        # Each runs for a moment: the window that was open is that of the start.
        client.start(
            *(
                a_dispatch(
                    job, "#!/bin/sh\nexit 0\n", work_dir, **ANN,
                    members=[a_part(0, work_dir, stdout=a_file(work_dir / f"out{job}"))],
                )
                for job in jobs
            )
        )  # fmt: skip
        ends = [client.wait_end(job) for job in jobs]
    # A process that is still a copy of the shim just before it executes the script can be killed by
    # the user.
    assert {end["kind"] for end in ends} <= {"exited", "start_failed"}, ends
    assert "shim.died" not in (home.run_dir / "runner.log").read_text()


ESCAPES = {
    "double fork": "(setsid sh -c 'echo $$ > pid; trap \"\" TERM HUP INT; sleep 1000' &) &",
    "empty environment": "setsid env -i /bin/sh -c 'echo $$ > pid; trap \"\" TERM; "
                         "while :; do /bin/sleep 1; done' &",
    "another process group": "set -m; sh -c 'echo $$ > pid; trap \"\" TERM; sleep 1000' &",
}  # fmt: skip


@pytest.mark.parametrize("how", ESCAPES)
@pytest.mark.parametrize("end", ["cancel", "time limit"])
def test_a_process_that_detached_ends_with_its_job(
    home: RunnerHome, work_dir: Path, how: str, end: str
) -> None:
    script = f"#!/bin/bash\ntrap '' TERM\n{ESCAPES[how]}\nwhile :; do sleep 1; done\n"
    limit = time.time() + 1 if end == "time limit" else None
    client = home.client()
    client.start(a_dispatch(1, script, work_dir, ends_at=limit, grace_s=0.2, **ANN))
    (pid,) = pids_in(work_dir / "pid", 1)
    if end == "cancel":
        client.ask("stop", job=1, attempt=1, signal=15, grace_s=0.2)
    assert client.wait_end(1)["signal"] == 9
    assert not is_running(pid)


@pytest.mark.parametrize("how", ESCAPES)
def test_no_process_of_a_job_survives_its_killed_shim(
    home: RunnerHome, work_dir: Path, how: str
) -> None:
    client = home.client()
    script = f"#!/bin/bash\n{ESCAPES[how]}\necho $PPID > shim\nwhile :; do sleep 1; done\n"
    client.start(a_dispatch(1, script, work_dir, **ANN))
    (pid,) = pids_in(work_dir / "pid", 1)
    (shim,) = pids_in(work_dir / "shim", 1)
    assert not may_kill(ANN, shim)
    os.kill(shim, signal.SIGKILL)
    assert client.wait_end(1)["kind"] == "lost"
    assert not is_running(pid)


def test_a_process_that_outlives_runner_and_shim_is_found_by_its_cgroup(
    home: RunnerHome, work_dir: Path
) -> None:
    """Nothing else identifies its owner: no parent, no environment, no session."""
    client = home.client()
    script = f"#!/bin/bash\n{ESCAPES['empty environment']}\necho $PPID > shim\nexec sleep 1000\n"
    client.start(a_dispatch(1, script, work_dir, **ANN))
    (pid,) = pids_in(work_dir / "pid", 1)
    (shim,) = pids_in(work_dir / "shim", 1)
    if "/odc-" not in Path(f"/proc/{pid}/cgroup").read_text():
        pytest.skip("this machine has no cgroup v2 that root may write")
    home.kill()
    os.kill(shim, signal.SIGKILL)
    home.launch()
    assert home.client(term=2).wait_end(1)["kind"] == "lost"
    assert not is_running(pid)


PTRACE_SEIZE, O_TRACEEXIT = 0x4206, 0x40


def trace(pid: int, options: int, result_fd: int) -> None:
    """Attach, and never reap ended processes."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    done = libc.ptrace(PTRACE_SEIZE, pid, 0, options)
    os.write(result_fd, b"n" if done else b"y")
    while True:
        signal.pause()


@pytest.mark.parametrize("options", [0, O_TRACEEXIT])
def test_a_tracer_outside_the_job_does_not_keep_its_gpus(
    home: RunnerHome, work_dir: Path, options: int
) -> None:
    """A traced process stays a zombie until its tracer reaps it: possibly forever."""
    client = home.client()
    script = "#!/bin/sh\necho $$ > pid\nexec sleep 1000\n"
    client.start(a_dispatch(1, script, work_dir, **ANN))
    (pid,) = pids_in(work_dir / "pid", 1)
    until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
    reading, writing = os.pipe()
    with as_user(ANN, lambda: trace(pid, options, writing)):
        if os.read(reading, 1) != b"y":
            pytest.skip("this machine allows no tracing of one's own processes")
        client.ask("stop", job=1, attempt=1, signal=15, grace_s=0.2)
        end = client.wait_end(1)
        assert end["kind"] == "exited"
        assert end["signal"] in (9, 15)
        assert not is_running(pid)
    os.close(reading)
    os.close(writing)
    client.start(a_dispatch(2, "#!/bin/sh\nexit 4\n", work_dir, **ANN))
    assert client.wait_end(2)["exit_code"] == 4


def test_a_process_whose_main_thread_exited_is_killed_too(home: RunnerHome, work_dir: Path) -> None:
    """It looks like a zombie, and still runs."""
    script = (
        PYTHON
        + """
import ctypes, os, signal, sys, threading, time
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
def go_on():
    while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    with open("pid", "w") as file:
        print(os.getpid(), file=file)
    while True:
        time.sleep(0.1)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
"""
    )
    client = home.client()
    client.start(a_dispatch(1, script, work_dir, **ANN))
    (pid,) = pids_in(work_dir / "pid", 1)
    threads = Path(f"/proc/{pid}/task")
    assert len(list(threads.iterdir())) > 1
    client.ask("stop", job=1, attempt=1, signal=15, grace_s=0.2)
    client.wait_end(1)
    until(lambda: not threads.exists() or len(list(threads.iterdir())) <= 1)


def test_a_stopped_copy_of_the_shim_ends_at_cancel(home: RunnerHome, work_dir: Path) -> None:
    """Its user may stop it between the change of user and exec."""
    with as_user(ANN, lambda: signal_all_shims(signal.SIGSTOP, once=True)):
        client = home.client()
        jobs = range(1, 21)
        limit = time.time() + 2
        client.start(
            *(
                a_dispatch(job, "#!/bin/sh\nexit 0\n", work_dir, ends_at=limit, grace_s=0.2, **ANN)
                for job in jobs
            )
        )
        for job in jobs:
            client.wait_end(job)


def test_another_user_can_neither_signal_nor_read_a_job(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    script = "#!/bin/sh\necho $$ > pid\nwhile :; do sleep 1; done\n"
    client.start(a_dispatch(1, script, work_dir, **ANN))
    (pid,) = pids_in(work_dir / "pid", 1)
    assert not may_kill(BOB, pid)
    client.ask("stop", job=1, attempt=1, signal=9, grace_s=0)
    assert client.wait_end(1)["signal"] == 9


def test_a_users_own_runner_ends_jobs_that_killed_their_shim(folder: Path) -> None:
    """The user's own runner starts the shim there; remaining processes become children of the
    runner."""
    nobody = account("nobody")
    work_dir = folder_of(nobody, folder / "theirs")
    home = RunnerHome(work_dir / "runner")
    pid = forked_runner(home.run_dir, account=nobody)
    client = home.client()
    script = (
        "#!/bin/bash\nsetsid env -i /bin/sh -c 'echo $$ > pid; while :; do /bin/sleep 1; done' &\n"
        "while [ ! -s pid ]; do sleep 0.01; done\nkill -9 $PPID\nexec sleep 1000\n"
    )
    client.start(a_dispatch(1, script, work_dir, **ids_of(nobody)))
    assert client.wait_end(1)["kind"] == "lost"
    (left,) = pids_in(work_dir / "pid", 1)
    assert not is_running(left)
    client.ask("quit")
    client.close()
    until(lambda: not is_running(pid))
    os.waitpid(pid, 0)


def test_malformed_requests_fill_no_log_and_end_their_connection(home: RunnerHome) -> None:
    """Before: each left a traceback, and the lines of the starts were rotated away."""
    log = home.run_dir / "runner.log"
    size = log.stat().st_size
    bad: list[dict[str, Any]] = [
        {"op": "state", "job": "x"},
        {"op": "open_output", "uid": "x"},
        {"op": "open_output", "uid": float("inf")},
        {"op": "hello", "versions": [1], "term": "x"},
        {"op": "start", "texts": 5},
    ]
    for turn in range(MAX_LIMITED // MAX_MALFORMED + 3):
        client = home.client()
        for number in range(MAX_MALFORMED):
            with pytest.raises((RequestRefused, ConnectionError), match=r"malformed|closed"):
                client.ask(**bad[number % len(bad)])
        with pytest.raises(ConnectionError):
            client.ask("list")
        client.close()
        assert turn > 0 or log.read_text().count("request.bad") == MAX_MALFORMED
    text = log.read_text()
    assert text.count("request.bad") == MAX_LIMITED
    assert "Traceback" not in text
    assert log.stat().st_size - size < 100_000
