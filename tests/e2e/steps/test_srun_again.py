"""Job steps with a real daemon: repeated requests, requeued jobs, a daemon that is away, and what
one user could do to others."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from odcctl.remote.exchange import exchange
from odcctl.remote.program import frames
from odcd.home.lock import holder
from tests.support.harness.daemon import Odc, gone, kill, wait
from tests.support.harness.slurm import NODES, TIMEOUT_S, Slurm, written

pytestmark = pytest.mark.long


def end_daemon(odc: Odc) -> None:
    pid = odc.pid
    assert kill(pid)
    wait(lambda: gone(pid) and holder(odc.home / "odcd.lock") is None, lambda: "it lives on")


# -- repeated requests --------------------------------------------------------------------------


def test_a_repeated_srun_gets_the_exit_code_although_its_job_is_over(
    slurm: Slurm, tmp_path: Path
) -> None:
    """Before: when the connection broke after the release of its nodes, srun exited with 1."""
    body = json.dumps({
        "argv": ["-n1", "sh", "-c", f"echo ran >> {tmp_path}/runs; exit 7"],
        "work_dir": str(tmp_path), "environment": {"PATH": "/usr/bin:/bin"},
    }).encode()  # fmt: skip
    socket = str(slurm.odc.home / "odcd.sock")
    codes: list[bytes] = []
    for _ in range(2):
        answer = frames(exchange([socket], "srun", body, "the same key"))
        codes += [content for kind, content in answer if kind == b"x"]
    assert codes == [b"7", b"7"]
    assert (tmp_path / "runs").read_text() == "ran\n"


# -- one step of one job ------------------------------------------------------------------------


def test_scancel_of_a_step_of_an_arrays_task_ends_only_the_step(
    slurm: Slurm, tmp_path: Path
) -> None:
    """Before: it ended the whole task."""
    slurm.hold("--array=3", "-N1", "-c4")
    step = slurm.start("srun", "-n1", "sh", "-c", f"echo up > {tmp_path}/up; exec sleep 1000")
    written(tmp_path / "up")
    assert slurm.run("scancel", f"{slurm.job_id}_3.0").returncode == 0
    step.communicate(timeout=TIMEOUT_S)
    assert step.returncode == 143
    assert slurm.odc.job(slurm.job_id or 0)["state"] == "RUNNING"


def test_sacct_shows_the_steps_of_the_last_start(two: Slurm) -> None:
    def steps() -> list[str]:
        rows = two.run("sacct", "-nP", "-j", str(two.job_id), "-o", "JobID,State").stdout
        return [row for row in rows.splitlines() if row.split("|")[0].endswith(".0")]

    assert two.run("srun", "-n1", "false").returncode == 1
    assert steps() == [f"{two.job_id}.0|FAILED"]
    two.odc.odcctl("requeue", str(two.job_id))
    wait(
        lambda: (
            two.odc.job(two.job_id or 0)["restarts"] == 1
            and two.odc.job(two.job_id or 0)["state"] == "RUNNING"
        ),
        lambda: "it did not start again",
    )
    assert steps() == []
    assert two.run("srun", "-n1", "true").returncode == 0
    assert steps() == [f"{two.job_id}.0|COMPLETED"]


def test_names_of_steps_print_no_escapes(two: Slurm, tmp_path: Path) -> None:
    step = two.start("srun", "-n1", "-J", "a\x1b]0;b\nc", "sh", "-c",
                     f"echo up > {tmp_path}/up; exec sleep 1000")  # fmt: skip
    written(tmp_path / "up")
    for argv in (("squeue", "-s"), ("scontrol", "show", "step"), ("sacct", "-P")):
        out = two.run(*argv).stdout
        assert "a?]0;b?c" in out, out
        assert "\x1b" not in out
    step.terminate()
    step.communicate(timeout=TIMEOUT_S)


def test_tasks_know_the_tasks_of_their_node(two: Slurm) -> None:
    done = two.run("srun", "-n4", "-l", "sh", "-c", "echo $SLURM_GTIDS")
    assert sorted(done.stdout.splitlines()) == ["0: 0,1", "1: 0,1", "2: 2,3", "3: 2,3"]


# -- a daemon that is away ----------------------------------------------------------------------


def test_input_arrives_although_the_daemon_was_away(two: Slurm, tmp_path: Path) -> None:
    """Before: input that was sent meanwhile was lost, and its end never came."""
    step = two.start("srun", "-n1", "tee", f"{tmp_path}/copy", stdin=subprocess.PIPE)
    step.stdin.write("before\n")
    step.stdin.flush()
    assert written(tmp_path / "copy") == "before\n"
    end_daemon(two.odc)
    step.stdin.write("meanwhile\n")
    step.stdin.close()
    two.odc.up(*NODES)
    step.stdin = None
    out, err = step.communicate(timeout=TIMEOUT_S)
    assert (out, step.returncode) == ("before\nmeanwhile\n", 0), err


def test_salloc_releases_its_nodes_although_the_daemon_was_away(
    slurm: Slurm, tmp_path: Path
) -> None:
    """Before: it printed an error, and the job never ended."""
    alloc = slurm.start("salloc", "-n1", "-J", "away", "sh", "-c",
                        f"echo up > {tmp_path}/up; until [ -e {tmp_path}/flag ]; do sleep 0.02; "
                        "done; exit 4")  # fmt: skip
    written(tmp_path / "up")
    [row] = slurm.odc.rows("select id from odc.job where name = 'away'")
    end_daemon(slurm.odc)
    (tmp_path / "flag").touch()
    slurm.odc.up(*NODES)
    _, err = alloc.communicate(timeout=TIMEOUT_S)
    assert alloc.returncode == 4, err
    assert slurm.odc.wait_for(row["id"], "FAILED")["exit_code"] == 4


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (["srun", "-n", "²", "true"], 'srun: error: Invalid numeric value "²" for --ntasks.'),
        (["srun", "-W", "9" * 5000, "true"], "srun: error: Invalid numeric value"),
        (["srun", "--jobid=²", "true"], "srun: error: Unable to confirm allocation for job ²"),
        (["srun", f"--jobid={'9' * 19}", "true"], "srun: error: Unable to confirm allocation"),
        (["srun", "-O", "--ntasks-per-node=1000000", "true"], "srun: error: 1000000 tasks are too"),
        (["srun", "-O", "--ntasks-per-node=10000", "true"],
         "srun: error: Unable to create step for job JOB: a step has at most 10000 tasks"),
        (["srun", "-O", "-n1", f"--cpu-bind=mask_cpu:0x{'f' * 60_000}", "true"],
         'srun: error: "mask_cpu'),
        (["sattach", "².0"], "sattach: error: Invalid job step id"),
        (["scontrol", "show", "step", "²"], "slurm_get_job_steps error: Invalid job id specified"),
        (["sacct", "-S", "now-999999999weeks"], "sacct: error: Invalid time specification"),
    ],
)  # fmt: skip
def test_what_int_does_not_read_is_refused(two: Slurm, argv: list[str], error: str) -> None:
    done = two.run(*argv)
    assert done.returncode == 1
    assert done.stderr.startswith(error.replace("JOB", str(two.job_id))), done.stderr


def test_a_token_that_no_srun_had_is_refused(two: Slurm) -> None:
    socket = str(two.odc.home / "odcd.sock")
    for number, token in enumerate(('{"at":-1}', '{"at":Infinity}', "[" * 100_000,
                                    '{"at":0,"partial":{"x":"y"}}')):  # fmt: skip
        body = json.dumps({
            "argv": ["-n1", "true"], "work_dir": "/", "token": token,
            "environment": {"SLURM_JOB_ID": str(two.job_id), "PATH": "/usr/bin:/bin"},
        }).encode()  # fmt: skip
        found = list(frames(exchange([socket], "srun", body, f"token {number}")))
        assert (b"x", b"1") in found, token
        assert any(b"token of the connection is not valid" in text for _, text in found)


def test_a_long_key_is_refused(two: Slurm) -> None:
    body = json.dumps({
        "argv": ["-n1", "true"], "work_dir": "/",
        "environment": {"SLURM_JOB_ID": str(two.job_id), "PATH": "/usr/bin:/bin"},
    }).encode()  # fmt: skip
    for command in ("srun", "salloc"):
        for key in ("", "k" * 201, "k" * 4000):
            answer = exchange([str(two.odc.home / "odcd.sock")], command, body, key)
            found = list(frames(answer))
            assert found[-1] == (b"x", b"1")
            assert b"Idempotency-Key of 1 to 200 characters" in found[0][1]
    assert two.steps() == []
