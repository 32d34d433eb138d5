"""One daemon per home: the daemon holds a lock on odcd.lock, which contains its process id."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from odcd.errors import OdcError
from odcd.home.account import Account
from odcd.home.folder import open_marker, read_own

_PAUSES_S = (0.0, 0.01, 0.1)


class HomeLock:
    """Use with `with`. The kernel releases the lock at the latest when the process ends."""

    def __init__(self, path: Path, owner: Account) -> None:
        self._path = path
        self._owner = owner
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._descriptor = open_marker(self._path, self._owner)
        if not self._take():
            pid = _read(self._path)
            os.close(self._descriptor)
            raise OdcError(
                f"odcd already runs in {self._path.parent}: process {pid or 'unknown'}",
                "Stop it with `odcd down`, or choose another home with --home.",
            )
        self.write_pid()
        return self

    def _take(self) -> bool:
        """Try to take the lock. Retry, because a process that only checks for the holder also has
        it briefly."""
        for pause_s in _PAUSES_S:
            time.sleep(pause_s)
            with suppress(BlockingIOError):
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
        return False

    def write_pid(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def __exit__(self, *_: object) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def holder(path: Path) -> int | None:
    """The process id of this home's daemon, or None. Raises OdcError without access to the lock
    file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OdcError(
            f"{path} cannot be read: {error.strerror}",
            "Run this as root, or as the user who created this home.",
        ) from error
    try:
        # A shared lock fails exactly while the daemon holds its exclusive lock.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(path)
    finally:
        os.close(descriptor)
    return None


def holds(path: Path, pid: int) -> bool:
    """Whether the kernel reports this process as the holder of the lock.

    The daemon can write any number into the file, but cannot change the kernel's answer.
    """
    try:
        inode = path.lstat().st_ino
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    for line in locks:
        # 12: FLOCK  ADVISORY  WRITE 4127 fd:00:6573928 0 EOF
        fields = line.split()
        if fields[1:2] == ["FLOCK"] and fields[3:5] == ["WRITE", str(pid)]:
            held = fields[5].rpartition(":")[2]
            if held == str(inode):
                return True
    return False


def _read(path: Path) -> int | None:
    with suppress(OSError):
        text = read_own(path).strip()
        return int(text) if text.isdigit() else None
    return None
