"""The only process that stays root in a daemon started by root. It starts the runner and
PostgreSQL.

It is forked before the daemon drops root, and ends with the daemon. A request is a single word
without arguments: folders, accounts and settings were fixed at the fork, so a compromised daemon
cannot change them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import select
import signal
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odcd.clock import Clock
from odcd.errors import DatabaseDown, OdcError, RunnerDown
from odcd.home.account import Account
from odcd.home.descriptors import as_before
from odcd.home.postgres import EmbeddedPostgres
from odcd.home.postgres_watch import watch
from odcd.runner.launch import launch_runner

log = logging.getLogger(__name__)

Launcher = Callable[[], Awaitable[None]]

LAUNCH = "launch"
LOOK, RESTART, STOP = "look", "restart", "stop"
"""Requests about PostgreSQL: return its status; start it after it died; stop it when nothing needs
it."""
REAP_EVERY_S = 10.0
MAX_ANSWER = 65536


def direct(run_folder: Path, account: Account) -> Launcher:
    """Return a launcher that starts the runner directly, for a daemon that does not run as root."""

    async def launch() -> None:
        await asyncio.to_thread(
            launch_runner, run_folder, account.uid, account.gid, adapt=as_before
        )

    return launch


@dataclass(frozen=True, slots=True)
class Kept:
    """The daemon's handles for the services that the keeper provides."""

    launch: Launcher
    postgres: KeptPostgres | None


def fork(run_folder: Path, owner: Account, postgres: EmbeddedPostgres | None = None) -> Kept:
    """Fork a keeper with our rights. Call it before any thread or event loop exists."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        _keep(theirs, run_folder, owner, postgres)
    theirs.close()
    remote = _Remote(ours)
    return Kept(remote.launch, None if postgres is None else KeptPostgres(remote, postgres))


class KeptPostgres:
    """The server of a home, for a daemon that may neither read its files nor signal it."""

    def __init__(self, keeper: _Remote, postgres: EmbeddedPostgres) -> None:
        self._keeper = keeper
        self.version = postgres.version

    async def watch(self, clock: Clock) -> None:
        """Same as EmbeddedPostgres.watch."""
        await watch(clock, self._look, self._restart)

    async def _look(self) -> str | None:
        return (await self._keeper.ask(LOOK)).get("status")

    async def _restart(self) -> None:
        _check(await self._keeper.ask(RESTART))

    def stop(self) -> None:
        """Stop it, after the event loop is closed. Raises DatabaseDown."""
        _check(self._keeper.ask_blocking(STOP))


def _check(answer: dict[str, Any]) -> None:
    if answer["error"]:
        raise DatabaseDown(answer["error"], answer.get("hint"))


class _Remote:
    def __init__(self, keeper: socket.socket) -> None:
        self._keeper = keeper
        # A lock for threads: a cancelled caller must not leave its answer to the next one.
        self._turn = threading.Lock()

    async def ask(self, word: str) -> dict[str, Any]:
        """Raises RunnerDown when the keeper is gone."""
        return await asyncio.to_thread(self.ask_blocking, word)

    def ask_blocking(self, word: str) -> dict[str, Any]:
        try:
            with self._turn:
                self._keeper.sendall(f"{word}\n".encode())
                answer = self._keeper.recv(MAX_ANSWER)
        except OSError:
            answer = b""
        if not answer:
            raise RunnerDown(
                "the root helper, which starts the runner and PostgreSQL, is gone",
                "Restart odcd; running jobs continue: odcd up",
            )
        return json.loads(answer)

    async def launch(self) -> None:
        error = (await self.ask(LAUNCH))["error"]
        if error:
            raise RunnerDown(
                f"the runner does not start: {error}", "See runner/runner.log in the home."
            )


def _keep(
    requests: socket.socket, run_folder: Path, owner: Account, postgres: EmbeddedPostgres | None
) -> None:
    # The daemon handles the terminal's signals; the keeper ends when the daemon does.
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Close inherited descriptors, above all the home's lock, which the keeper must not hold.
    for name in [path.name for path in Path("/proc/self/fd").iterdir()]:
        if int(name) > 2 and int(name) != requests.fileno():
            with contextlib.suppress(OSError):
                os.close(int(name))
    with contextlib.suppress(KeyboardInterrupt, OSError):
        while True:
            readable, _, _ = select.select([requests], [], [], REAP_EVERY_S)
            _reap()
            if readable:
                request = requests.recv(MAX_ANSWER)
                if not request:
                    break
                answer = _obey(request.decode(errors="replace"), run_folder, owner, postgres)
                requests.sendall(json.dumps(answer).encode())
    os._exit(0)


def _obey(
    request: str, run_folder: Path, owner: Account, postgres: EmbeddedPostgres | None
) -> dict[str, Any]:
    try:
        match request.strip():
            case "launch":
                launch_runner(run_folder, owner.uid, owner.gid)
            case "look" if postgres:
                return {"error": None, "status": postgres.look()}
            case "restart" if postgres:
                postgres.restart()
            case "stop" if postgres:
                postgres.stop()
            case _:
                return {"error": f"no such request: {request[:40]!r}"}
    except OdcError as error:
        return {"error": error.message, "hint": error.hint}
    except Exception as error:
        log.exception("root_helper.request_failed")
        return {"error": str(error) or type(error).__name__}
    return {"error": None}


def _reap() -> None:
    """Reap runners that have ended: they are our children and leave zombies."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
