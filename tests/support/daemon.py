"""A whole odc in a home of its own: the real commands, the real daemon, real jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from odcd.lock import holder

T = TypeVar("T")

TIMEOUT_S = 60


class Odc:
    """Runs odcd and odcctl against one home, as a shell would."""

    def __init__(self, home: Path, work: Path) -> None:
        self.home = home
        self.work = work
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ODC_", "SBATCH_", "SLURM_", "PYTEST_"))
        } | {"ODC_HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def odcd(self, *argv: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self._run("odcd", *argv, check=check)

    def odcctl(self, *argv: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self._run("odcctl", *argv, check=check)

    def _run(
        self, program: str, *argv: str | Path, check: bool
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", program, *map(str, argv)],
            env=self.environment, cwd=self.work, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        if check:
            assert done.returncode == 0, f"{program} {argv}: {done.stdout}{done.stderr}{self.log()}"
        return done

    @contextmanager
    def serving(self, *argv: str) -> Iterator[subprocess.Popen[str]]:
        """odcd in the foreground, ready; ended with TERM at the end."""
        with subprocess.Popen(
            [sys.executable, "-m", "odcd", *argv],
            env=self.environment, cwd=self.work, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            try:
                assert process.stdout is not None
                assert process.stderr is not None
                line = process.stdout.readline()
                assert "odcd is ready" in line, line + process.stderr.read()
                yield process
            finally:
                process.terminate()

    def up(self, *argv: str) -> str:
        return self.odcd("up", "--detach", *argv).stdout

    def submit(self, *argv: str) -> int:
        return int(self.odcctl("submit", "--parsable", *argv).stdout)

    def job(self, job_id: int) -> dict[str, Any]:
        return json.loads(self.odcctl("show", str(job_id), "--json").stdout)["jobs"][0]

    def wait_for(self, job_id: int, *states: str) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["state"] in states else None

        return wait(reached, lambda: f"job {job_id} is {self.job(job_id)}{self.log()}")

    @property
    def pid(self) -> int:
        pid = holder(self.home / "odcd.lock")
        assert pid is not None, f"no daemon in {self.home}{self.log()}"
        return pid

    def log(self) -> str:
        path = self.home / "odcd.log"
        return f"\n{path.read_text()[-3000:]}" if path.exists() else ""

    def processes(self) -> list[str]:
        """Command lines of every living process that has to do with this home."""
        mark = os.fsencode(self.home)
        found: list[str] = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                command = (entry / "cmdline").read_bytes()
                working = os.fsencode((entry / "cwd").readlink())
            except OSError:
                continue
            if mark in command or working.startswith(mark):
                found.append(f"{entry.name} {command.decode(errors='replace')}")
        return found


def wait(look: Callable[[], T | None], otherwise: Callable[[], str]) -> T:
    """What look() gives as soon as it gives something."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(otherwise())
