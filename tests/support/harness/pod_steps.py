"""srun on Kubernetes, as in a shell of a user, for one job of four pods."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from odcctl.remote.folder import make_folder
from tests.support.harness.kube import Kube
from tests.support.harness.stacks import Stack

HOLD = "while :; do sleep 1; done"
TIMEOUT_S = 120


class Steps:
    """srun as in a shell of a user, for one job of four pods with two CPUs and two GPUs each."""

    def __init__(self, stack: Stack, folder: Path, kube: Kube) -> None:
        self.stack = stack
        self.kube = kube
        make_folder(str(folder), default="/nonexistent")
        self._folder = folder
        self.job = 0

    def hold(self) -> None:
        self.job = self.stack.submit(
            "-N4", "--ntasks-per-node=1", "-c2", "--gpus-per-node=2", "--mem=1G", script=HOLD
        )
        self.stack.until(self.job, "RUNNING")

    def pod(self, rank: int) -> str:
        return f"odc-{self.job}-1-{rank}"

    def start(self, *argv: str, stdin: int = subprocess.DEVNULL, **more: str) -> Any:
        environment = self.stack.odc.environment
        return subprocess.Popen(
            argv, env={**environment, "PATH": f"{self._folder}:{environment['PATH']}",
                       "SLURM_JOB_ID": str(self.job), **more},
            cwd=self.stack.odc.work, text=True, stdin=stdin, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *argv: str, stdin: str | None = None, **more: str) -> Any:
        process = self.start(
            *argv, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, **more
        )
        out, err = process.communicate(stdin, timeout=TIMEOUT_S)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def srun(self, *argv: str, stdin: str | None = None, **more: str) -> Any:
        return self.run("srun", *argv, stdin=stdin, **more)

    def in_pod(self, rank: int, script: str) -> str:
        """Beside the steps, with odcd's rights."""
        return self.kube.do("exec", "-n", "gpu-batch", self.pod(rank), "--", "sh", "-c", script)

    def touch(self, *ranks: int) -> None:
        for rank in ranks:
            self.in_pod(rank, "touch /tmp/flag")

    def last(self, what: str) -> Any:
        query = f"select {what} from odc.step where job_id = {self.job} order by step desc limit 1"
        return self.stack.value(query)
