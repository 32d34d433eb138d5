"""The runner's own children, so that a process of a job that became one is recognized.

The runner is a subreaper, as every shim is: when a shim is killed, the processes below it become
children of the runner. A child that the runner did not fork is such a stray.
"""

from __future__ import annotations

import contextlib
import os

from odcd.runner import processes
from odcd.runner.processes import Process

_known: set[int] = set()


def fork() -> int:
    """os.fork, and the child is no stray. Raises OSError when no process can be made."""
    pid = os.fork()
    if pid:
        _known.add(pid)
    return pid


def reap() -> None:
    """Collect every child that has ended."""
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            _known.discard(pid)


def strays() -> list[Process]:
    """Living processes of jobs whose shim was killed, parents first."""
    found: list[Process] = []
    for pid in processes.children(os.getpid()):
        if pid not in _known:
            itself = processes.describe(pid)
            found += [itself] if itself else []
            found += processes.descendants(pid)
    return found
