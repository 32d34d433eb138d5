"""Keeps track of the runner's own children, to recognize job processes that became children of it.

The runner is a subreaper, like every shim: when a shim is killed, the processes below it become
children of the runner. A child that the runner did not fork is such a stray.
"""

from __future__ import annotations

import contextlib
import os

from odcd.runner import processes
from odcd.runner.processes import Process

_known: set[int] = set()


def fork() -> int:
    """os.fork, but the child does not count as a stray. Raises OSError when no process can be
    created."""
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
