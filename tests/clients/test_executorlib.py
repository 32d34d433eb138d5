"""executorlib and pysqa: functions as jobs, and functions as steps of one job."""

from __future__ import annotations

import sys

import pytest

from tests.support.harness.slurm_commands import Commands, needs

pytestmark = [
    pytest.mark.long, pytest.mark.filterwarnings("default"), needs("executorlib", "pysqa", "h5py"),
]  # fmt: skip

AS_JOBS = """
from executorlib import SlurmClusterExecutor

def add(a, b):
    return a + b

with SlurmClusterExecutor(
    resource_dict={"partition": "PARTITION", "cores": 1, "run_time_max": 300},
) as executor:
    first = executor.submit(add, 1, 2)
    second = executor.submit(add, first, 10)
    print(first.result(timeout=100), second.result(timeout=100))
"""
AS_STEPS = """
import os
from executorlib import SlurmJobExecutor

def place():
    return os.environ["SLURM_JOB_ID"], os.environ["SLURM_STEP_ID"]

with SlurmJobExecutor(max_cores=2, hostname_localhost=True) as executor:
    places = [one.result() for one in [executor.submit(place) for _ in range(3)]]
print(len({job for job, _ in places}), len({step for _, step in places}))
"""


def partition(slurm: Commands) -> str:
    return slurm.out("sinfo", "-h", "-o", "%P").split()[0].rstrip("*")


def test_each_function_runs_in_its_own_job(slurm: Commands) -> None:
    done = slurm.run(
        sys.executable, "-c", AS_JOBS.replace("PARTITION", partition(slurm)), timeout_s=120
    )
    assert done.stdout == "3 13\n"


def test_functions_run_as_steps_of_one_job(slurm: Commands) -> None:
    (slurm.odc.work / "steps.py").write_text(AS_STEPS)
    job = slurm.sbatch(
        "-n2", "-c1", "-o", "steps.out", "-e", "steps.err",
        "--wrap", f"{sys.executable} steps.py",
    )  # fmt: skip
    slurm.wait(job, "COMPLETED", "FAILED")
    assert (slurm.odc.work / "steps.out").read_text() == "1 3\n"


def test_pysqa_submits_and_follows_a_job(slurm: Commands) -> None:
    import pysqa

    queue = pysqa.QueueAdapter(queue_type="SLURM")
    folder = slurm.odc.work / "pysqa"
    job = queue.submit_job(
        command="sleep 600", job_name="queue", working_directory=str(folder), cores=1,
        run_time_max=300, partition=partition(slurm),
    )  # fmt: skip
    slurm.wait(job, "RUNNING")
    assert queue.get_status_of_job(process_id=job) == "running"
    after = queue.submit_job(
        command="true", job_name="after", working_directory=str(folder), cores=1,
        run_time_max=300, partition=partition(slurm), dependency_list=[job],
    )  # fmt: skip
    assert queue.get_status_of_job(process_id=after) == "pending"
    for one in (after, job):
        queue.delete_job(process_id=one)
        slurm.wait(one, "CANCELLED")
    assert queue.get_status_of_job(process_id=job) is None
