"""Job steps in pods: failures of odc and of nodes, ends of jobs, and calls in the pods."""

from __future__ import annotations

import pytest

from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.daemon import wait
from tests.support.harness.pod_steps import TIMEOUT_S, Steps

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("installed")]


def test_a_killed_daemon_loses_neither_output_nor_exit_code(four: Steps) -> None:
    step = four.start("srun", "-n4", "-l", "sh", "-c",
                      "printf begun; echo >/tmp/up; until [ -e /tmp/flag ]; do sleep 0.05; done; "
                      "echo ' ended'; exit 3")  # fmt: skip
    for n in range(4):
        wait(lambda n=n: four.in_pod(n, "[ ! -e /tmp/up ] || echo up"), four.stack.log)
    four.stack.kill()
    four.touch(0, 1)
    four.stack.start()
    four.touch(2, 3)
    out, err = step.communicate(timeout=TIMEOUT_S)
    assert step.returncode == 3, err
    assert sorted(out.splitlines()) == [f"{n}: begun ended" for n in range(4)]
    assert sorted(err.splitlines()) == [
        f"srun: error: {four.pod(n)}: task {n}: Exited with exit code 3" for n in range(4)
    ]
    assert four.last("state || ' ' || exit_code") == "FAILED 3"


def test_a_step_whose_client_is_killed_too_is_recorded(four: Steps) -> None:
    step = four.start("srun", "-n4", "sh", "-c",
                      "echo >/tmp/up; until [ -e /tmp/flag ]; do sleep 0.05; done; "
                      "exit 4")  # fmt: skip
    for n in range(4):
        wait(lambda n=n: four.in_pod(n, "[ ! -e /tmp/up ] || echo up"), four.stack.log)
    four.stack.kill()
    step.kill()
    step.communicate(timeout=TIMEOUT_S)
    four.touch(0, 1, 2, 3)
    four.stack.start()
    wait(lambda: four.last("state <> 'RUNNING'"), four.stack.log)
    assert four.last("state || ' ' || exit_code") == "FAILED 4"


def test_a_lost_pod_ends_the_step_and_the_job(four: Steps, shared_plane: ControlPlane) -> None:
    step = four.start("srun", "-n4", "sh", "-c", "echo up; exec sleep 1000")
    for _ in range(4):
        assert step.stdout.readline() == "up\n"
    shared_plane.api.delete(f"/api/v1/namespaces/gpu-batch/pods/{four.pod(3)}", grace_s=0)
    _, err = step.communicate(timeout=TIMEOUT_S)
    assert step.returncode != 0
    assert f"Node failure on {four.pod(3)}" in err or "Force Terminated" in err


def test_a_cancelled_job_ends_its_steps(four: Steps) -> None:
    step = four.start("srun", "-n4", "sh", "-c", "echo up; exec sleep 1000")
    for _ in range(4):
        assert step.stdout.readline() == "up\n"
    four.stack("cancel", str(four.job))
    _, err = step.communicate(timeout=TIMEOUT_S)
    assert step.returncode != 0
    assert f"StepId={four.job}.0" in err or f"STEP {four.job}.0" in err
    four.stack.end(four.job)
    assert four.last("state") == "CANCELLED"


def test_srun_without_a_job_makes_an_allocation_and_releases_it(four: Steps) -> None:
    done = four.srun("-N1", "-n2", "sh", "-c", "echo $SLURM_PROCID; exit 5", SLURM_JOB_ID="")
    assert (done.returncode, sorted(done.stdout.split())) == (5, ["0", "1"]), done
    job = four.stack.value("select max(id) from odc.job")
    ended = four.stack.end(job)
    assert (ended["state"], ended["exit_code"]) == ("FAILED", 5)


# -- in the pods ---------------------------------------------------------------------------------


def test_a_script_starts_tasks_in_all_pods(four: Steps) -> None:
    """As submitit and Lightning do: the variables of the tasks, and of the job."""
    job = four.stack.submit(
        "-N4", "--ntasks-per-node=1", "-c1", "--gpus-per-node=1",
        script="export GIVEN=\"it's\"\n"
               "srun -l sh -c 'echo $(hostname) $SLURM_PROCID $SLURM_NTASKS $GIVEN; "
               "echo err >&2; exit $SLURM_PROCID'\n"
               "echo code $?\n"
               "scontrol show hostnames\n"
               "echo piped | srun -n1 -N1 cat\n"
               "squeue -h -o '%i %t' -j $SLURM_JOB_ID\n"
               "srun -n9 true\n",
    )  # fmt: skip
    ended = four.stack.end(job)
    output = four.stack("logs", str(job))
    lines = output.splitlines()
    assert sorted(lines[: lines.index("code 3")]) == sorted([
        *(f"{n}: odc-{job}-1-{n} {n} 4 it's" for n in range(4)),
        *(f"{n}: err" for n in range(4)),
        *(f"srun: error: odc-{job}-1-{n}: task {n}: Exited with exit code {n}" for n in (1, 2, 3)),
    ]), output  # fmt: skip
    assert lines[lines.index("code 3") + 1 :] == [
        *(f"odc-{job}-1-{n}" for n in range(4)), "piped", f"{job} R",
        f"srun: error: Unable to create step for job {job}: More processors requested than "
        "permitted",
    ]  # fmt: skip
    assert (ended["state"], ended["exit_code"]) == ("FAILED", 1)
    states = four.stack.value(
        f"select string_agg(state::text, ' ' order by step) from odc.step where job_id = {job}"
    )
    assert states == "FAILED COMPLETED"


def test_a_killed_daemon_is_not_noticed_by_srun_in_a_pod(four: Steps) -> None:
    job = four.stack.submit(
        "-N4", "--ntasks-per-node=1", "-c1",
        script="srun -l sh -c 'echo begun; echo >/tmp/up; "
               "until [ -e /tmp/flag ]; do sleep 0.05; done; seq 5000; exit 3'\n"
               "echo code $?\n",
    )  # fmt: skip
    four.stack("cancel", str(four.job))
    four.job = job
    four.stack.until(job, "RUNNING")
    for n in range(4):
        wait(lambda n=n: four.in_pod(n, "[ ! -e /tmp/up ] || echo up"), four.stack.log)
    four.stack.wait_for_output(job, "0: begun")
    four.stack.kill()
    four.touch(0, 1, 2, 3)
    four.stack.start()
    four.stack.end(job)
    lines = four.stack("logs", str(job)).splitlines()
    assert lines[-1] == "code 3"
    for n in range(4):
        own = [line for line in lines if line.startswith(f"{n}: ")]
        assert own == [f"{n}: begun", *(f"{n}: {i}" for i in range(1, 5001))]
    assert sum("Exited with exit code 3" in line for line in lines) == 4
