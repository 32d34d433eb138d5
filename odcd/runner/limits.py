"""What the runner takes for itself and must not hand on to jobs, and the limits jobs have."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Mapping, Sequence

NICER = 5
OOM_SCORE = "-900"


class Limits:
    """The runner's own. Its shims give them up again."""

    def __init__(self) -> None:
        self._nofile = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._niceness = os.getpriority(os.PRIO_PROCESS, 0)

    def raise_own(self) -> None:
        """Files for every job; the processor before jobs that fork without end; no death for memory
        that jobs use. As far as we may."""
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._nofile[1], self._nofile[1]))
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, min(0, self._niceness) - NICER)
        _write_oom_score(OOM_SCORE)

    def restore(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, self._nofile)
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, self._niceness)
        _write_oom_score("0")


Set = tuple[int, int, int]
"""A limit's number, soft and hard, as the kernel takes them."""


def differing(limits: Mapping[str, Sequence[int | None]]) -> list[Set]:
    """The job's limits that a child of this process would not have."""
    found: list[Set] = []
    for name, (soft, hard) in limits.items():
        number = getattr(resource, f"RLIMIT_{name.upper()}", None)
        if number is not None:
            wanted = _value(soft), _value(hard)
            if resource.getrlimit(number) != wanted:
                found.append((number, *wanted))
    return found


def is_ordinary() -> bool:
    """Has this process the scheduling and the OOM score that jobs begin with?"""
    with contextlib.suppress(OSError):
        if os.sched_getscheduler(0) == os.SCHED_OTHER and os.getpriority(os.PRIO_PROCESS, 0) == 0:
            with open("/proc/self/oom_score_adj", "rb") as file:
                return file.read() == b"0\n"
    return False


def apply(limits: list[Set], *, ordinary: bool) -> None:
    """Give this process a job's limits, and an ordinary scheduling unless it has it: nothing is
    inherited from the shell that odcd was started from. A limit that may not be raised so far is
    raised as far as possible."""
    for number, soft, hard in limits:
        _set(number, soft, hard)
    if ordinary:
        return
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    _write_oom_score("0")


def _value(limit: int | None) -> int:
    return resource.RLIM_INFINITY if limit is None else limit


def _set(number: int, soft: int, hard: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        try:
            resource.setrlimit(number, (soft, hard))
        except (OSError, ValueError):
            hard = _least(hard, resource.getrlimit(number)[1])
            resource.setrlimit(number, (_least(soft, hard), hard))


def _least(one: int, other: int) -> int:
    finite = [limit for limit in (one, other) if limit != resource.RLIM_INFINITY]
    return min(finite, default=resource.RLIM_INFINITY)


def _write_oom_score(score: str) -> None:
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(score)
