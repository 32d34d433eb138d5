"""Job steps with a real daemon: several at once, how they end, failures of odc, bad input."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from odcd.home.lock import holder
from tests.support.harness.daemon import gone, kill, wait
from tests.support.harness.slurm import NODES, TIMEOUT_S, Slurm, written

pytestmark = pytest.mark.long


# -- several steps ----------------------------------------------------------------------------


def test_a_second_step_waits_unless_it_shares(two: Slurm, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    script = f"echo up > {tmp_path}/$SLURM_PROCID; until [ -e {flag} ]; do sleep 0.02; done"
    first = two.start("srun", "-n2", "sh", "-c", script)
    written(tmp_path / "0")
    shares = two.run("srun", "--overlap", "-n1", "echo", "shares")
    assert (shares.stdout, shares.stderr) == ("shares\n", "")
    waits = two.start("srun", "-n1", "echo", "waited")
    assert "step creation temporarily disabled, retrying (Requested nodes are busy)" in (
        waits.stderr.readline()
    )
    assert waits.poll() is None
    flag.touch()
    out, _ = waits.communicate(timeout=TIMEOUT_S)
    assert (out, waits.returncode) == ("waited\n", 0)
    first.communicate(timeout=TIMEOUT_S)
    assert first.returncode == 0


def test_exact_steps_run_side_by_side(two: Slurm, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    script = f"echo up > {tmp_path}/$SLURM_STEP_ID; until [ -e {flag} ]; do sleep 0.02; done"
    steps = [two.start("srun", "--exact", "-n1", "-c2", "sh", "-c", script) for _ in range(4)]
    for number in range(4):
        written(tmp_path / str(number))
    flag.touch()
    for step in steps:
        _, err = step.communicate(timeout=TIMEOUT_S)
        assert (step.returncode, err) == (0, "")


def test_lists_show_steps_and_scancel_ends_one(two: Slurm, tmp_path: Path) -> None:
    job_id = two.job_id
    assert two.run("srun", "-n1", "sh", "-c", "kill -9 $$").returncode == 137
    step = two.start("srun", "-n2", "-J", "long", "sh", "-c",
                     f"echo up > {tmp_path}/$SLURM_PROCID; exec sleep 1000")  # fmt: skip
    for number in range(2):
        written(tmp_path / str(number))
    listed = two.run("squeue", "-s", "-h").stdout.splitlines()
    assert [line.split()[:2] for line in listed] == [
        [f"{job_id}.1", "long"], [f"{job_id}.batch", "batch"],
    ]  # fmt: skip
    assert two.run("squeue", "-s", "-h", "-j", str(job_id)).stdout.splitlines()[0] == listed[0]
    shown = two.run("scontrol", "show", "step", f"{job_id}.1").stdout
    assert f"StepId={job_id}.1 " in shown
    assert "Tasks=2 Name=long" in shown
    assert two.run("scancel", f"{job_id}.1").returncode == 0
    step.communicate(timeout=TIMEOUT_S)
    assert step.returncode == 143
    rows = two.run("sacct", "-nP", "-j", str(job_id), "-o", "JobID,State,ExitCode,NTasks").stdout
    assert rows.splitlines()[1:] == [
        f"{job_id}.batch|RUNNING|0:0|1", f"{job_id}.0|FAILED|0:9|1",
        f"{job_id}.1|CANCELLED|0:15|2",
    ]  # fmt: skip
    assert two.odc.job(job_id or 0)["state"] == "RUNNING"


# -- ends -------------------------------------------------------------------------------------


def test_a_bad_exit_ends_the_others_if_asked_to(two: Slurm) -> None:
    done = two.run("srun", "-n2", "--kill-on-bad-exit=1", "sh", "-c",
                   "[ $SLURM_PROCID = 0 ] && exit 5; sleep 1000")  # fmt: skip
    assert done.returncode == 143
    job = two.job_id
    assert done.stderr.splitlines() == [
        "srun: error: gpu1: task 0: Exited with exit code 5",
        f"srun: Terminating StepId={job}.0",
        "srun: error: gpu2: task 1: Terminated",
    ]


def test_a_time_limit_ends_the_step_only(two: Slurm) -> None:
    done = two.run("srun", "-n1", "--time=0:01", "sleep", "1000")
    assert done.returncode == 143
    assert "DUE TO TIME LIMIT" in done.stderr
    assert two.steps()[0]["state"] == "TIMEOUT"
    assert two.run("srun", "-n1", "true").returncode == 0


def test_signals_reach_the_tasks(two: Slurm, tmp_path: Path) -> None:
    script = (f"trap 'exit 9' USR1; echo up > {tmp_path}/$SLURM_PROCID; "
              "while :; do sleep 0.02; done")  # fmt: skip
    step = two.start("srun", "-n2", "sh", "-c", script)
    for number in range(2):
        written(tmp_path / str(number))
    step.send_signal(signal.SIGUSR1)
    step.communicate(timeout=TIMEOUT_S)
    assert step.returncode == 9
    # cancel --signal reaches the steps, not the batch shell, which would end of it.
    step = two.start("srun", "-n1", "sh", "-c", script.replace(str(tmp_path), f"{tmp_path}/b"))
    step.kill()
    step.communicate(timeout=TIMEOUT_S)
    (tmp_path / "c").mkdir()
    step = two.start("srun", "--overlap", "-n1", "sh", "-c",
                     script.replace(str(tmp_path), f"{tmp_path}/c"))  # fmt: skip
    written(tmp_path / "c" / "0")
    two.odc.odcctl("cancel", "--signal", "USR1", str(two.job_id))
    step.communicate(timeout=TIMEOUT_S)
    assert step.returncode == 9
    assert two.odc.job(two.job_id or 0)["state"] == "RUNNING"


def test_one_ctrl_c_shows_the_state_and_two_end_the_step(two: Slurm) -> None:
    step = two.start("srun", "-n2", "sh", "-c", "echo up; exec sleep 1000")
    for _ in range(2):  # from now on srun knows that the step runs
        assert step.stdout.readline() == "up\n"
    name = f"{two.job_id}.0"
    step.send_signal(signal.SIGINT)
    assert step.stderr.readline() == "srun: interrupt (one more within 1 sec to abort)\n"
    assert step.stderr.readline() == f"srun: StepId={name} tasks 0-1: running\n"
    assert step.poll() is None
    while step.poll() is None:
        step.send_signal(signal.SIGINT)
        time.sleep(0.3)
    _, err = step.communicate(timeout=TIMEOUT_S)
    assert step.returncode == 130
    assert f"srun: sending Ctrl-C to StepId={name}" in err


def test_nothing_of_a_step_is_left_when_it_is_over(two: Slurm, tmp_path: Path) -> None:
    done = two.run("srun", "-n1", "sh", "-c",
                   f"setsid sh -c 'echo $$ > {tmp_path}/pid; trap \"\" TERM; "
                   f"while :; do sleep 0.1; done' & until [ -s {tmp_path}/pid ]; do sleep 0.02; "
                   "done")  # fmt: skip
    assert done.returncode == 0
    assert gone(int((tmp_path / "pid").read_text()))


def test_steps_end_with_the_batch_script(slurm: Slurm, tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text(
        "#!/bin/sh\n"
        f"srun -n1 sh -c 'echo $$ > {tmp_path}/pid; exec sleep 1000' &\n"
        f"until [ -s {tmp_path}/pid ]; do sleep 0.02; done\nexit 0\n"
    )
    slurm.odc.environment["PATH"] = slurm.environment()["PATH"]
    job_id = slurm.odc.submit("--output=/dev/null", str(script))
    slurm.odc.wait_for(job_id, "COMPLETED")
    assert gone(int((tmp_path / "pid").read_text())), "the job ended before its step"


def test_a_cancelled_job_ends_its_steps(two: Slurm, tmp_path: Path) -> None:
    step = two.start("srun", "-n1", "sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 1000")
    pid = int(written(tmp_path / "pid"))
    job_id = two.job_id
    two.cancel()
    _, err = step.communicate(timeout=TIMEOUT_S)
    assert gone(pid)
    assert step.returncode == 143, err
    assert f"*** STEP {job_id}.0 ON gpu1 CANCELLED AT " in err


# -- failures of odc --------------------------------------------------------------------------


def test_a_killed_daemon_loses_neither_output_nor_exit_code(two: Slurm, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    step = two.start("srun", "-n2", "-l", "sh", "-c",
                     f"printf begun; echo up > {tmp_path}/$SLURM_PROCID; "
                     f"until [ -e {flag} ]; do sleep 0.02; done; echo ' ended'; "
                     "exit 3")  # fmt: skip
    for number in range(2):
        written(tmp_path / str(number))
    pid = two.odc.pid
    assert kill(pid)
    wait(lambda: gone(pid) and holder(two.odc.home / "odcd.lock") is None, lambda: "it lives on")
    flag.touch()
    two.odc.up(*NODES)
    out, err = step.communicate(timeout=TIMEOUT_S)
    assert step.returncode == 3, err
    assert sorted(out.splitlines()) == ["0: begun ended", "1: begun ended"]
    assert two.steps()[0]["exit_code"] == 3


def test_a_step_whose_client_is_killed_too_is_recorded(two: Slurm, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    step = two.start("srun", "-n1", "sh", "-c", f"echo up > {tmp_path}/up; "
                     f"until [ -e {flag} ]; do sleep 0.02; done; exit 4")  # fmt: skip
    written(tmp_path / "up")
    pid = two.odc.pid
    assert kill(pid)
    step.kill()
    step.communicate(timeout=TIMEOUT_S)
    wait(lambda: gone(pid) and holder(two.odc.home / "odcd.lock") is None, lambda: "it lives on")
    flag.touch()
    two.odc.up(*NODES)
    found = wait(lambda: [s for s in two.steps() if s["ended_at"]] or None, lambda: "not recorded")
    assert (found[0]["state"], found[0]["exit_code"]) == ("FAILED", 4)


def test_a_killed_runner_and_supervisor_leave_nothing(two: Slurm, tmp_path: Path) -> None:
    step = two.start("srun", "-n1", "sh", "-c",
                     f"echo $$ $PPID > {tmp_path}/pids; exec sleep 1000")  # fmt: skip
    task, supervisor = map(int, written(tmp_path / "pids").split())
    assert kill(supervisor)
    step.communicate(timeout=TIMEOUT_S)
    assert step.returncode == 1
    wait(lambda: gone(task), lambda: "the task lives on")
    assert two.steps()[0]["state"] == "NODE_FAIL"


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (["-n99", "true"], "srun: error: Unable to create step for job JOB: More processors "
                           "requested than permitted"),
        (["-N3", "true"], "srun: error: Only allocated 2 nodes asked for 3"),
        (["--gpus-per-task=5", "-n1", "true"], "srun: error: Unable to create step for job JOB: "
                                               "Invalid generic resource (gres) specification"),
        (["--bogus", "true"], "srun: unrecognized option '--bogus'"),
        ([], "srun: fatal: No command given to execute."),
        (["-n", "x", "true"], 'srun: error: Invalid numeric value "x" for --ntasks.'),
        (["--mpi=pmi2", "true"], "srun: error: --mpi=pmi2 is not supported"),
        (["--pty", "-o", "x", "true"], "srun: error: --output incompatible with --pty option"),
        (["--jobid=999999", "true"], "srun: error: Unable to confirm allocation for job 999999: "
                                     "Invalid job id specified"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_slurms_words(two: Slurm, argv: list[str], error: str) -> None:
    done = two.run("srun", *argv)
    assert done.returncode == (255 if "unrecognized" in error else 1)
    assert done.stderr.startswith(error.replace("JOB", str(two.job_id))), done.stderr
    assert done.stdout == ""
    assert two.steps() == []


def test_srun_of_a_job_that_has_ended_is_refused(two: Slurm) -> None:
    job_id = two.job_id
    two.cancel()
    two.job_id = job_id
    done = two.run("srun", "true")
    two.job_id = None
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"srun: error: Unable to confirm allocation for job {job_id}: "
        "Job/step already completing or completed"
    )


def test_a_daemon_that_is_away_is_reported_within_five_seconds(
    slurm: Slurm, tmp_path: Path
) -> None:
    begun = time.monotonic()
    done = slurm.run("srun", "true", ODC_SERVER=f"unix:{tmp_path}/none.sock")
    assert done.returncode == 1
    assert "Unable to contact slurm controller" in done.stderr
    assert time.monotonic() - begun < 30, "it waited much longer than five seconds"
