"""sbcast to pods, from outside and in the script of a job."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests.support.harness.pod_steps import Steps

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("installed")]


def test_each_pod_gets_the_file_with_its_mode_and_time(four: Steps, tmp_path: Path) -> None:
    """In more than one piece, and with bytes that are no text."""
    source = tmp_path / "from"
    source.write_bytes(os.urandom(3_000_000))
    source.chmod(0o750)
    os.utime(source, (1_000_000_000, 1_200_000_000))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    done = four.run("sbcast", "-p", str(source), "/tmp/it's here")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for n in range(4):
        seen = four.in_pod(n, "sha256sum </tmp/it\\'s\\ here; stat -c '%a %Y' /tmp/it\\'s\\ here")
        assert seen.split() == [digest, "-", "750", "1200000000"]
        assert ".sbcast" not in four.in_pod(n, "ls -a /tmp")
    source.write_text("")
    assert four.run("sbcast", "-f", str(source), "/tmp/it's here").returncode == 0
    assert four.in_pod(3, "wc -c </tmp/it\\'s\\ here").strip() == "0"


def test_problems_have_slurms_words_and_exit_codes(four: Steps, tmp_path: Path) -> None:
    source = tmp_path / "from"
    source.write_text("data")
    four.in_pod(2, "echo old >/tmp/there")
    for argv, code, why, ranks in (
        (("/tmp/there",), 17, "File exists", (2,)),
        (("/no/file",), 2, "No such file or directory", range(4)),
        (("-f", "/tmp"), 21, "Is a directory", range(4)),
    ):
        done = four.run("sbcast", str(source), *argv)
        assert (done.returncode, done.stdout) == (code, "")
        assert sorted(done.stderr.splitlines()) == [
            f"sbcast: error: REQUEST_FILE_BCAST({four.pod(n)}): {why}" for n in ranks
        ]
    assert four.in_pod(2, "cat /tmp/there") == "old\n"
    done = four.run("sbcast", "none", "/tmp/to")
    assert (done.returncode, done.stderr) == (
        255, "sbcast: error: Can't open `none`: No such file or directory\n",
    )  # fmt: skip
    done = four.run("sbcast", str(source), "/tmp/to", SLURM_JOB_ID="999999")
    assert (done.returncode, done.stderr) == (
        255, "sbcast: error: Slurm job 999999 lookup error: Invalid job id specified\n",
    )  # fmt: skip


def test_a_script_copies_from_its_pod_to_all(four: Steps) -> None:
    job = four.stack.submit(
        "-N2", "--ntasks-per-node=1", "-c1",
        script="cd /tmp; seq 100000 >data; chmod 600 data\nsbcast data copy; echo code $?\n"
               "sbcast none copy; echo code $?\nsbcast -C data copy; echo code $?\n"
               "srun -l --ntasks-per-node=1 sh -c 'wc -l <copy; stat -c %a copy'\n"
               "srun -n1 -N1 wc -l <data\n",
    )  # fmt: skip
    four.stack.end(job)
    lines = four.stack("logs", str(job)).splitlines()
    hosts = [f"odc-{job}-1-{n}" for n in range(2)]
    assert lines[:3] == [
        "code 0", "sbcast: error: Can't open `none`: No such file or directory", "code 255",
    ]  # fmt: skip
    assert sorted(lines[3:5]) == [
        f"sbcast: error: REQUEST_FILE_BCAST({host}): File exists" for host in hosts
    ]
    assert lines[5] == "code 17"
    assert sorted(line.split() for line in lines[6:10]) == [
        [f"{n}:", word] for n in range(2) for word in ("100000", "600")
    ]
    # Before: pieces of a long input changed places, and srun waited forever.
    assert lines[10:] == ["100000"]
