"""Slurm's commands, run as in a shell of a running job."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from odcctl.remote.folder import make_folder
from tests.support.harness.daemon import Odc, wait

NODES = ("--node", "gpu[1-2]=h100:8x64")
TIMEOUT_S = 120
HOLD = "while :; do sleep 1; done"


class Slurm:
    """Runs Slurm's commands as in a shell of a running job."""

    def __init__(self, odc: Odc, folder: Path) -> None:
        self.odc = odc
        self.folder = folder
        make_folder(str(folder), default=str(odc.home / "odcd.sock"))
        self.job_id: int | None = None

    def environment(self, **more: str) -> dict[str, str]:
        job = {} if self.job_id is None else {"SLURM_JOB_ID": str(self.job_id)}
        path = f"{self.folder}:{os.environ['PATH']}"
        return {**self.odc.environment, "PATH": path, **job, **more}

    def hold(self, *argv: str) -> int:
        """A running job that only holds its nodes."""
        self.job_id = self.odc.submit("--output=/dev/null", *argv, "--wrap", HOLD)
        self.odc.wait_for(self.job_id, "RUNNING")
        return self.job_id

    def start(self, *argv: str, stdin: int = subprocess.DEVNULL, **more: str) -> Any:
        return subprocess.Popen(
            argv, env=self.environment(**more), cwd=self.odc.work, text=True, stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *argv: str, stdin: str | None = None, **more: str) -> Any:
        process = self.start(
            *argv, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, **more
        )
        out, err = process.communicate(stdin, timeout=TIMEOUT_S)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def steps(self) -> list[dict[str, Any]]:
        query = f"select * from odc.list_steps(array[{self.job_id}::bigint])"
        return [dict(row) for row in self.odc.rows(query)]

    def cancel(self) -> None:
        if self.job_id is not None:
            self.odc.odcctl("cancel", str(self.job_id))
            self.odc.wait_for(self.job_id, "CANCELLED", "COMPLETED", "FAILED")
            self.job_id = None


@contextmanager
def slurm_of(odc: Odc, folder: Path) -> Iterator[Slurm]:
    made = Slurm(odc, folder)
    yield made
    made.cancel()


@contextmanager
def holding_two(slurm: Slurm) -> Iterator[Slurm]:
    """A job with two nodes, each with 4 CPUs and 4 GPUs."""
    slurm.hold("-N2", "--ntasks-per-node=1", "-c4", "--gpus-per-node=4", "--mem=1G")
    yield slurm


def written(path: Path) -> str:
    return wait(lambda: (path.exists() and path.read_text()) or None, lambda: f"no {path}")
