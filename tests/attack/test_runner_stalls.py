"""No user can stop the root runner from starting, or from answering other users."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from odcd.executor.link import RunnerRefused as LinkRefused
from odcd.executor.link import open_output
from odcd.runner import notices, processes, protocol
from tests.attack.test_jobs import as_user
from tests.support.harness.database import make_home, remove_home
from tests.support.harness.runner import (
    Client,
    RequestRefused,
    RunnerHome,
    a_dispatch,
    forked_runner,
    until,
)
from tests.support.harness.users import needs_root

pytestmark = [needs_root, pytest.mark.long]

ANN = {"uid": 64101, "gid": 64101}


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


def test_no_user_can_lock_the_runners_lock(folder: Path) -> None:
    home = RunnerHome(folder / "runner")
    home.run_dir.mkdir(mode=0o711)
    lock = home.run_dir / protocol.LOCK_NAME
    lock.touch(0o644)
    home.launch()
    try:
        assert lock.stat().st_mode & 0o777 == 0o600
    finally:
        home.end()


def attach(client: Client) -> int | None:
    try:
        return client.ask_with_fd("attach", job=1, attempt=1, rank=0)[1][0]
    except RequestRefused:
        return None


def test_terminal_clients_that_never_read_block_no_other_user(
    home: RunnerHome, work_dir: Path
) -> None:
    script = (
        "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.02; done\nhead -c 2000000 /dev/zero\ntouch over\n"
    )
    client = home.client()
    client.start(a_dispatch(1, script, work_dir, pty=True, **ANN))
    attached = [until(lambda: attach(client)) for _ in range(20)]
    (work_dir / "go").touch()
    until(lambda: (work_dir / "over").exists())
    begun = time.monotonic()
    for _ in range(40):
        fd = attach(client)
        attached += [] if fd is None else [fd]
    assert client.wait_end(1)["exit_code"] == 0
    assert time.monotonic() - begun < 4.0
    for fd in attached:
        os.close(fd)


@pytest.mark.long
def test_stopping_the_process_that_opens_the_output_returns_an_error(
    home: RunnerHome, work_dir: Path
) -> None:
    (work_dir / "out").write_text("x")
    client = home.client(term=None)

    def stop(runner: int) -> None:
        while True:
            for process in processes.children(runner):
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGSTOP)

    def open_many() -> None:
        for _ in range(200):
            _, (fd,) = client.ask_with_fd("open_output", path=str(work_dir / "out"), **ANN)
            os.close(fd)

    runner = home.pid
    with (
        as_user(ANN, lambda: stop(runner)),
        pytest.raises(RequestRefused, match="could not be opened within 2 s"),
    ):
        open_many()
    until(lambda: not any(is_stopped(pid) for pid in processes.children(runner)))
    _, (fd,) = client.ask_with_fd("open_output", path=str(work_dir / "out"), **ANN)
    os.close(fd)


def test_a_stopped_notice_writer_process_is_removed(folder: Path, work_dir: Path) -> None:
    def change() -> None:
        notices.ANSWER_S = 0.5

    def stop(runner: int) -> None:
        while True:
            for process in processes.children(runner):
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGSTOP)

    home = RunnerHome(folder / "runner")
    home.run_dir.mkdir()
    pid = forked_runner(home.run_dir, change=change)
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nexec sleep 1000\n", work_dir, **ANN))
    client.wait_for(1, "started")
    before = set(processes.children(pid))
    notice = {"name": "notice", "text": "x", "remove": [], "wall": None}

    def held() -> bool:
        answer = client.ask("tell", job=1, attempt=1, **notice)
        return "no answer from the home folder" in "".join(answer["trouble"])

    with as_user(ANN, lambda: stop(pid)):
        until(held)
        until(lambda: set(processes.children(pid)) <= before)
    client.ask("stop", job=1, attempt=1, signal=9, grace_s=0)
    client.wait_end(1)
    client.close()
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)


def test_a_daemon_that_reads_output_does_not_wait_for_a_process_that_is_stopped(
    home: RunnerHome, work_dir: Path
) -> None:
    """The file comes past the runner, which would wait for its file system when it closes it."""
    (work_dir / "out").write_text("x")
    fields = {"path": str(work_dir / "out"), **ANN}
    runner = home.pid

    def stop() -> None:
        while True:
            for process in processes.children(runner):
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGSTOP)

    def open_many() -> None:
        for _ in range(200):
            os.close(open_output(home.run_dir, fields))

    with as_user(ANN, stop), pytest.raises(LinkRefused, match="could not be opened in time"):
        open_many()
    until(lambda: not any(is_stopped(pid) for pid in processes.children(runner)))
    os.close(open_output(home.run_dir, fields))
    with pytest.raises(LinkRefused, match="does not exist"):
        open_output(home.run_dir, {**fields, "path": str(work_dir / "none")})


def is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "\nState:\tT" in Path(f"/proc/{pid}/status").read_text()
    return False
