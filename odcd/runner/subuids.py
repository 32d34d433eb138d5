"""The subordinate user ids of each user, from /etc/subuid.

newuidmap gives them to a user namespace of the user. A file in it can be made setuid, so processes
outside the namespace can have these ids, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import struct
from pathlib import Path

FILE = Path("/etc/subuid")
_NS_GET_PARENT, _NS_GET_OWNER_UID = 0xB702, 0xB704
_MAX_DEEP = 32
"""The kernel allows no deeper nesting of namespaces."""


class Subuids:
    """Reads the file again when it changes. Without a file there are no subordinate ids."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or FILE
        self._read_as: tuple[int, int, int] | None = None
        self._ranges: list[tuple[str, range]] = []

    def owner_of(self, uid: int) -> int:
        """The owner of the id: another user, or the id itself."""
        for name, numbers in self._all():
            if uid in numbers:
                return _uid_of(name, uid)
        return uid

    def user_of(self, uid: int) -> int:
        """The same, except that an id with its own account belongs only to that account:
        handwritten ranges may overlap with the ids of a directory's users."""
        owner = self.owner_of(uid)
        if owner != uid:
            with contextlib.suppress(KeyError):
                return pwd.getpwuid(uid).pw_uid
        return owner

    def of(self, uid: int) -> list[range]:
        """The ids of that user, the user's own first."""
        ranges = [numbers for name, numbers in self._all() if _uid_of(name, -1) == uid]
        return [range(uid, uid + 1), *ranges]

    def _all(self) -> list[tuple[str, range]]:
        try:
            status = self._path.stat()
            read_as = status.st_ino, status.st_mtime_ns, status.st_size
            if read_as != self._read_as:
                lines = self._path.read_text(errors="replace").splitlines()
                self._ranges = [found for line in lines if (found := _range(line))]
                self._read_as = read_as
        except OSError:
            self._ranges, self._read_as = [], None
        return self._ranges


def _range(line: str) -> tuple[str, range] | None:
    parts = line.strip().split(":")
    if len(parts) != 3 or not parts[1].isdecimal() or not parts[2].isdecimal():
        return None
    return parts[0], range(int(parts[1]), int(parts[1]) + int(parts[2]))


def _uid_of(name: str, unknown: int) -> int:
    if name.isdecimal():
        return int(name)
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(name).pw_uid
    return unknown


class Owner:
    """A user's ids at one point in time."""

    def __init__(self, uid: int) -> None:
        self._ranges = Subuids().of(uid)

    def has(self, pid: int) -> bool:
        """Whether the process belongs to the user, by its ids or by its user namespace."""
        # Not by the owner of /proc/PID, which is root for a process that hides its memory.
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                if line.startswith(b"Uid:"):
                    return any(map(self._is_own, map(int, line.split()[1:]))) or self._made(pid)
        return False

    def _is_own(self, uid: int) -> bool:
        return any(uid in numbers for numbers in self._ranges)

    def _made(self, pid: int) -> bool:
        """Whether the user created the process's user namespace, or one around it."""
        path = f"/proc/{pid}/ns/user"
        try:
            if os.readlink(path) == os.readlink("/proc/self/ns/user"):
                return False
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        for _ in range(_MAX_DEEP):
            try:
                answer = fcntl.ioctl(fd, _NS_GET_OWNER_UID, bytes(4))
                if self._is_own(struct.unpack("I", answer)[0]):
                    return True
                # Fails at the runner's own namespace.
                parent = fcntl.ioctl(fd, _NS_GET_PARENT)
            except OSError:
                return False
            finally:
                os.close(fd)
            fd = parent
        os.close(fd)
        return False
