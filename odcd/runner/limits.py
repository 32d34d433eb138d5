"""What the runner takes for itself, and must not hand on to jobs."""

from __future__ import annotations

import contextlib
import os
import resource

NICER = 5
OOM_SCORE = "-900"


class Limits:
    """As they were before the runner took more."""

    def __init__(self) -> None:
        self._nofile = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._niceness = os.getpriority(os.PRIO_PROCESS, 0)

    def raise_own(self) -> None:
        """Files for every job; the processor before jobs that fork without end; no death for memory
        that jobs use. As far as we may."""
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._nofile[1], self._nofile[1]))
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, self._niceness - NICER)
        _write_oom_score(OOM_SCORE)

    def restore(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, self._nofile)
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, self._niceness)
        _write_oom_score("0")


def _write_oom_score(score: str) -> None:
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(score)
