"""A Slurm of one node on this machine, with a configuration for short waits."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "slurmrestd", "sbatch")
CPUS = 2_000
CLIENTS = 8
CONFIGURATION = """\
ClusterName=benchmark
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge/socket
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldDebug=error
SlurmdDebug=error
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
PriorityType=priority/multifactor
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,\
default_queue_depth=10000,bf_interval=1,bf_max_job_test=1000
MaxJobCount=500000
MaxArraySize=20001
MinJobAge=2
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class NotInstalled(Exception):
    """Slurm cannot be measured here; the message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slurm:
    """A running Slurm of one node. folder: its state and configuration."""

    folder: Path
    environment: dict[str, str]

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return done.stdout

    def queued(self) -> int:
        return len(self.run("squeue", "-h", "-r", "-o", "%i").splitlines())

    def clear(self) -> None:
        self.run("scancel", "--user", "root")
        self.until(0)

    def until(self, left: int) -> float:
        """The time when so many jobs are left in the queue, by time.perf_counter()."""
        end = time.monotonic() + 300
        while self.queued() != left:
            if time.monotonic() > end:
                raise TimeoutError(f"Slurm has not {left} jobs after 300 s: look at its logs")
            time.sleep(0.02)
        return time.perf_counter()


@contextmanager
def running() -> Generator[Slurm]:
    """Raises NotInstalled."""
    if os.geteuid() != 0:
        raise NotInstalled("Slurm is measured as root only")
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        raise NotInstalled(f"not installed: {', '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="odc-slurm-", dir="/var/tmp") as path:
        slurm = _prepared(Path(path))
        started = [
            _program(slurm, "munged", "--foreground", "--force", f"--socket={path}/munge/socket",
                     f"--key-file={path}/munge/key", f"--pid-file={path}/munge/pid",
                     f"--log-file={path}/munge/log", f"--seed-file={path}/munge/seed"),
        ]  # fmt: skip
        try:
            wait_until(Path(path, "munge/socket").exists)
            started.append(_program(slurm, "slurmctld", "-D", "-c"))
            started.append(_program(slurm, "slurmd", "-D"))
            wait_until(lambda: "idle" in _answer(slurm, "sinfo", "-h", "-o", "%T"))
            yield slurm
        finally:
            for process in reversed(started):
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(20)
                process.kill()
                process.wait()


@contextmanager
def api(slurm: Slurm) -> Generator[Path]:
    """The socket of slurmrestd, which refuses to run as root."""
    folder = slurm.folder / "rest"
    nobody = pwd.getpwnam("nobody")
    folder.mkdir()
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    process = _program(
        slurm, "setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups",
        "slurmrestd", "-t", str(CLIENTS), "-s", "openapi/v0.0.38", "-a", "rest_auth/local",
        f"unix:{folder}/socket",
    )  # fmt: skip
    try:
        wait_until((folder / "socket").exists)
        yield folder / "socket"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def _prepared(folder: Path) -> Slurm:
    folder.chmod(0o755)
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir(mode=0o755)
    key = folder / "munge/key"
    key.touch(mode=0o400)
    key.write_bytes(secrets.token_bytes(128))
    host = socket.gethostname().split(".")[0]
    text = CONFIGURATION.format(
        folder=folder, host=host, cpus=CPUS, controller=_free_port(), node=_free_port()
    )
    (folder / "slurm.conf").write_text(text)
    environment = {
        "PATH": os.environ["PATH"] + ":/usr/sbin",
        "SLURM_CONF": str(folder / "slurm.conf"),
        "LANG": "C.UTF-8",
    }
    return Slurm(folder=folder, environment=environment)


def _program(slurm: Slurm, *command: str) -> subprocess.Popen[bytes]:
    with (slurm.folder / f"{Path(command[0]).name}.out").open("ab") as out:
        return subprocess.Popen(
            command, env=slurm.environment, cwd=slurm.folder, stdout=out, stderr=out
        )


def _answer(slurm: Slurm, *command: str) -> str:
    done = subprocess.run(
        command, env=slurm.environment, capture_output=True, text=True, check=False
    )
    return done.stdout


def wait_until(true: Callable[[], bool], within_s: float = 30.0) -> None:
    end = time.monotonic() + within_s
    while not true():
        if time.monotonic() > end:
            raise TimeoutError("Slurm did not start: look at its logs")
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
