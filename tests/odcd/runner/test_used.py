"""What a member's processes used is part of its end."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from odcd.runner.used import Used
from tests.support.harness.runner import RunnerHome, a_dispatch

WORKS = """
import os, time
blocks = bytearray(150 * 2**20)
until = time.process_time() + 0.3
while time.process_time() < until:
    pass
with open("file", "wb") as file:
    file.write(blocks[: 4 * 2**20])
    os.fsync(file.fileno())
open("done", "w").close()
"""


def test_what_all_processes_used_is_reported_with_the_end(home: RunnerHome, work_dir: Path) -> None:
    (work_dir / "works.py").write_text(WORKS)
    # One in the foreground, and one that only the shim can wait for.
    works = f"{sys.executable} works.py"
    script = f"#!/bin/sh\n{works}\nrm done\n({works} &)\nuntil [ -e done ]; do sleep 0.05; done\n"
    client = home.client()
    client.start(a_dispatch(1, script, work_dir))
    user_ms, system_ms, rss_kib, _read, written_kib = client.wait_end(1)["used"]
    assert user_ms + system_ms >= 600
    assert 150 * 1024 <= rss_kib < 300 * 1024, "of the largest process, not the sum"
    assert written_kib >= 0


def test_a_member_does_not_inherit_what_the_last_one_of_its_shim_used(
    home: RunnerHome, work_dir: Path
) -> None:
    (work_dir / "works.py").write_text(WORKS)
    client = home.client()
    client.start(a_dispatch(1, f"#!/bin/sh\nexec {sys.executable} works.py\n", work_dir))
    client.wait_end(1)
    client.start(a_dispatch(2, "#!/bin/sh\nexit 0\n", work_dir))
    user_ms, system_ms, rss_kib, *_ = client.wait_end(2)["used"]
    assert user_ms + system_ms < 300
    assert rss_kib < 150 * 1024


def test_a_member_that_never_ran_used_nothing_that_is_known(
    home: RunnerHome, work_dir: Path
) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/no/such/interpreter\n", work_dir))
    end = client.wait_end(1)
    assert (end["kind"], "used" in end) == ("start_failed", False)


def test_numbers_are_sums_and_the_largest_resident_set() -> None:
    used = Used()
    for rss, read in ((70, 3), (50, 4)):
        numbers = [0.0] * 16
        numbers[0], numbers[1], numbers[2], numbers[9], numbers[10] = 1.25, 0.5, rss, read, 2
        used.add(resource.struct_rusage(numbers))
    assert used.numbers() == [2500, 1000, 70, 4, 2]
