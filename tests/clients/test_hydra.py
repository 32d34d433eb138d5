"""hydra-submitit-launcher: a sweep is an array of jobs."""

from __future__ import annotations

import sys

import pytest

from tests.support.harness.slurm_commands import Commands, needs

pytestmark = [pytest.mark.long, needs("hydra-submitit-launcher")]

APP = """
import hydra

@hydra.main(version_base=None)
def main(config):
    with open(f"swept-{config.x}", "w") as file:
        file.write(str(config.x * config.x))

main()
"""


def test_each_value_of_a_sweep_runs_in_its_own_job(slurm: Commands) -> None:
    (slurm.odc.work / "app.py").write_text(APP)
    slurm.run(
        sys.executable, "app.py", "--multirun", "hydra/launcher=submitit_slurm",
        "hydra.launcher.timeout_min=5", "hydra.launcher.mem_gb=1", "hydra.job.name=sweep",
        "+x=2,3",
    )  # fmt: skip
    assert [(slurm.odc.work / f"swept-{x}").read_text() for x in (2, 3)] == ["4", "9"]
    query = ("sacct", "-X", "-n", "-P", "-o", "State", "--name", "sweep")
    # A job ends a moment after its result.
    slurm.until(lambda: slurm.out(*query).split() == ["COMPLETED", "COMPLETED"])
