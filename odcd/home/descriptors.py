"""Open files of this process: how many it may have, and what it looks like to run out of them."""

from __future__ import annotations

import errno
import resource
from collections.abc import Sequence
from pathlib import Path

MOST = 65_536
"""The soft limit is raised no further: some libraries walk over every possible descriptor."""
RESERVED = 256
"""For the daemon's own use: the database, the runner, files it reads, the cluster's API."""

_before: list[int] = []


def raise_limit() -> int:
    """Raise the soft limit to the hard one, at most MOST; the limit from then on.

    Children that are started by as_before() get the limit of before.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    _before.append(soft)
    return wanted


def for_connections() -> int:
    """How many connections of clients leave the daemon its own descriptors.

    Each may need a second one: the log it follows, the other end of its tunnel.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MOST if soft == resource.RLIM_INFINITY else soft
    return max((limit - min(RESERVED, limit // 2)) // 2, 8)


def as_before(command: Sequence[str | Path]) -> list[str]:
    """The command, run with the soft limit that this process began with.

    A shell lowers its own limit and becomes the command, which keeps the process id. Code between
    fork and exec could do it too, but may deadlock beside threads.
    """
    words = [str(word) for word in command]
    if not _before:
        return words
    return ["/bin/sh", "-c", 'ulimit -S -n "$0" && exec "$@"', str(_before[0]), *words]


def ran_out(error: BaseException) -> bool:
    """No descriptor was free, in this process or in the system: it passes, and proves nothing."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)
