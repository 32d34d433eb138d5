"""Inspect other processes of this machine, and protect this one from inspection."""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_DUMPABLE = 4


def uid_of(pid: int) -> int | None:
    """The effective user id of a process; None if there is no such process."""
    # Not the owner of /proc/PID, which is root for a process that may not be inspected.
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return None
    found = next((line for line in text.splitlines() if line.startswith("Uid:")), "")
    numbers = found.split()[1:]
    return int(numbers[1]) if len(numbers) > 1 else None


def signal_of(pid: int, number: signal.Signals, uids: frozenset[int]) -> bool:
    """Send a signal to a process of one of these users; False if it belongs to another user or is
    gone.

    Raises PermissionError when it is theirs but we may not signal it.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except (ProcessLookupError, OverflowError, OSError):
        return False
    try:
        # The process id cannot be reused while the descriptor is open.
        if uid_of(pid) not in uids:
            return False
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, number)
            return True
        return False
    finally:
        os.close(descriptor)


def harden() -> None:
    """Protect this process's memory: no core dumps, and no debugger of the same user.

    A core dump would contain keys, scripts and environments. Programs it starts are not affected.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
