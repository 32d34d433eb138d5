"""Wait for a job's process and collect what it orphaned, whatever its user does meanwhile."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable

from odcd.runner import processes

_NOTED = {
    signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
    signal.SIGUSR2,
}  # fmt: skip


class Children:
    """Tells its owner, once per process, that a child has ended: a SIGCHLD that can be selected.

    No other signal does anything to a process that has made one. What it ignores, and what whoever
    started odcd ignored, is handled by a function that does nothing: exec resets that, so a job's
    process has nothing to reset.
    """

    def __init__(self) -> None:
        self.woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in signal.valid_signals():
            if number in _NOTED or signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, _take_note)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def wait_for(self, child: int, serve: dict[int, Callable[[], None]]) -> int:
        """Return the child's wait status; until then call what serves a descriptor that is
        readable. A callback may remove its own entry."""
        ended = os.pidfd_open(child)
        poll = select.poll()
        for fd in (ended, self.woken, *serve):
            poll.register(fd, select.POLLIN)
        try:
            while True:
                for fd, _ in poll.poll():
                    if fd in serve:
                        serve[fd]()
                        if fd not in serve:
                            poll.unregister(fd)
                self._drain()
                status = collect(child)
                if status is not None:
                    return status
        finally:
            os.close(ended)

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.woken, 65536)


def _take_note(*_: object) -> None:
    """The wake-up descriptor tells."""


def collect(child: int) -> int | None:
    """Reap all that has ended; the wait status of the child if it has, too.

    A zombie stays while another process of its user traces it. Nothing of it runs any more, so it
    counts as ended.
    """
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 0
        if pid == child:
            return status
        if pid == 0:
            return processes.exit_status(child)


def any_left() -> bool:
    """Reap what has ended; does anything below this process live?"""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return bool(processes.descendants(os.getpid()))
