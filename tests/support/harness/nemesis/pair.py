"""Two daemons of one machine, which share a runner, and something that starts them again."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.support.harness.daemon import Odc, kill, wait
from tests.support.harness.nemesis.link import Link
from tests.support.harness.nemesis.server import Server

NODES = ("--node", "n[1-3]=h100:4x16")
GPUS = 4
LOOK_S = 0.1
AGAIN_S = 0.3


@dataclass(eq=False)
class Daemon:
    name: str
    odc: Odc
    link: Link
    dsn: str
    pids: list[int] = field(default_factory=list)
    """The process ids that it had."""
    process: subprocess.Popen[bytes] | None = None
    down: bool = False
    """It should not run now."""
    killed: bool = False
    died: list[str] = field(default_factory=list)
    """Why it exited by itself after it had been ready."""
    refused: int = 0
    """How often it exited before it was ready, as it does without a database."""
    _turn: threading.RLock = field(default_factory=threading.RLock)
    """Held to start or end it."""

    @property
    def clock(self) -> Path:
        return self.odc.home.with_name(f"{self.name}.clock")

    @property
    def log(self) -> Path:
        return self.odc.home.with_name(f"{self.name}.log")

    @property
    def _ready(self) -> Path:
        return self.odc.home.with_name(f"{self.name}.out")

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def ready(self) -> bool:
        return self.alive and b"odcd is ready" in self._ready.read_bytes()

    def start(self) -> None:
        self.killed = False
        argv = [sys.executable, "-m", "odcd", "serve", "--dsn", self.dsn, *NODES]
        with self.log.open("ab") as log, self._ready.open("wb") as out:
            self.process = subprocess.Popen(
                argv, env=self.odc.environment, cwd=self.odc.work,
                stdin=subprocess.DEVNULL, stdout=out, stderr=log,
            )  # fmt: skip
        self.pids.append(self.process.pid)

    def kill(self) -> None:
        """It stays down until `down` is taken back."""
        with self._turn:
            self.down = self.killed = True
            if self.process is not None:
                kill(self.process.pid)
                self.process.wait()

    def pause(self) -> None:
        if self.alive:
            assert self.process is not None
            kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        if self.alive:
            assert self.process is not None
            kill(self.process.pid, signal.SIGCONT)

    def step_clock(self, seconds: float) -> None:
        scratch = self.clock.with_suffix(".new")
        scratch.write_text(f"{seconds}")
        scratch.rename(self.clock)

    def mind(self) -> None:
        """Restart it after it exited, and record whether that was unexpected."""
        with self._turn:
            if not self.down and not self.alive:
                self._start_again()

    def _start_again(self) -> None:
        if self.process is not None and not self.killed:
            if b"odcd is ready" in self._ready.read_bytes():
                tail = self.log.read_text(errors="replace")[-3000:]
                self.died.append(f"daemon {self.name} ended: {self.process.returncode}\n{tail}")
            else:
                self.refused += 1
                time.sleep(AGAIN_S)
        self.start()


class Pair:
    """End all processes that were started in its folder, by their ids."""

    def __init__(self, folder: Path, server: Server, lease_s: float) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.daemons: list[Daemon] = []
        for number, name in enumerate("ab"):
            odc = Odc(folder / name, self.work)
            odc.make_folders()
            link = Link(server.port, f"127.0.0.{2 + number}")
            odc.environment |= {
                "ODC_LEASE_S": str(lease_s), "ODC_SWEEP_S": "2", "ODC_GRACE_S": "10",
            }  # fmt: skip
            daemon = Daemon(name, odc, link, server.dsn(link.port))
            odc.environment["ODC_TEST_CLOCK"] = str(daemon.clock)
            self.daemons.append(daemon)
        first, second = (daemon.odc.home for daemon in self.daemons)
        second.mkdir()
        # As a home looks: without it odcd takes it for the folder of something else.
        (second / "odcd.lock").touch()
        (second / "runner").symlink_to(first / "runner")
        self._over = threading.Event()
        self._minder = threading.Thread(target=self._mind, name="minder", daemon=True)

    def start(self) -> None:
        for daemon in self.daemons:
            daemon.start()
            wait(lambda daemon=daemon: daemon.ready, self.log)
        self._minder.start()

    def _mind(self) -> None:
        while not self._over.wait(LOOK_S):
            for daemon in self.daemons:
                daemon.mind()

    def of_holder(self, holder: str | None) -> Daemon | None:
        """The daemon whose process holds the term."""
        pid = int(holder.rpartition(":")[2]) if holder else None
        return next((daemon for daemon in self.daemons if pid in daemon.pids), None)

    def mend(self) -> None:
        for daemon in self.daemons:
            daemon.link.mend()
            daemon.resume()
            daemon.step_clock(0.0)
            daemon.down = False

    def log(self) -> str:
        return "\n".join(
            f"--- {daemon.name}:\n{daemon.log.read_text(errors='replace')[-2500:]}"
            for daemon in self.daemons
            if daemon.log.exists()
        )

    def close(self) -> None:
        self._over.set()
        if self._minder.is_alive():
            self._minder.join()
        for daemon in self.daemons:
            daemon.kill()
        for daemon in self.daemons:
            daemon.link.close()
        # Twice: the runner first, which starts jobs, then what it had started.
        for _ in range(2):
            left = self._processes()
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=10)

    def _processes(self) -> list[psutil.Process]:
        """Those that work in the folder or name it: keepers, the runner, its shims and jobs."""
        mark = str(self.folder)
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                command_line = [process.cwd(), *process.cmdline()]
                if "postgres" not in process.name() and any(mark in word for word in command_line):
                    found.append(process)
        return found
