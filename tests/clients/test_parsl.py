"""Parsl: SlurmProvider's submit, status by sacct and cancel; functions on workers in a step."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.slurm_commands import Commands

parsl: Any = pytest.importorskip("parsl", reason="it is not installed: make clients")
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]

FUNCTIONS = """
import os
import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SrunLauncher
from parsl.providers import SlurmProvider

@parsl.python_app
def place(number):
    import os
    return number * number, os.environ["SLURM_PROCID"], os.environ["SLURM_STEP_ID"]

blocks = SlurmProvider(
    walltime="00:05:00", launcher=SrunLauncher(), nodes_per_block=2, exclusive=False,
    mem_per_node=1, cores_per_node=1, init_blocks=1, min_blocks=1, max_blocks=1,
)
executor = HighThroughputExecutor(
    label="blocks", address="127.0.0.1", loopback_address="127.0.0.1", max_workers_per_node=1,
    provider=blocks, encrypted=False,
)
with parsl.load(Config(executors=[executor], usage_tracking=0, strategy='none')):
    found = [one.result() for one in [place(number) for number in range(4)]]
print([square for square, _, _ in found], {step for _, _, step in found})
"""


def provider(slurm: Commands) -> Any:
    from parsl.launchers import SingleNodeLauncher
    from parsl.providers import SlurmProvider

    made = SlurmProvider(
        walltime="00:05:00", launcher=SingleNodeLauncher(), exclusive=False, mem_per_node=1,
        cores_per_node=1,
    )  # fmt: skip
    made.script_dir = str(slurm.odc.work)
    return made


def reached(made: Any, job: str, state: str) -> None:
    deadline = time.monotonic() + 60
    while (found := made.status([job])[0].state.name) != state:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def test_a_block_runs_to_its_end(slurm: Commands) -> None:
    made = provider(slurm)
    # It asks sacct from now on: sacct exists.
    assert made._cmd.startswith("sacct")
    job = made.submit("echo parsl > parsl.out", 1, "block")
    reached(made, job, "COMPLETED")
    assert (slurm.odc.work / "parsl.out").read_text() == "parsl\n"


def test_blocks_are_cancelled_and_failures_are_seen(slurm: Commands) -> None:
    made = provider(slurm)
    # One after the other: at the second look, Parsl takes a failed block for a completed one.
    reached(made, made.submit("exit 3", 1, "failing"), "FAILED")
    job = made.submit("sleep 600", 1, "long")
    reached(made, job, "RUNNING")
    assert made.cancel([job]) == [True]
    slurm.wait(job, "CANCELLED")


def test_functions_run_on_workers_of_a_step(slurm: Commands) -> None:
    (slurm.odc.work / "functions.py").write_text(FUNCTIONS)
    # The script of a block finds Parsl's worker on PATH.
    path = f"{Path(sys.executable).parent}:{slurm.environment['PATH']}"
    done = slurm.run(sys.executable, "functions.py", timeout_s=240, PATH=path)
    assert done.stdout == "[0, 1, 4, 9] {'0'}\n", done.stderr
    # Its block is cancelled at the end.
    slurm.until(lambda: "parsl" not in slurm.out("squeue", "-h", "-o", "%j"))
