"""Task prologs and epilogs of batch scripts: as the job's user, around the script."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from odcd.runner import processes
from odcd.runner.hooks.task import changes
from tests.support.harness.runner import RunnerHome, a_dispatch, a_file, a_part

JOB = '#!/bin/sh\necho "job $A $B ${C-unset}" >> out\n'


def hook(folder: Path, kind: str, body: str) -> dict[str, Any]:
    path = folder / f"hook-{kind}"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return {kind: str(path)}


def run(home: RunnerHome, work_dir: Path, script: str = JOB, **changes: Any) -> dict[str, Any]:
    client = home.client()
    fields = {"environment_text": '{"PATH": "/usr/bin:/bin", "C": "given"}'} | changes
    client.start(a_dispatch(1, script, work_dir, **fields))
    return client.wait_end(1)


@pytest.fixture
def quiet(tmp_path: Path) -> Any:
    home = RunnerHome(tmp_path / "runner")
    yield home
    home.end()


def test_the_task_prolog_changes_the_scripts_environment_and_its_output(
    quiet: RunnerHome, work_dir: Path
) -> None:
    body = 'echo export A=1 = 2; echo unset C; echo "print hello  you"; echo ignored; pwd > at'
    quiet.launch(**hook(work_dir, "task_prolog", body))
    assert run(quiet, work_dir)["exit_code"] == 0
    assert (work_dir / "out").read_text() == "hello  you\njob 1 = 2  unset\n"
    assert (work_dir / "at").read_text() == f"{work_dir}\n"


def test_a_task_prolog_cannot_hide_the_job_from_the_runner() -> None:
    env = {processes.MARK: "mine", "A": "1"}
    output = f"unset {processes.MARK}\nexport {processes.MARK}=x\nexport A-B=1\nexport A\n"
    assert changes(output, env) == ("", env)


@pytest.mark.parametrize(
    ("body", "limit_s", "why"),
    [
        ("exit 7", 60.0, "exit code 7"),
        ("sleep 1000", 1.0, "did not end within 1 s"),
        ("kill -SEGV $$", 60.0, "ended by signal 11"),
        ("head -c 1000000000 /dev/zero", 60.0, "the task prolog printed more than 64 KiB"),
    ],
)
def test_a_failed_task_prolog_fails_the_job_with_its_reason(
    quiet: RunnerHome, work_dir: Path, body: str, limit_s: float, why: str
) -> None:
    quiet.launch(**hook(work_dir, "task_prolog", body), task_prolog_timeout_s=limit_s)
    end = run(quiet, work_dir)
    assert (end["kind"], end["cause"]) == ("start_failed", "unknown")
    assert why in end["detail"]
    assert "drains" not in end


def test_the_task_epilog_runs_after_the_script_and_changes_no_exit_code(
    quiet: RunnerHome, work_dir: Path
) -> None:
    body = 'echo "epilog $C $SLURM_SCRIPT_CONTEXT" >> out; exit 9'
    quiet.launch(**hook(work_dir, "task_epilog", body))
    assert run(quiet, work_dir, f"{JOB}exit 3\n")["exit_code"] == 3
    assert (work_dir / "out").read_text().splitlines() == [
        "job   given",
        "epilog given epilog_task",
        "slurmstepd: error: the task epilog failed: exit code 9",
    ]


def test_a_task_epilog_that_hangs_is_killed(quiet: RunnerHome, work_dir: Path) -> None:
    rules = hook(work_dir, "task_epilog", "trap '' TERM; sleep 1000")
    quiet.launch(**rules, task_epilog_timeout_s=0.5)
    assert run(quiet, work_dir)["exit_code"] == 0
    assert "did not end within 0.5 s" in (work_dir / "out").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to run jobs of another user")
def test_task_hooks_run_as_the_jobs_user(open_folder: Path, nobody: pwd.struct_passwd) -> None:
    work = open_folder / "work"
    work.mkdir()
    os.chown(work, nobody.pw_uid, nobody.pw_gid)
    rules = hook(open_folder, "task_prolog", "echo print $(id -u)")
    rules |= hook(open_folder, "task_epilog", "id -u >> epilog")
    home = RunnerHome(open_folder / "runner")
    home.launch(**rules)
    try:
        part = a_part(0, work, stdout=a_file(work / "out"))
        run(home, work, "#!/bin/sh\n", uid=nobody.pw_uid, gid=nobody.pw_gid, members=[part])
    finally:
        home.end()
    assert (work / "out").read_text() == f"{nobody.pw_uid}\n"
    assert (work / "epilog").read_text() == f"{nobody.pw_uid}\n"
