"""The one process of a daemon run by root that stays root: on request it makes the runner run.

It is forked before the daemon lets go of root, and ends when the daemon does.
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
from collections.abc import Awaitable, Callable
from pathlib import Path

from odcd.account import Account
from odcd.descriptors import as_before
from odcd.errors import RunnerDown
from odcd.runner.launch import launch_runner

log = logging.getLogger(__name__)

Launcher = Callable[[], Awaitable[None]]

REQUEST = b"launch\n"
REAP_EVERY_S = 10.0
MAX_ANSWER = 65536


def direct(run_folder: Path, account: Account) -> Launcher:
    """For a daemon that runs as its user: launches the runner itself."""

    async def launch() -> None:
        await asyncio.to_thread(
            launch_runner, run_folder, account.uid, account.gid, adapt=as_before
        )

    return launch


def fork(run_folder: Path, owner: Account) -> Launcher:
    """Leave a keeper behind with our rights. Call before any thread or event loop exists."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        _keep(theirs, run_folder, owner)
    theirs.close()
    ours.setblocking(False)
    return _Remote(ours).launch


class _Remote:
    def __init__(self, keeper: socket.socket) -> None:
        self._keeper = keeper
        self._turn = asyncio.Lock()

    async def launch(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with self._turn:
                await loop.sock_sendall(self._keeper, REQUEST)
                answer = await loop.sock_recv(self._keeper, MAX_ANSWER)
        except OSError:
            answer = b""
        if not answer:
            raise RunnerDown(
                "the keeper, which starts the runner as root, is gone",
                "Restart odcd; running jobs go on: odcd up",
            )
        error = json.loads(answer)["error"]
        if error:
            raise RunnerDown(
                f"the runner does not start: {error}", "See runner/runner.log in home."
            )


def _keep(requests: socket.socket, run_folder: Path, owner: Account) -> None:
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
                if not requests.recv(MAX_ANSWER):
                    break
                requests.sendall(json.dumps({"error": _launch(run_folder, owner)}).encode())
    os._exit(0)


def _launch(run_folder: Path, owner: Account) -> str | None:
    try:
        launch_runner(run_folder, owner.uid, owner.gid)
    except Exception as error:
        log.exception("keeper.launch_failed")
        return str(error) or type(error).__name__
    return None


def _reap() -> None:
    """Runners of the past: they are our children and leave zombies."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
