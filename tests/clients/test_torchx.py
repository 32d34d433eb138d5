"""TorchX's Slurm scheduler: run, status, logs, retries and cancel."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness.slurm_commands import Commands, needs

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default"), needs("torchx")]


@pytest.fixture
def scheduler(slurm: Commands) -> Any:
    from torchx.schedulers.slurm_scheduler import create_scheduler

    return create_scheduler("tests")


def an_app(script: str, replicas: int = 1, **role: Any) -> Any:
    from torchx.specs import AppDef, Resource, Role

    return AppDef(
        name="app",
        roles=[
            Role(
                name="trainer", image="", entrypoint="sh", args=["-c", script],
                num_replicas=replicas, env={"ADDED": "by torchx"},
                resource=Resource(cpu=1, gpu=0, memMB=100), **role,
            )
        ],
    )  # fmt: skip


def test_an_app_runs_and_its_logs_are_found(slurm: Commands, scheduler: Any) -> None:
    from torchx.schedulers.api import Stream
    from torchx.specs import AppState

    app = scheduler.submit(an_app('echo "$ADDED $SLURM_PROCID"'), {"time": "5"})
    slurm.wait(app, "COMPLETED")
    described = scheduler.describe(app)
    assert described.state == AppState.SUCCEEDED
    assert [role.name for role in described.roles] == ["trainer"]
    lines = list(scheduler.log_iter(app, "trainer", 0, streams=Stream.STDOUT))
    assert [line.strip() for line in lines] == ["by torchx 0"]


def test_a_failed_app_is_requeued_by_its_script(slurm: Commands, scheduler: Any) -> None:
    script = "echo ${SLURM_RESTART_COUNT:-0} >> runs; exit $((1 - ${SLURM_RESTART_COUNT:-0}))"
    app = scheduler.submit(an_app(script, max_retries=2), {})
    assert slurm.wait(app, "COMPLETED") == "COMPLETED"
    assert (slurm.odc.work / "runs").read_text() == "0\n1\n"


def test_cancel(slurm: Commands, scheduler: Any) -> None:
    app = scheduler.submit(an_app("sleep 600"), {})
    slurm.wait(app, "RUNNING")
    scheduler.cancel(app)
    slurm.wait(app, "CANCELLED")


def test_several_replicas_are_components_of_one_job(slurm: Commands, scheduler: Any) -> None:
    from torchx.schedulers.api import Stream
    from torchx.specs import AppState

    app = scheduler.submit(an_app('echo "$SLURM_PROCID $SLURM_HET_SIZE"', replicas=2), {})
    slurm.until(lambda: slurm.state(app).split() == ["COMPLETED", "COMPLETED"])
    described = scheduler.describe(app)
    assert (described.state, described.roles[0].num_replicas) == (AppState.SUCCEEDED, 2)
    for replica in (0, 1):
        lines = list(scheduler.log_iter(app, "trainer", replica, streams=Stream.STDOUT))
        assert [line.strip() for line in lines] == [f"{replica} 2"]
