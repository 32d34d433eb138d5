"""submitit: submit, arrays, errors, cancel, and a checkpoint with a requeue at the time limit."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.slurm_commands import Commands

submitit: Any = pytest.importorskip("submitit", reason="it is not installed: make clients")
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]


@pytest.fixture
def executor(slurm: Commands) -> Any:
    """With submitit's own script, which starts Python with srun."""
    found = submitit.SlurmExecutor(folder=slurm.odc.work / "submitit", max_num_timeout=3)
    found.update_parameters(
        time=5, mem="200MB", setup=["set -e"], array_parallelism=2, stderr_to_stdout=True
    )
    return found


def finished(job: Any, within_s: float = 120) -> Any:
    """The result. submitit asks sacct less and less often, so it is forced to look."""
    deadline = time.monotonic() + within_s
    while not job.watcher.is_done(job.job_id, mode="force"):
        assert time.monotonic() < deadline, job.state
        time.sleep(0.2)
    return job.result()


def add(one: int, other: int) -> int:
    return one + other


def fail() -> None:
    raise ValueError("on purpose")


class Counter:
    """Counts up; a checkpoint keeps the number."""

    def __init__(self, start: int = 0) -> None:
        self.start = start

    def __call__(self, folder: str) -> int:
        (Path(folder) / "runs").open("a").write(f"{self.start}\n")
        if self.start == 0:
            while True:
                time.sleep(0.1)
        return self.start

    def checkpoint(self, folder: str) -> Any:
        return submitit.helpers.DelayedSubmission(Counter(self.start + 1), folder)


def test_submit_returns_the_result(executor: Any) -> None:
    job = executor.submit(add, 2, 3)
    assert finished(job) == 5
    assert job.state == "COMPLETED"


def test_a_map_becomes_an_array(executor: Any) -> None:
    jobs = executor.map_array(add, [1, 2, 3, 4], [10, 20, 30, 40])
    assert len({job.job_id.partition("_")[0] for job in jobs}) == 1
    assert [finished(job) for job in jobs] == [11, 22, 33, 44]


def test_an_exception_reaches_the_caller(executor: Any) -> None:
    job = executor.submit(fail)
    with pytest.raises(submitit.core.utils.FailedJobError, match="on purpose"):
        finished(job)
    assert job.state == "FAILED"


def test_cancel(executor: Any) -> None:
    job = executor.submit(time.sleep, 600)
    job.cancel()
    deadline = time.monotonic() + 60
    while not job.watcher.get_state(job.job_id, mode="force").startswith("CANCELLED"):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_python_without_srun(executor: Any) -> None:
    executor.update_parameters(use_srun=False)
    assert finished(executor.submit(add, 2, 3)) == 5


def rank() -> tuple[int, int, str]:
    place = submitit.JobEnvironment()
    return place.global_rank, place.num_tasks, place.hostname


def test_tasks_on_two_nodes_have_ranks(executor: Any) -> None:
    executor.update_parameters(nodes=2, ntasks_per_node=2, nodelist="n[1-2]")
    job = executor.submit(rank)
    deadline = time.monotonic() + 120
    while not job.watcher.is_done(job.job_id, mode="force"):
        assert time.monotonic() < deadline, job.state
        time.sleep(0.2)
    assert [place[:2] for place in job.results()] == [(one, 4) for one in range(4)]


def test_a_preempted_job_saves_a_checkpoint_and_continues(
    slurm: Commands, executor: Any, tmp_path: Path
) -> None:
    job = executor.submit(Counter(), str(tmp_path))
    slurm.until((tmp_path / "runs").exists)
    # submitit sends TERM and USR2, as Slurm does before it preempts.
    job._interrupt(timeout=False)
    assert finished(job) == 1
    assert (tmp_path / "runs").read_text() == "0\n1\n"
    # Output is appended: both runs are in the file of the step.
    assert "Caught signal SIGUSR2" in job.stdout()


def test_a_job_at_its_time_limit_saves_a_checkpoint_and_is_requeued(
    executor: Any, tmp_path: Path
) -> None:
    # One minute, with USR2 50 seconds before it ends.
    executor.update_parameters(time=1, signal_delay_s=50)
    job = executor.submit(Counter(), str(tmp_path))
    assert finished(job) == 1
    assert (tmp_path / "runs").read_text() == "0\n1\n"
