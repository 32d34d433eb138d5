"""Wait for a job's process and reap its orphans, even if its user interferes; and add up what they
used."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable

from odcd.runner import processes
from odcd.runner.used import Used

_NOTED = {
    signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
    signal.SIGUSR2,
}  # fmt: skip


_used = Used()


def reap() -> tuple[int, int]:
    """The pid and wait status of a child that has ended; pid 0: none has. Raises
    ChildProcessError: there are no children."""
    pid, status, usage = os.wait4(-1, os.WNOHANG)
    if pid:
        _used.add(usage)
    return pid, status


def take_used() -> list[int]:
    """The use by all processes that were reaped since the last call, see Used.numbers."""
    global _used
    numbers, _used = _used.numbers(), Used()
    return numbers


class Children:
    """Reports that a child has ended by a SIGCHLD that can be selected. One object per process.

    A process with such an object ignores all other signals. Signals ignored by this process, or by
    the process that started odcd, get a handler that does nothing. An exec resets handlers, so a
    job's process has nothing to reset.
    """

    def __init__(self) -> None:
        self.woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in signal.valid_signals():
            if number in _NOTED or signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, _take_note)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def wait_for(self, child: int, serve: dict[int, Callable[[], None]]) -> int:
        """Return the child's wait status; until then, call the callbacks of readable descriptors. A
        callback may remove its own entry."""
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
                self.drain()
                status = collect(child)
                if status is not None:
                    return status
        finally:
            os.close(ended)

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.woken, 65536)


def _take_note(*_: object) -> None:
    """Does nothing: the wake-up descriptor reports the signal."""


def collect(child: int) -> int | None:
    """Reap all ended processes; return the wait status of the child if it has ended, too.

    A zombie stays while another process of its user traces it. Nothing of it runs, so it counts as
    ended.
    """
    while True:
        try:
            pid, status = reap()
        except ChildProcessError:
            return 0
        if pid == child:
            return status
        if pid == 0:
            return processes.exit_status(child)


def any_left() -> bool:
    """Reap ended processes; return whether a process below this one is alive."""
    while True:
        try:
            pid, _ = reap()
        except ChildProcessError:
            return False
        if pid == 0:
            return bool(processes.descendants(os.getpid()))
