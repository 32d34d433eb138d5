"""sbcast on the local executor: what it copies, and Slurm's words and exit codes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.harness.slurm import Slurm


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "from"
    path.write_bytes(os.urandom(3_000_000))
    path.chmod(0o751)
    os.utime(path, (1_000_000_000, 1_200_000_000))
    return path


def test_a_file_is_copied_with_its_mode_and_on_request_its_time(
    two: Slurm, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "to"
    done = two.run("sbcast", "-C", "-s", "1m", "-t60", str(source), str(target))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o751
    assert int(target.stat().st_mtime) != 1_200_000_000
    source.write_text("changed")
    os.utime(source, (1_000_000_000, 1_200_000_000))
    assert two.run("sbcast", "-fp", str(source), "to").returncode == 0
    assert (two.odc.work / "to").read_text() == "changed"
    assert int((two.odc.work / "to").stat().st_mtime) == 1_200_000_000
    done = two.run("sbcast", str(source), str(target), SBCAST_FORCE="1")
    assert (done.returncode, target.read_text()) == (0, "changed")


def test_problems_have_slurms_words_and_exit_codes(
    two: Slurm, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "there").write_text("old")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    of_node = "sbcast: error: REQUEST_FILE_BCAST(gpu1): "
    for argv, code, text in (
        ((source, f"{tmp_path}/there"), 17, f"{of_node}File exists\n"),
        ((source, f"{tmp_path}/no/file"), 2, f"{of_node}No such file or directory\n"),
        (("-f", source, f"{tmp_path}/folder"), 21, f"{of_node}Is a directory\n"),
        ((source, f"{tmp_path}/folder/"), 1,
         "sbcast: error: Target filename cannot be a directory.\n"),
        (("none", f"{tmp_path}/to"), 255,
         "sbcast: error: Can't open `none`: No such file or directory\n"),
        (("-j", "999999", source, f"{tmp_path}/to"), 255,
         "sbcast: error: Slurm job 999999 lookup error: Invalid job id specified\n"),
        ((source,), 1, 'Need two file names, have 1 names\nTry "sbcast --help" for more '
                       "information\n"),
        (("--send-libs", source, "/tmp/to"), 1, "sbcast: error: --send-libs is not supported: "
                                                "copy the libraries one by one\n"),
    ):  # fmt: skip
        done = two.run("sbcast", *map(str, argv))
        assert (done.returncode, done.stdout, done.stderr) == (code, "", text), argv
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "there").read_text() == "old"
    done = two.run("sbcast", str(source), f"{tmp_path}/to", SLURM_JOB_ID="")
    assert (done.returncode, done.stderr) == (
        1, "sbcast: error: Need a job id to run this command.  Run from within a Slurm job or use "
           "the --jobid option.\n",
    )  # fmt: skip
