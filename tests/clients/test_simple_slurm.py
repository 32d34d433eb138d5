"""simple-slurm: submissions by heredoc, squeue as CSV, and scancel."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness.slurm_commands import Commands

simple_slurm: Any = pytest.importorskip("simple_slurm", reason="it is not installed: make clients")
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]


def test_sbatch_squeue_and_scancel(slurm: Commands) -> None:
    job = simple_slurm.Slurm(job_name="simple", time="1-02:03:04", ntasks=1, hold=True)
    number = job.sbatch("sleep 600", verbose=False)
    assert isinstance(number, int)
    assert slurm.out("squeue", "-h", "-j", str(number), "-o", "%j %l") == "simple 1-02:03:04\n"
    slurm.run("scontrol", "release", str(number))
    slurm.wait(number, "RUNNING")
    job.squeue.update_squeue()
    assert number in [int(one) for one in job.squeue.jobs]
    job.scancel.cancel_job(number)
    assert slurm.wait(number, "CANCELLED").startswith("CANCELLED")


def test_an_array_with_a_dependency(slurm: Commands) -> None:
    first = simple_slurm.Slurm(job_name="first").sbatch("true", verbose=False)
    second = simple_slurm.Slurm(
        job_name="second", array="2-7:2", dependency={"afterok": first}, output="second-%A_%a.out"
    )
    number = second.sbatch("echo $SLURM_ARRAY_TASK_ID", verbose=False)
    slurm.until(lambda: slurm.state(number).split() == ["COMPLETED"] * 3)
    assert sorted(path.read_text() for path in slurm.odc.work.glob("second-*.out")) == [
        "2\n", "4\n", "6\n",
    ]  # fmt: skip
