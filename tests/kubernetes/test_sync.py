"""odcctl run --sync: the files of a folder in pods, and the results back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.harness.daemon import wait
from tests.support.harness.kube import Kube
from tests.support.harness.pod_steps import TIMEOUT_S
from tests.support.harness.stacks import Stack

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("installed")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "in.txt").write_text("in\n")
    (made / "large").write_bytes(bytes(range(256)) * 8192)
    return made


def run(stack: Stack, folder: Path, *argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "odcctl", "run", "--sync", str(folder), "-c1", "--mem=1G", *argv],
        env=stack.odc.environment, cwd=stack.odc.work, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_a_pod_gets_the_files_and_changes_come_back(steps_stack: Stack, folder: Path) -> None:
    (folder / "two\nlines").write_text("x")
    (folder / ".gitignore").write_text("ignored\n")
    (folder / "ignored").write_text("x")
    script = "ls -a; cat in.txt; echo out >>in.txt; mkdir a; cat large large >a/copy; exit 7"
    process = run(steps_stack, folder, "sh", "-c", script)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 7, out + err + steps_stack.log()
    assert out == ".\n..\n.gitignore\nin.txt\nlarge\ntwo\nlines\nin\n"
    assert (folder / "in.txt").read_text() == "in\nout\n"
    assert (folder / "a/copy").read_bytes() == 2 * (folder / "large").read_bytes()
    assert "4 files" in err
    assert "2 files" in err


def test_each_pod_has_a_copy_and_the_results_of_the_first_come_back(
    steps_stack: Stack, folder: Path
) -> None:
    process = run(
        steps_stack, folder, "-N2", "sh", "-c",
        'sha256sum <large; echo "$ODC_RANK" >in.txt; echo "$ODC_RANK" >"$ODC_RANK"',
    )  # fmt: skip
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, out + err + steps_stack.log()
    assert len({line.split(": ")[-1] for line in out.splitlines()}) == 1
    assert len(out.splitlines()) == 2
    assert (folder / "in.txt").read_text() == "0\n"
    assert not (folder / "1").exists()


def test_results_are_fetched_later_and_by_another_daemon(
    steps_stack: Stack, folder: Path, odcd: Kube
) -> None:
    script = "echo out >out; echo begun; until [ -e /tmp/go ]; do sleep 0.2; done; exit 3"
    process = run(steps_stack, folder, "sh", "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.kill()
    process.communicate()
    [job] = [one["id"] for one in steps_stack.json("queue")["jobs"] if one["name"] == "sh"]
    later = subprocess.Popen(
        [sys.executable, "-m", "odcctl", "sync", str(job)], env=steps_stack.odc.environment,
        cwd=steps_stack.odc.work, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    # The first client had one to send the files, and one for the results.
    query = f"select count(*) from odc.step where job_id = {job} and step = 2"
    wait(lambda: steps_stack.value(query), steps_stack.log)
    steps_stack.kill()
    steps_stack.start()
    odcd.do("exec", "-n", "gpu-batch", f"odc-{job}-1-0", "--", "touch", "/tmp/go")
    out, err = later.communicate(timeout=TIMEOUT_S)
    assert later.returncode == 0, out + err + steps_stack.log()
    assert (folder / "out").read_text() == "out\n"
    assert steps_stack.end(job)["exit_code"] == 3
