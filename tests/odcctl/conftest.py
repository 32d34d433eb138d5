from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.odcctl.peer import Peer, Run, serving
from tests.support.harness.forked import forks

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("ODC_UPDATE_GOLDEN") == "1"

Odcctl = Callable[..., Run]
Golden = Callable[[str, str], None]


@pytest.fixture
def home() -> Iterator[Path]:
    """A short path: a socket's may have 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="odcctl-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def peer(home: Path) -> Iterator[Peer]:
    with serving(Peer(home / "odcd.sock")) as server:
        yield server


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """Nothing of the caller's but what Python needs."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "ODC_HOME": str(home),
        "TZ": "UTC",
        "COLUMNS": "100",
        "LANG": "C.UTF-8",
    }


@pytest.fixture
def odcctl(home: Path, environment: dict[str, str]) -> Odcctl:
    """Run odcctl as users do: a process of its own, standard output not a terminal."""

    def run(*args: str | bytes, stdin: str | bytes = b"", **env: str) -> Run:
        sent = stdin.encode() if isinstance(stdin, str) else stdin
        done = forks().run(args, sent, home, {**environment, **env}, timeout_s=120)
        return Run(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def interrupt(process: subprocess.Popen[Any], number: int) -> int:
    """Send a signal, and wait for the end of the process; its code."""

    def ended(within_s: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            process.wait(within_s)
        return process.returncode is not None

    send(process, number, ended)
    return process.returncode


def send(process: subprocess.Popen[Any], number: int, heeded: Callable[[float], object]) -> None:
    """Send a signal until it is heeded, which heeded(seconds) waits for: again when the process
    slept on, for Python loses one that arrives just before it blocks in a system call. One that is
    only slow gets no second, which means something else."""
    process.send_signal(number)
    for _ in range(60):
        before = _sleep(process.pid)
        if heeded(2):
            return
        if before is not None and before == _sleep(process.pid):
            process.send_signal(number)
    raise AssertionError("the signal was never heeded")


def _sleep(pid: int) -> list[str] | None:
    """Of its main thread: another after each time that it was awake, and none while it is."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    if "State:\tS" not in status:
        return None
    return [line for line in status.splitlines() if "ctxt_switches" in line]


@pytest.fixture
def golden() -> Golden:
    """Compare a text with golden/NAME.txt, trailing blanks cut; ODC_UPDATE_GOLDEN=1 rewrites it."""

    def compare(name: str, text: str) -> None:
        cut = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
        path = GOLDEN / f"{name}.txt"
        if UPDATE:
            path.write_text(cut)
        assert cut == path.read_text()

    return compare
