"""A full disk refuses starts with the reason; accepted jobs and their exits survive it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from odcd.runner.log import MAX_BYTES, Log
from tests.support.harness.runner import RunnerHome, a_dispatch, a_file, a_part, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def small_home(small_disk: Path) -> Iterator[RunnerHome]:
    home = RunnerHome(small_disk / "runner")
    home.launch()
    yield home
    home.end()


def _fill(folder: Path) -> Path:
    path = folder / "filler"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    return path


WAITS = "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.02; done\nexit 9\n"


def test_exits_survive_and_starts_are_refused(
    small_home: RunnerHome, small_disk: Path, work_dir: Path
) -> None:
    client = small_home.client()
    client.start(a_dispatch(1, WAITS, work_dir), a_dispatch(2, WAITS, work_dir))
    client.wait_for(1, "started"), client.wait_for(2, "started")
    filler = _fill(small_disk)
    client.start(a_dispatch(3, WAITS + "# of another text\n", work_dir))
    refused = client.wait_end(3)
    assert (refused["kind"], refused["cause"]) == ("start_failed", "launch")
    assert "no space left" in refused["detail"]
    (work_dir / "go").touch()
    assert client.wait_end(1)["exit_code"] == 9
    small_home.kill()
    small_home.launch()
    client = small_home.client(term=2)
    assert client.wait_end(1)["exit_code"] == client.wait_end(2)["exit_code"] == 9
    client.acknowledge(*client.facts)
    filler.unlink()
    client.start(a_dispatch(4, WAITS, work_dir))
    assert client.wait_end(4)["exit_code"] == 9


def test_a_job_whose_output_finds_no_space_gets_an_error(
    home: RunnerHome, small_disk: Path, work_dir: Path
) -> None:
    script = "#!/bin/sh\nhead -c 8000000 /dev/zero || exit 5\n"
    client = home.client()
    members = [a_part(0, work_dir, stdout=a_file(small_disk / "out"), stderr=a_file("/dev/null"))]
    client.start(a_dispatch(1, script, work_dir, members=members))
    assert client.wait_end(1)["exit_code"] == 5


def test_the_log_drops_lines_and_reports_that_when_it_can_write_again(small_disk: Path) -> None:
    path = small_disk / "runner.log"
    pid = os.fork()
    if pid == 0:
        log = Log(path)
        log.info("before")
        filler = _fill(small_disk)
        for _ in range(300):
            log.info("lost", text="x" * 100)
        filler.unlink()
        log.info("after")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    lines = path.read_text().splitlines()
    assert lines[0].endswith("INFO before")
    assert "INFO after dropped_lines=" in lines[-1]


def test_the_log_is_rotated_before_it_grows_without_limit(tmp_path: Path) -> None:
    path = tmp_path / "runner.log"
    pid = os.fork()
    if pid == 0:
        log = Log(path)
        for _ in range(MAX_BYTES // 100_000 + 2):
            log.info("fat", text="x" * 100_000)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    until(path.exists)
    assert path.stat().st_size < MAX_BYTES < path.with_suffix(".log.1").stat().st_size + 200_000
