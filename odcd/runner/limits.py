"""The runner's own limits, which jobs must not inherit, and the limits of jobs."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Mapping, Sequence

NICER = 5
OOM_SCORE = "-900"


class Limits:
    """The runner's own limits. Its shims drop them again."""

    def __init__(self) -> None:
        self._nofile = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._niceness = os.getpriority(os.PRIO_PROCESS, 0)

    def raise_own(self) -> None:
        """As far as permitted, raise the limit of open files for all jobs, take a higher CPU
        priority than jobs that fork endlessly, and avoid being killed for memory that jobs use."""
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
"""The number of a limit, and its soft and hard value, for the kernel."""


def differing(limits: Mapping[str, Sequence[int | None]]) -> list[Set]:
    """The job's limits that differ from those that a child of this process would inherit. A limit
    that cannot be raised that far is raised as far as possible."""
    found: list[Set] = []
    for name, (soft, hard) in limits.items():
        number = getattr(resource, f"RLIMIT_{name.upper()}", None)
        if number is not None:
            own = resource.getrlimit(number)
            possible = _possible(number, own, (_value(soft), _value(hard)))
            if possible != own:
                found.append((number, *possible))
    return found


def _value(limit: int | None) -> int:
    return resource.RLIM_INFINITY if limit is None else limit


def _possible(number: int, own: tuple[int, int], requested: tuple[int, int]) -> tuple[int, int]:
    soft, hard = _least(*requested), requested[1]
    if _least(own[1], hard) == hard:
        return soft, hard
    try:
        # This process may have the higher limit, too, because it sets the limits of each job.
        resource.setrlimit(number, (own[0], hard))
    except (OSError, ValueError):
        return _least(soft, own[1]), own[1]
    return soft, hard


def _least(one: int, other: int) -> int:
    finite = [limit for limit in (one, other) if limit != resource.RLIM_INFINITY]
    return min(finite, default=resource.RLIM_INFINITY)


def is_ordinary() -> bool:
    """Whether this process has the scheduling and the OOM score that jobs start with."""
    with contextlib.suppress(OSError):
        if os.sched_getscheduler(0) == os.SCHED_OTHER and os.getpriority(os.PRIO_PROCESS, 0) == 0:
            fd = os.open("/proc/self/oom_score_adj", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.read(fd, 16) == b"0\n"
            finally:
                os.close(fd)
    return False


def apply(limits: list[Set], *, ordinary: bool) -> None:
    """Give this process a job's limits, and ordinary scheduling if it does not have it: a job
    inherits nothing from the shell that started odcd."""
    for number, soft, hard in limits:
        try:
            resource.setrlimit(number, (soft, hard))
        except (OSError, ValueError):
            continue
    if ordinary:
        return
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    _write_oom_score("0")


def _write_oom_score(score: str) -> None:
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(score)
