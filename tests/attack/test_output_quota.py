"""The output that odc keeps is limited, per job and in total, and no job hangs or fails because of
it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odcd.runner import keeping
from tests.support.harness.database import make_home, remove_home
from tests.support.harness.runner import (
    Client,
    RequestRefused,
    RunnerHome,
    a_dispatch,
    a_part,
    forked_runner,
    until,
)
from tests.support.harness.users import needs_root

pytestmark = [needs_root, pytest.mark.long]

ANN = {"uid": 64001, "gid": 64001}
BOB = {"uid": 64002, "gid": 64002}
GONE = b"odc: this output was deleted"
MIB = 1024 * 1024


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = make_home()
    yield folder
    remove_home(folder)


@pytest.fixture
def home(folder: Path) -> Iterator[RunnerHome]:
    home = RunnerHome(folder / "runner")
    home.launch(output_mib=1, output_total_mib=3)
    yield home
    home.end()


@pytest.fixture
def work_dir(folder: Path) -> Path:
    work_dir = folder / "work"
    work_dir.mkdir()
    os.chown(work_dir, ANN["uid"], ANN["gid"])
    return work_dir


def kept(client: Client, job: int, stream: str = "out", ids: dict[str, int] = ANN) -> bytes:
    _, (fd,) = client.ask_with_fd("open_output", job=job, attempt=1, rank=0, spool=stream, **ids)
    with os.fdopen(fd, "rb") as file:
        return file.read()


def run(client: Client, job: int, script: str, work_dir: Path, **changes: Any) -> dict[str, Any]:
    changes = ANN | changes
    client.start(a_dispatch(job, f"#!/bin/sh\n{script}\n", work_dir, spool=True, **changes))
    return client.wait_end(job)


def test_output_beyond_the_quota_is_dropped_and_the_job_goes_on(
    home: RunnerHome, work_dir: Path
) -> None:
    client = home.client()
    script = "head -c 30000000 /dev/zero; echo x >&2; touch went-on; exit 3"
    assert run(client, 1, script, work_dir)["exit_code"] == 3
    assert (work_dir / "went-on").exists()
    out, err = kept(client, 1), kept(client, 1, "err")
    assert len(out) < MIB + 1000
    assert b"\nodc: output limit of this job reached (1 MiB): further output is dropped" in out
    assert out.endswith(b" bytes dropped in all\n")
    assert len(out) + len(err) < MIB + 2000


def test_a_terminal_counts_too(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    script = "#!/bin/sh\nhead -c 3000000 /dev/zero\nexit 3\n"
    client.start(a_dispatch(1, script, work_dir, pty=True, **ANN))
    assert client.wait_end(1)["exit_code"] == 3
    assert len(kept(client, 1)) < MIB + 1000
    assert b"odc: output limit of this job reached" in kept(client, 1)


def test_a_user_cannot_reach_the_file_of_kept_output(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    output = home.run_dir / "output"
    script = f"ls -l /proc/self/fd/1; cat {output}/1-1-0.out; ls {output}; echo hi > /dev/stdout"
    run(client, 1, script, work_dir)
    out, err = kept(client, 1), kept(client, 1, "err")
    assert b"pipe:" in out
    assert out.endswith(b"hi\n")
    assert err.count(b"Permission denied") == 2
    with pytest.raises(RequestRefused, match="does not belong to user id 64002"):
        kept(client, 1, ids=BOB)


def test_a_job_does_not_get_its_kept_output_as_its_input(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    dispatches = [
        a_dispatch(
            job, "#!/bin/sh\necho past >> /proc/self/fd/0\n", work_dir, spool=True,
            members=[a_part(0, work_dir, stdin=f"/proc/self/fd/{job}")], **ANN,
        )
        for job in range(3, 40)
    ]  # fmt: skip
    client.start(*dispatches)
    for job in range(3, 40):
        client.wait_end(job)
        for stream in ("out", "err"):
            path = home.run_dir / "output" / f"{job}-1-0.{stream}"
            assert b"past" not in (path.read_bytes() if path.exists() else b""), job


def test_a_process_outside_the_job_that_keeps_its_pipe_holds_up_nothing(
    home: RunnerHome, work_dir: Path
) -> None:
    client = home.client()
    client.start(
        a_dispatch(
            1, "#!/bin/sh\necho $$ > pid\necho well\nwhile [ ! -e go ]; do sleep 0.05; done\n",
            work_dir, spool=True, **ANN,
        )
    )  # fmt: skip
    pid = until(lambda: (work_dir / "pid").exists() and (work_dir / "pid").read_text().strip())
    with Path(f"/proc/{pid}/fd/1").open("wb"):
        (work_dir / "go").touch()
        assert client.wait_end(1)["exit_code"] == 0
        assert kept(client, 1) == b"well\n"


def test_the_oldest_ended_output_goes_first(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    for job in range(1, 6):
        run(client, job, "head -c 900000 /dev/zero", work_dir)
        path = home.run_dir / "output" / f"{job}-1-0.out"
        os.utime(path, (job, job))

    def deleted() -> list[bool]:
        return [kept(client, job).startswith(GONE) for job in range(1, 6)]

    until(lambda: deleted() == [True, True, False, False, False])
    assert sum(path.stat().st_size for path in (home.run_dir / "output").iterdir()) < 3 * MIB


def test_ended_output_of_one_user_displaces_their_own(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    run(client, 1, "head -c 900000 /dev/zero", work_dir, **BOB)
    os.utime(home.run_dir / "output" / "1-1-0.out", (1, 1))
    for job in range(2, 8):
        run(client, job, "head -c 900000 /dev/zero", work_dir)
        os.utime(home.run_dir / "output" / f"{job}-1-0.out", (job, job))
    until(lambda: kept_bytes(home) < 3 * MIB)
    gone = [job for job in range(2, 8) if kept(client, job).startswith(GONE)]
    assert gone == [2, 3, 4, 5]
    assert kept(client, 1, ids=BOB) == bytes(900000)


def test_many_small_outputs_of_one_user_displace_their_own(folder: Path, work_dir: Path) -> None:
    def change() -> None:
        keeping.MAX_FILES = 10

    home = RunnerHome(folder / "runner")
    home.run_dir.mkdir()
    pid = forked_runner(home.run_dir, change=change)
    output = home.run_dir / "output"
    client = home.client()
    run(client, 1, "echo precious", work_dir, **BOB)
    for stream in ("out", "err"):
        os.utime(output / f"1-1-0.{stream}", (1, 1))
    for job in range(2, 10):
        run(client, job, "echo", work_dir)
    until(lambda: sum(1 for path in output.iterdir() if not path.name.startswith(".")) <= 10)
    assert kept(client, 1, ids=BOB) == b"precious\n"
    client.close()
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)


def test_running_jobs_of_one_user_leave_half_to_others(folder: Path, work_dir: Path) -> None:
    home = RunnerHome(folder / "runner")
    home.launch(output_mib=2, output_total_mib=4)
    try:
        client = home.client()
        run(client, 1, "head -c 1000000 /dev/zero", work_dir, **BOB)
        os.utime(home.run_dir / "output" / "1-1-0.out", (1, 1))
        for job in (2, 3, 4):
            client.start(a_dispatch(job, WRITES_AND_WAITS, work_dir, spool=True, **ANN))
            written(work_dir, job - 1)
            if job == 3:
                until(lambda: (home.run_dir / "output" / f".full-{ANN['uid']}").exists())
        run(client, 5, "head -c 1000000 /dev/zero", work_dir, **BOB)
        assert kept_bytes(home) < 6 * MIB
        for job in (1, 5):
            assert kept(client, job, ids=BOB) == bytes(1000000)
        (work_dir / "go").touch()
        for job in (2, 3, 4):
            assert client.wait_end(job)["exit_code"] == 0
        assert b"odc: output limit of your running jobs together reached" in kept(client, 4)
        until(lambda: not (home.run_dir / "output" / f".full-{ANN['uid']}").exists())
    finally:
        home.end()


WRITES_AND_WAITS = (
    "#!/bin/sh\nhead -c 1900000 /dev/zero\necho $$ >> written\n"
    "while [ ! -e go ]; do sleep 0.05; done\necho late\n"
)


def written(work_dir: Path, jobs: int) -> None:
    """Wait until this many jobs have written output."""
    path = work_dir / "written"
    until(lambda: path.exists() and len(path.read_text().split()) == jobs)


def kept_bytes(home: RunnerHome) -> int:
    return sum(path.stat().st_size for path in (home.run_dir / "output").iterdir())


@pytest.mark.long
def test_running_jobs_reach_the_limit_of_all_together(folder: Path, work_dir: Path) -> None:
    home = RunnerHome(folder / "runner")
    home.launch(output_mib=2, output_total_mib=3)
    work_dir.chmod(0o777)
    users = {1: ANN, 2: BOB, 3: {"uid": 64003, "gid": 64003}}
    try:
        client = home.client()
        for job, ids in users.items():
            client.start(a_dispatch(job, WRITES_AND_WAITS, work_dir, spool=True, umask=0, **ids))
        written(work_dir, 3)
        until(lambda: (home.run_dir / "output" / ".full").exists())
        (work_dir / "go").touch()
        for job in users:
            assert client.wait_end(job)["exit_code"] == 0
        # After their end they can be deleted, which frees space.
        until(lambda: not (home.run_dir / "output" / ".full").exists())
        notice = b"odc: output limit of all jobs together reached"
        assert any(notice in kept(client, job, ids=ids) for job, ids in users.items())
    finally:
        home.end()
