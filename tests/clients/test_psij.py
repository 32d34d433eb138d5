"""PSI/J: a job's states by squeue, its exit code, and cancel."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.slurm_commands import Commands

psij: Any = pytest.importorskip("psij", reason="it is not installed: make clients")
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("psij")


@pytest.fixture
def executor(slurm: Commands, _home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from psij.executors.batch.slurm import SlurmExecutorConfig

    monkeypatch.setenv("HOME", str(_home))
    config = SlurmExecutorConfig(
        queue_polling_interval=1, initial_queue_polling_delay=1, work_directory=_home
    )
    return psij.JobExecutor.get_instance("slurm", config=config)


def a_job(script: str, directory: Path, **spec: Any) -> Any:
    return psij.Job(
        psij.JobSpec(
            executable="/bin/sh", arguments=["-c", script], directory=directory,
            attributes=psij.JobAttributes(duration=timedelta(minutes=5)), **spec,
        )
    )  # fmt: skip


def test_a_job_ends_with_its_exit_code(slurm: Commands, executor: Any) -> None:
    good = a_job("echo psij > psij.out", slurm.odc.work)
    bad = a_job("exit 7", slurm.odc.work)
    for job in (good, bad):
        executor.submit(job)
    assert good.wait(timedelta(seconds=90)).state == psij.JobState.COMPLETED
    assert (slurm.odc.work / "psij.out").read_text() == "psij\n"
    status = bad.wait(timedelta(seconds=90))
    assert (status.state, status.exit_code) == (psij.JobState.FAILED, 7)


def test_cancel(slurm: Commands, executor: Any) -> None:
    job = a_job("sleep 600", slurm.odc.work)
    executor.submit(job)
    slurm.wait(job.native_id, "RUNNING")
    job.cancel()
    assert job.wait(timedelta(seconds=90)).state == psij.JobState.CANCELED


def test_srun_starts_the_processes_of_a_job(slurm: Commands, executor: Any) -> None:
    job = a_job(
        "echo $SLURM_PROCID $SLURM_NODEID $SLURM_NTASKS; wc -l < $PSIJ_NODEFILE", slurm.odc.work,
        launcher="srun", stdout_path=slurm.odc.work / "psij-srun.out",
        resources=psij.ResourceSpecV1(
            node_count=2, processes_per_node=2, exclusive_node_use=False, memory=200 * 2**20
        ),
    )  # fmt: skip
    executor.submit(job)
    assert job.wait(timedelta(seconds=90)).state == psij.JobState.COMPLETED
    lines = sorted((slurm.odc.work / "psij-srun.out").read_text().split("\n"))
    assert lines == ["", "0 0 4", "1 0 4", "2 1 4", "3 1 4", *["4"] * 4]


def test_a_job_without_the_environment_of_its_submitter(
    slurm: Commands, executor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLY_HERE", "yes")
    job = a_job(
        'echo "${ONLY_HERE-none} $ADDED" > psij-env.out', slurm.odc.work,
        inherit_environment=False, environment={"ADDED": "by psij"},
    )  # fmt: skip
    executor.submit(job)
    assert job.wait(timedelta(seconds=90)).state == psij.JobState.COMPLETED
    assert (slurm.odc.work / "psij-env.out").read_text() == "none by psij\n"
