"""The file descriptors of this process: its limits, and how to detect that none is free."""

from __future__ import annotations

import errno
import resource
from collections.abc import Sequence
from pathlib import Path

MAX_DESCRIPTORS = 65_536
"""The soft limit is not raised further: some libraries iterate over every possible descriptor."""
RESERVED = 256
"""For the daemon's own use: the database, the runner, files it reads, the cluster's API."""

_before: list[int] = []


def raise_limit() -> int:
    """Raise the soft limit to the hard one, at most MAX_DESCRIPTORS; return the new limit.

    Children started with as_before() get the previous limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= target:
        return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    _before.append(soft)
    return target


def for_connections() -> int:
    """The maximum number of client connections that leaves the daemon its own descriptors.

    Each may need a second one: the log it follows, or the other end of its tunnel.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    return max((limit - min(RESERVED, limit // 2)) // 2, 8)


def as_before(command: Sequence[str | Path]) -> list[str]:
    """Wrap the command so that it runs with this process's original soft limit.

    A shell lowers its own limit and then executes the command, which keeps the process id. Code
    between fork and exec could do this too, but may deadlock in a process with threads.
    """
    arguments = [str(word) for word in command]
    if not _before:
        return arguments
    return ["/bin/sh", "-c", 'ulimit -S -n "$0" && exec "$@"', str(_before[0]), *arguments]


def ran_out(error: BaseException) -> bool:
    """Whether no descriptor was free, in this process or in the system. This is temporary and
    proves nothing about the file."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)
