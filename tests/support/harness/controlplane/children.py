"""Programs that a test runs: each has its own log, and none outlives the test's process."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
# The kernel sends the signal when the THREAD that forked ends, so one that lives to the end forks.
_forker = ThreadPoolExecutor(1, "forks-children")


def module(name: str, *args: str) -> tuple[list[str], dict[str, str]]:
    """Command and environment that run a module of the tests as a program."""
    folders = [str(Path(__file__).parents[4]), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    return [sys.executable, "-m", name, *args], env


_PORTS = range(12_000, 30_000)
# Runs beside this one begin elsewhere.
_next_port = itertools.islice(itertools.cycle(_PORTS), os.getpid() * 97 % len(_PORTS), None)


def free_port() -> int:
    """A port of the loopback that nothing listens on now.

    Below those that the kernel gives to outgoing connections, which may take one before it is used.
    """
    for _ in _PORTS:
        port = next(_next_port)
        with contextlib.suppress(OSError), socket.socket() as found:
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"no port is free from {_PORTS.start} to {_PORTS.stop - 1}")


def wait_until(true: Callable[[], object], what: str, within_s: float = 180.0) -> None:
    """Return when `true` returns true; fails with `what` when it takes too long."""
    until = time.monotonic() + within_s
    while not true():
        if time.monotonic() > until:
            raise AssertionError(f"waited {within_s:g} s in vain for {what}")
        time.sleep(0.05)


def die_with_parent() -> None:
    """Between fork and exec: end when the thread that forked does."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """One program; may be killed, paused and started again."""

    def __init__(self, argv: list[str], log: Path, env: Mapping[str, str] | None = None) -> None:
        self.argv = argv
        self.log = log
        self._env = dict(env) if env is not None else None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.argv[0]} was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        assert not self.running, f"{self.argv[0]} runs already"
        self._process = _forker.submit(self._spawn).result()

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.argv,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.log.parent,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def wait_until(self, true: Callable[[], object], what: str, within_s: float = 180.0) -> None:
        """As wait_until, but fails at once with the end of the log if the program ended."""

        def or_dead() -> object:
            assert self.running, f"{Path(self.argv[0]).name} ended:\n{self.tail()}"
            return true()

        try:
            wait_until(or_dead, what, within_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tail()}") from None

    def tail(self, lines: int = 20) -> str:
        """The end of its output."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def wait(self, within_s: float = 60.0) -> int:
        """Until it ends by itself; its exit status."""
        assert self._process is not None, f"{self.argv[0]} was never started"
        return self._process.wait(within_s)

    def kill(self) -> None:
        """At once, as when a machine loses power; a paused one too."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, within_s: float = 5.0) -> None:
        """By TERM, then by KILL."""
        if self._process is None or not self.running:
            return
        self.resume()
        self._process.terminate()
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
