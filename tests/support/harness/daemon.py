"""A whole odc in its own home: the real commands, the real daemon, real jobs."""

from __future__ import annotations

import http.client
import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from odcd.database.pool import Database
from odcd.home.database_access import with_database
from odcd.home.lock import holder
from odcd.home.postgres import EmbeddedPostgres
from tests.support.harness.database import make_home, remove_home, sow
from tests.support.harness.forked import AT_START, SITE_PATH, forks

T = TypeVar("T")

TIMEOUT_S = 60
ENDING_S = 5


class Odc:
    """Runs odcd and odcctl against one home, as a shell would."""

    def __init__(self, home: Path, work: Path) -> None:
        self.home = home
        self.work = work
        self.user_home = work.with_name(f"{work.name}.user")
        """The user who runs the tests, as daemon and commands see it."""
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ODC_", "SBATCH_", "SLURM_", "PYTEST_", "XDG_", *AT_START))
        } | {
            "ODC_HOME": str(home), "HOME": str(self.user_home), "SHELL": "/bin/sh",
            "ODC_LISTEN": "none",
            # The user who runs the tests submits most jobs: root, in a container.
            "ODC_ALLOW_ROOT_JOBS": "1", "ODC_MIN_UID": "0",
            "LANG": "C.UTF-8", "PYTHONPATH": SITE_PATH,
        }  # fmt: skip

    def make_folders(self) -> None:
        for folder in (self.work, self.user_home):
            folder.mkdir(mode=0o755, exist_ok=True)

    def odcd(self, *argv: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self._checked(
            check,
            subprocess.run(
                [sys.executable, "-m", "odcd", *map(str, argv)],
                env=self.environment, cwd=self.work, capture_output=True, text=True,
                stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False,
            ),
        )  # fmt: skip

    def odcctl(self, *argv: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        arguments = [str(argument) for argument in argv]
        done = forks().run(arguments, b"", self.work, self.environment, TIMEOUT_S)
        return self._checked(
            check,
            subprocess.CompletedProcess(
                ["odcctl", *arguments], done.returncode, done.stdout.decode(), done.stderr.decode()
            ),
        )

    def _checked(
        self, check: bool, done: subprocess.CompletedProcess[str]
    ) -> subprocess.CompletedProcess[str]:
        if check:
            assert done.returncode == 0, f"{done.args}: {done.stdout}{done.stderr}{self.log()}"
        return done

    @contextmanager
    def serving(self, *argv: str) -> Iterator[subprocess.Popen[str]]:
        """odcd in the foreground, ready; ended with TERM at the end."""
        log_file = self.home.with_name(f"{self.home.name}.log")
        with log_file.open("a") as log, subprocess.Popen(
            [sys.executable, "-m", "odcd", *argv],
            env=self.environment, cwd=self.work, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
        ) as process:  # fmt: skip
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                assert "odcd is ready" in line, line + log_file.read_text()
                yield process
            finally:
                # A process that was stopped receives no signal.
                process.send_signal(signal.SIGCONT)
                process.terminate()

    def request(
        self, method: str, path: str, body: object = None, *, key: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> tuple[int, Any]:  # fmt: skip
        """Status and JSON of the answer. Raises OSError or HTTPException without an answer."""
        with self.asking(method, path, body, key=key, timeout_s=timeout_s) as connection:
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    @contextmanager
    def asking(
        self, method: str, path: str, body: object = None, *, key: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Iterator[http.client.HTTPConnection]:  # fmt: skip
        """A request that was sent, for callers that do not need its answer."""
        connection = http.client.HTTPConnection("localhost", timeout=timeout_s)
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.settimeout(timeout_s)
            connection.sock.connect(str(self.home / "odcd.sock"))
            headers = {"Content-Type": "application/json"} | (
                {"Idempotency-Key": key} if key else {}
            )
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, headers)
            yield connection
        finally:
            connection.close()

    def rows(self, query: str) -> list[Mapping[str, Any]]:
        """The answer of the embedded database, queried as odcd's account."""

        async def fetch(dsn: str) -> bytes:
            async with Database(dsn, size=1) as database:
                return pickle.dumps([dict(row) for row in await database.fetch(query)])

        return pickle.loads(with_database(self.home, None, fetch, of=bytes))

    def up(self, *argv: str) -> str:
        return self.odcd("up", "--detach", *argv).stdout

    def down(self) -> str:
        """Stop everything; what odcd printed. Starts no odcd if there is nothing to stop."""
        if not (self.processes() or self.runner_pid or self.postmaster_pid):
            return ""
        done = self.odcd("down", "--force", check=False)
        return done.stdout + done.stderr

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

    @property
    def runner_pid(self) -> int | None:
        return _number_in(self.home / "runner" / "runner.lock")

    @property
    def postmaster_pid(self) -> int | None:
        running = EmbeddedPostgres(self.home).postmaster()
        return running.pid if running else None

    def shim_pids(self) -> list[int]:
        """The processes between the runner and its jobs."""
        found: list[int] = []
        for line in self.processes():
            pid = int(line.partition(" ")[0])
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text() == "odc-shim\n":
                    found.append(pid)
        return sorted(found)

    def log(self) -> str:
        path = self.home / "odcd.log"
        return f"\n{path.read_text()[-3000:]}" if path.exists() else ""

    def processes(self) -> list[str]:
        """Command lines of every living process that belongs to this home."""
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
            # A process that is ending no longer has one.
            if command and (mark in command or working.startswith(mark)):
                found.append(f"{entry.name} {command.decode(errors='replace')}")
        return found

    def lasting(self) -> list[str]:
        """The processes that stay; one that was killed on a busy machine takes some time to end."""
        deadline = time.monotonic() + ENDING_S
        while (found := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found


@contextmanager
def new_odc(home: Path | None = None, seed: Path | None = None) -> Iterator[Odc]:
    """An odc with an empty home, or with a seed's database; everything that was started in it is
    removed at the end."""
    folder = make_home()
    odc = Odc(home or folder / "home", folder / "work")
    odc.make_folders()
    if seed is not None:
        sow(seed, odc.home)
    try:
        yield odc
    finally:
        stopped = odc.down()
        left = odc.lasting()
        for line in left:
            kill(int(line.partition(" ")[0]))
        remove_home(odc.home)
        shutil.rmtree(folder, ignore_errors=True)
        assert left == [], stopped


def kill(pid: int | None, number: signal.Signals = signal.SIGKILL) -> bool:
    """Send the signal, if there is such a process."""
    if pid is None:
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def gone(pid: int) -> bool:
    """True if there is no such process, or only a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _number_in(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdigit() else None


@contextmanager
def an_odc(home: Path, work: Path) -> Iterator[Odc]:
    odc = Odc(home, work)
    odc.make_folders()
    try:
        yield odc
    finally:
        odc.down()
    left = odc.processes()
    assert left == [], f"still running: {left}"


def wait(look: Callable[[], T | None], otherwise: Callable[[], str]) -> T:
    """The first result of look() that is not empty."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(otherwise())
