"""QToolKit (jobflow-remote): submit, one job, a list of jobs, and cancel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.slurm_commands import Commands, needs

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default"), needs("qtoolkit")]


@pytest.fixture
def manager(slurm: Commands) -> Any:
    from qtoolkit.host.local import LocalHost
    from qtoolkit.io.slurm import SlurmIO
    from qtoolkit.manager import QueueManager

    return QueueManager(SlurmIO(), LocalHost())


def a_job(manager: Any, command: str, folder: Path, **options: Any) -> str:
    from qtoolkit.core.data_objects import QResources, SubmissionStatus

    resources = QResources(
        job_name="toolkit", processes=1, time_limit=300, memory_per_thread=100,
        output_filepath="out", error_filepath="err", **options,
    )  # fmt: skip
    done = manager.submit(command, options=resources, work_dir=folder, create_submit_dir=True)
    assert done.status == SubmissionStatus.SUCCESSFUL, done
    return done.job_id


def test_a_job_is_followed_to_its_end(slurm: Commands, manager: Any, tmp_path: Path) -> None:
    job = a_job(manager, "echo toolkit", tmp_path / "job")
    slurm.wait(job, "COMPLETED")
    found = manager.get_job(job)
    assert (found.job_id, found.name, found.state.value) == (job, "toolkit", "DONE")
    assert (tmp_path / "job" / "out").read_text() == "toolkit\n"


def test_jobs_are_listed_and_cancelled(slurm: Commands, manager: Any, tmp_path: Path) -> None:
    from qtoolkit.core.data_objects import CancelStatus

    job = a_job(manager, "sleep 600", tmp_path / "job", scheduler_kwargs={"hint": "nomultithread"})
    slurm.wait(job, "RUNNING")
    [listed] = manager.get_jobs_list([job])
    assert (listed.job_id, listed.state.value, listed.info.time_limit) == (job, "RUNNING", 300)
    shown = manager.get_job(job)
    assert (shown.state.value, shown.info.nodes) == ("RUNNING", 1)
    done = manager.cancel(job)
    assert (done.status, done.job_id) == (CancelStatus.SUCCESSFUL, job)
    slurm.wait(job, "CANCELLED")
    assert manager.get_job("2000000000") is None
