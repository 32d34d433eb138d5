"""Slurm's commands against a real daemon, as programs find them on PATH."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.harness.daemon import TIMEOUT_S, Odc, new_odc

NODES = ("--node", "n[1-3]=h100:8", "--node", "self")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}")


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skip without these packages. They are not imported, which would take seconds."""
    missing: list[str] = []
    for package in packages:
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    return pytest.mark.skipif(
        bool(missing), reason=f"not installed: {', '.join(missing)} (make clients)"
    )


class Commands:
    """The folder of the commands that the daemon makes for jobs."""

    def __init__(self, odc: Odc) -> None:
        self.odc = odc
        self.folder = odc.home / "slurm"
        self.environment = {
            **odc.environment, "PATH": f"{self.folder}:{os.environ['PATH']}", "TZ": "UTC",
        }  # fmt: skip

    def run(
        self, *argv: str, stdin: str = "", code: int | None = 0, timeout_s: float = TIMEOUT_S,
        **env: str,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """code: the exit code that it must have; None: any."""
        done = subprocess.run(
            list(argv), env={**self.environment, **env}, cwd=self.odc.work, input=stdin,
            capture_output=True, text=True, timeout=timeout_s, check=False,
        )  # fmt: skip
        if code is not None:
            assert done.returncode == code, f"{argv}: {done}{self.odc.log()}"
        return done

    def out(self, *argv: str, stdin: str = "", **env: str) -> str:
        """Standard output of a command that must say nothing on standard error."""
        done = self.run(*argv, stdin=stdin, **env)
        assert done.stderr == "", f"{argv}: {done.stderr}"
        return done.stdout

    def sbatch(self, *argv: str, stdin: str = "") -> int:
        return int(self.out("sbatch", "--parsable", *argv, stdin=stdin))

    def state(self, job_id: int | str) -> str:
        return self.out("sacct", "-X", "-n", "-P", "-o", "State", "-j", str(job_id)).strip()

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not reached():
            assert time.monotonic() < deadline, self.odc.log()
            time.sleep(0.1)

    def wait(self, job_id: int | str, *states: str) -> str:
        self.until(lambda: self.state(job_id).split(" ")[0] in states)
        return self.state(job_id)


@contextmanager
def slurm_commands(seed: Path | None = None) -> Iterator[Commands]:
    with new_odc(seed=seed) as odc:
        odc.up(*NODES)
        yield Commands(odc)


def normalised(text: str) -> str:
    return _TIME.sub("TIME", text)
