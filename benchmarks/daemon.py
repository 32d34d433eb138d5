"""A separate daemon, as users run it: odcd up, embedded PostgreSQL, fsync on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.client import Client

COMMANDS = Path(sys.executable).parent
WAIT_S = 120
POLL_S = 0.025
"""Short enough for precise times, and long enough not to disturb the measurement."""


class Daemon:
    def __init__(self, home: Path, work: Path) -> None:
        self.home = home
        self.work = work
        self.socket = home / "odcd.sock"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ODC_", "SBATCH_", "SLURM_"))
        } | {"ODC_HOME": str(home), "ODC_LISTEN": "none", "ODC_ALLOW_ROOT_JOBS": "1"}

    def command(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run odcd or odcctl as a shell would. Raises RuntimeError when it fails."""
        done = subprocess.run(
            [COMMANDS / arguments[0], *arguments[1:]],
            env=self.environment, cwd=self.work, capture_output=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{arguments} failed: {done.stderr.decode()}")
        return done

    def client(self) -> Client:
        return Client(self.socket)

    @property
    def pid(self) -> int:
        return int((self.home / "odcd.lock").read_text().split()[0])

    def jobs(self, client: Client) -> dict[str, int]:
        """Live jobs by state."""
        return client.call("GET", "/v1/cluster")["jobs"]

    def wait_for(self, client: Client, **counts: int) -> float:
        """Wait until this many live jobs are in these states; returns the time when that was
        seen."""
        until = time.monotonic() + WAIT_S
        while True:
            jobs = self.jobs(client)
            seen = time.perf_counter()
            if all(jobs[state] == count for state, count in counts.items()):
                return seen
            if time.monotonic() > until:
                raise RuntimeError(f"expected {counts}, still {jobs}")
            time.sleep(POLL_S)

    def resident_mib(self) -> tuple[float, float]:
        """Rss and Pss of the daemon's process."""
        fields: dict[str, float] = {}
        for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, size = line.split()[:2]
            fields[name.rstrip(":")] = int(size) / 1024
        return fields["Rss"], fields["Pss"]


@contextmanager
def running(*nodes: str) -> Generator[Daemon]:
    """Run odcd up with these --node options in a temporary home, which is removed afterwards."""
    home = Path(tempfile.mkdtemp(prefix="odc-bench-", dir="/tmp"))
    home.chmod(0o755)
    work = home / "work"
    work.mkdir()
    daemon = Daemon(home / "odc", work)
    options = [part for node in nodes for part in ("--node", node)]
    try:
        daemon.command("odcd", "up", "--detach", *options)
        yield daemon
    finally:
        subprocess.run(
            [COMMANDS / "odcd", "down", "--force"],
            env=daemon.environment, capture_output=True, check=False,
        )  # fmt: skip
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def full(nodes: str = "big=h100:8") -> Generator[Daemon]:
    """A daemon whose single node is used completely by one job: all others wait, and passes
    consider them."""
    with running(nodes) as daemon, daemon.client() as client:
        blocker = job(daemon, name="blocker", script="#!/bin/sh\nexec sleep 100000\n", gpus=8)
        client.call("POST", "/v1/jobs", blocker)
        daemon.wait_for(client, RUNNING=1)
        yield daemon


def job(daemon: Daemon, **fields: object) -> dict[str, object]:
    """The body of a realistic submit: 2 KB of environment, a script of 300 bytes."""
    return {
        "script": "#!/bin/bash\n" + "# what the job does\n" * 14 + "srun true\n",
        "work_dir": str(daemon.work),
        "name": "wait",
        "environment": {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            **{f"SETTING_OF_THE_USER_{n:02}": f"/home/ann/project/{n:03}" * 2 for n in range(28)},
        },
        "time_limit_s": 3600,
        "submit_host": "login1",
        **fields,
    }
