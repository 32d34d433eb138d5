"""A job whose script cannot report its end has a line about it in its output."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from odcd.runner import record
from odcd.runner.last_words import append, last_words
from tests.support.harness.runner import RunnerHome, a_dispatch, a_file, a_part, until

LIMIT = re.compile(
    r"slurmstepd: error: \*\*\* JOB 7 ON n1 CANCELLED AT 2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d "
    r"DUE TO TIME LIMIT \*\*\*\n"
)
WAITS = "#!/bin/sh\necho up\nexec sleep 1000\n"


def _run_into_its_limit(home: RunnerHome, seen: Path, dispatch: dict[str, Any]) -> None:
    client = home.client()
    dispatch["env"] = {"ODC_JOB_ID": "7", "ODC_NODE": "n1", "ODC_RANK": "0"}
    client.start(dispatch)
    until(lambda: seen.exists() and seen.read_text() == "up\n")
    client.ask("set_end", job=7, attempt=1, ends_at=time.time())
    assert client.wait_end(7)["cause"] == "timeout"


def test_the_time_limit_is_a_line_of_the_output(home: RunnerHome, work_dir: Path) -> None:
    dispatch = a_dispatch(7, WAITS, work_dir, ends_at=time.time() + 1000)
    _run_into_its_limit(home, work_dir / "out", dispatch)
    first, line = (work_dir / "out").read_text().splitlines(keepends=True)
    assert first == "up\n"
    assert LIMIT.fullmatch(line)


def test_the_line_goes_to_the_separate_file_of_standard_error(
    home: RunnerHome, work_dir: Path
) -> None:
    part = a_part(0, work_dir, stderr=a_file(work_dir / "err"))
    dispatch = a_dispatch(7, WAITS, work_dir, ends_at=time.time() + 1000, members=[part])
    _run_into_its_limit(home, work_dir / "out", dispatch)
    assert (work_dir / "out").read_text() == "up\n"
    assert LIMIT.fullmatch((work_dir / "err").read_text())


def test_the_line_is_in_output_that_odc_keeps(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    dispatch = a_dispatch(7, WAITS, work_dir, ends_at=time.time() + 1000, spool=True)
    dispatch["env"] = {"ODC_JOB_ID": "7", "ODC_NODE": "n1", "ODC_RANK": "0"}
    client.start(dispatch)
    client.wait_for(7, "started")
    client.ask("set_end", job=7, attempt=1, ends_at=time.time())
    client.wait_end(7)
    _, fds = client.ask_with_fd("open_output", spool="err", uid=os.geteuid(), gid=os.getegid(),
                                job=7, attempt=1, rank=0)  # fmt: skip
    with os.fdopen(fds[0]) as kept:
        assert LIMIT.fullmatch(kept.read())


@pytest.fixture
def no_control(tmp_path: Path) -> int:
    return record.create(tmp_path / "7-1-0", {"at": 0})


@pytest.mark.parametrize(
    ("status", "kills", "rank", "line"),
    [
        (9, 1, "0", "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch. "
                    "The job was out of memory."),
        (256, 2, "0", "slurmstepd: error: Detected 2 oom_kill events in StepId=7.batch. "
                      "The job was out of memory."),
        (0, 1, "0", None),
        (9, 0, "0", None),
        (9, 1, "1", None),
    ],
)  # fmt: skip
def test_a_lack_of_memory_is_a_line_of_the_output(
    no_control: int, status: int, kills: int, rank: str, line: str | None
) -> None:
    order = {"terminal": None, "env": {"ODC_JOB_ID": "7", "ODC_RANK": rank}}
    assert last_words(order, no_control, status, kills) == line


def test_no_file_is_made_for_the_line(tmp_path: Path) -> None:
    path = tmp_path / "gone"
    order = {"switch_user": False, "work_dir": str(tmp_path), "stdout": {"path": str(path)},
             "stderr": None}  # fmt: skip
    append(order, "line")
    assert not path.exists()
    path.write_text("first\n")
    append(order, "line")
    assert path.read_text() == "first\nline\n"
