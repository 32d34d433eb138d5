"""End the parts of a home from outside: its daemon, its running jobs, its runner."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from odcd.clock import Clock
from odcd.database.pool import Database
from odcd.errors import OdcError, RunnerDown
from odcd.home.account import service_account
from odcd.home.folder import former_owners
from odcd.home.lock import holder, holds
from odcd.home.processes import signal_of, uid_of
from odcd.records.job import Identity
from odcd.runner import protocol
from odcd.runner.launch import connect
from odcd.stores.store import Store

LIVE_STATES = ("CONFIGURING", "RUNNING", "COMPLETING")
DAEMON_TIMEOUT_S = 60.0
POLL_S = 0.05
KILL_TIMEOUT_S = 20.0


def end_daemon(lock: Path, timeout_s: float = DAEMON_TIMEOUT_S) -> None:
    """Send TERM to the daemon and wait; then KILL, which loses nothing."""
    pid = holder(lock)
    if pid is None:
        return
    # The daemon can write the lock file, so check that the process is a daemon's. A daemon that is
    # starting may still be root.
    daemons = former_owners(service_account())
    if holds(lock, pid):
        daemons |= {os.geteuid()}
    for number, wait_s in ((signal.SIGTERM, timeout_s), (signal.SIGKILL, timeout_s)):
        try:
            if not signal_of(pid, number, daemons) and uid_of(pid) is not None:
                raise OdcError(
                    f"{lock} names process {pid}, which is not odcd",
                    "Find the daemon with `ps -ef | grep odcd`, and end it.",
                )
        except PermissionError:
            raise OdcError(
                f"odcd (process {pid}) belongs to another user",
                "Run this as that user, or as root.",
            ) from None
        if _wait(lambda: holder(lock) is None and not _alive(pid), wait_s):
            return
    raise OdcError(
        f"odcd (process {pid}) does not stop", "See odcd.log in the home for what it waits for."
    )


async def count_running(dsn: str) -> int:
    async with Database(dsn, size=1) as database:
        return await database.fetchval("select count(*) from odc.running")


async def give_up_running(dsn: str, who: Identity, clock: Clock) -> None:
    """Record why the running jobs will be found ended: requeued if allowed, otherwise cancelled."""
    async with Database(dsn, size=1) as database:
        store = Store(database)
        live = {"state": list(LIVE_STATES)}
        answers = json.loads(await store.jobs.requeue(who, live, clock.now()))
        fixed = [a["job_id"] for a in answers if a["outcome"] == "refused"]
        if fixed:
            await store.jobs.cancel(who, {**live, "job_ids": fixed}, clock.now())


class RunnerClient:
    """Simple requests to a runner, in its current term: it obeys as if its daemon sent them."""

    def __init__(self, run_folder: Path) -> None:
        """Raises OSError when no runner accepts the connection."""
        self._socket = connect(run_folder)
        self._lines = self._socket.makefile("rb")
        hello = self.ask("hello", versions=list(protocol.VERSIONS))
        self.pid: int = hello["pid"]
        self.ask("hello", versions=list(protocol.VERSIONS), term=hello["term"])

    def ask(self, op: str, **fields: object) -> dict[str, Any]:
        try:
            self._socket.sendall(protocol.encode({"id": 1, "op": op, **fields}))
            answer = protocol.decode(self._lines.readline())
        except (OSError, protocol.ProtocolError) as error:
            raise RunnerDown("the runner disappeared", "Try again.") from error
        if "error" in answer:
            raise RunnerDown(f"the runner refused: {answer['error']['message']}")
        return answer["ok"]

    def live(self) -> set[tuple[int, int]]:
        """The (job, attempt) pairs that have a process."""
        members = self.ask("list")["members"]
        return {(m["job"], m["attempt"]) for m in members if m["state"] != "ended"}

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


def end_runner(run_folder: Path, grace_s: float | None = None) -> bool:
    """End the runner of a home; return whether it is gone. With grace_s, end its jobs first."""
    try:
        runner = RunnerClient(run_folder)
    except OSError:
        return True
    try:
        if grace_s is not None:
            for job, attempt in sorted(runner.live()):
                runner.ask(
                    "stop", job=job, attempt=attempt, signal=int(signal.SIGTERM), grace_s=grace_s
                )
            _wait(lambda: not runner.live(), grace_s + KILL_TIMEOUT_S)
        if not runner.ask("quit")["quitting"]:
            return False
        return _wait(lambda: not _alive(runner.pid), KILL_TIMEOUT_S)
    finally:
        runner.close()


def runner_lives(run_folder: Path) -> bool:
    try:
        RunnerClient(run_folder).close()
    except OSError:
        return False
    return True


def running_attempts(run_folder: Path) -> int:
    """The number of attempts with a process here, as reported by the runner."""
    with suppress(OSError):
        runner = RunnerClient(run_folder)
        try:
            return len(runner.live())
        finally:
            runner.close()
    return 0


def _alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def _wait(done: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True
