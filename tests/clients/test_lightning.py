"""Lightning's SLURMEnvironment in two tasks of srun, from its published file.

torch is not installed, so there is no DistributedDataParallel: the tasks meet at the address and
port that Lightning computes, and add up their ranks as a gloo group would.
"""

from __future__ import annotations

import sys

import pytest

from tests.support.harness.lightning import SCRIPT
from tests.support.harness.slurm_commands import Commands, needs

pytestmark = [pytest.mark.long, needs("lightning-fabric")]


def test_two_tasks_on_two_nodes_meet(slurm: Commands) -> None:
    (slurm.odc.work / "lightning.py").write_text(SCRIPT)
    job = slurm.sbatch(
        "-J", "lightning", "-N2", "--ntasks-per-node=1", "-o", "lightning.out",
        "--wrap", f"srun {sys.executable} lightning.py",
    )  # fmt: skip
    slurm.wait(job, "COMPLETED", "FAILED")
    lines = sorted((slurm.odc.work / "lightning.out").read_text().splitlines())
    assert lines == ["lightning 2 0 0 0 1", "lightning 2 1 0 1 1"]


def test_an_interactive_shell_is_no_task_of_srun(slurm: Commands) -> None:
    """Lightning then starts its processes itself."""
    script = SCRIPT.partition("assert")[0] + "print(SLURMEnvironment.detect())\n"
    done = slurm.run("salloc", "-n2", "-J", "interactive", sys.executable, "-c", script)
    assert done.stdout == "False\n"
