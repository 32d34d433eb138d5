"""The one process of a daemon run by root that stays root: it starts the runner and PostgreSQL.

It is forked before the daemon lets go of root, and ends when the daemon does. A request is one word
of REQUESTS and carries nothing else: folders, accounts and settings are those that root gave it at
the fork, so a daemon that was taken over can change none of them.
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
from odcd.home.postgres import EmbeddedPostgres, watch
from odcd.runner.launch import launch_runner

log = logging.getLogger(__name__)

Launcher = Callable[[], Awaitable[None]]

LAUNCH = "launch"
LOOK, RESTART, STOP = "look", "restart", "stop"
"""Of PostgreSQL: its status; start it, for it died; end it, for nothing needs it."""
REAP_EVERY_S = 10.0
MAX_ANSWER = 65536


def direct(run_folder: Path, account: Account) -> Launcher:
    """For a daemon that runs as its user: launches the runner itself."""

    async def launch() -> None:
        await asyncio.to_thread(
            launch_runner, run_folder, account.uid, account.gid, adapt=as_before
        )

    return launch


@dataclass(frozen=True, slots=True)
class Kept:
    """What the daemon has of its keeper."""

    launch: Launcher
    postgres: KeptPostgres | None


def fork(run_folder: Path, owner: Account, postgres: EmbeddedPostgres | None = None) -> Kept:
    """Leave a keeper behind with our rights. Call before any thread or event loop exists."""
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
        """As EmbeddedPostgres.watch."""
        await watch(clock, self._look, self._restart)

    async def _look(self) -> str | None:
        return (await self._keeper.ask(LOOK)).get("status")

    async def _restart(self) -> None:
        _check(await self._keeper.ask(RESTART))

    def stop(self) -> None:
        """End it, once the event loop is closed. Raises DatabaseDown."""
        _check(self._keeper.ask_blocking(STOP))


def _check(answer: dict[str, Any]) -> None:
    if answer["error"]:
        raise DatabaseDown(answer["error"], answer.get("hint"))


class _Remote:
    def __init__(self, keeper: socket.socket) -> None:
        self._keeper = keeper
        # Of threads: a caller that is cancelled must not leave its answer to the next one.
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
                "the keeper, which starts the runner and PostgreSQL as root, is gone",
                "Restart odcd; running jobs go on: odcd up",
            )
        return json.loads(answer)

    async def launch(self) -> None:
        error = (await self.ask(LAUNCH))["error"]
        if error:
            raise RunnerDown(
                f"the runner does not start: {error}", "See runner/runner.log in home."
            )


def _keep(
    requests: socket.socket, run_folder: Path, owner: Account, postgres: EmbeddedPostgres | None
) -> None:
    # Signals of the terminal are the daemon's to act on; its end is ours.
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Above all the home's lock, which a keeper must not hold on to.
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
        log.exception("keeper.request_failed")
        return {"error": str(error) or type(error).__name__}
    return {"error": None}


def _reap() -> None:
    """Runners of the past: they are our children and leave zombies."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
