"""Output of a job that odc keeps. It passes through the shim, which enforces the quota.

A job gets pipes, so it can neither write past its quota nor reach the file. Output above the quota
is read and dropped: the job continues, and a line in the output says so.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from typing import Any

from odcd.runner.begin import CannotBegin

FULL = ".full"
"""A file in the output folder while all jobs together have reached their limit."""

_READ_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024
_LOOK_BYTES = 1024 * 1024
_FREE_SHARE = 20
_FREE_BYTES = 1024**3
_MIB = 1024 * 1024


def full_of(uid: int) -> str:
    """The same for the running jobs of one user together."""
    return f"{FULL}-{uid}"


class Quota:
    """The remaining quota of one member, for all its streams together."""

    def __init__(self, folder: str, limit: int, uid: int) -> None:
        self._limit = limit
        self._full = f"{folder}/{FULL}"
        self._users_full = f"{folder}/{full_of(uid)}"
        self._left = limit
        self._folder = folder
        self._until_look = 0
        self._lacks_space = False

    def refusal(self, size: int) -> str | None:
        """Why so many bytes are not kept. None: they are kept, and count."""
        if size > self._left:
            self._left = 0
            return f"output limit of this job reached ({self._limit // _MIB} MiB)"
        if os.path.exists(self._full):
            return "output limit of all jobs together reached"
        if os.path.exists(self._users_full):
            return "output limit of your running jobs together reached"
        self._until_look -= size
        if self._until_look <= 0 or self._lacks_space:
            self._until_look = _LOOK_BYTES
            self._lacks_space = lacks_space(self._folder)
        if self._lacks_space:
            return "the disk of kept output is almost full"
        self._left -= size
        return None


def lacks_space(folder: str) -> bool:
    """The database may be on the same disk: a part of it stays free."""
    with contextlib.suppress(OSError):
        disk = os.statvfs(folder)
        reserve = min(_FREE_BYTES, disk.f_blocks * disk.f_frsize // _FREE_SHARE)
        return disk.f_bavail * disk.f_frsize < reserve
    return False


class Kept:
    """One stream's file. The user owns it, in a folder that only the runner can enter."""

    def __init__(self, path: str, order: dict[str, Any], quota: Quota) -> None:
        """Raises CannotBegin."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._quota = quota
        self._dropped = 0
        self._at_line_start = True
        try:
            self._fd = os.open(path, flags | os.O_NOFOLLOW, 0o600)
            if order["switch_user"]:
                # odcd.runner.opener describes who may read it.
                os.fchown(self._fd, order["uid"], order["gid"])
        except OSError as error:
            text = f"cannot keep output in {path}: {error.strerror}"
            raise CannotBegin(text, passing=True) from None

    def write(self, data: bytes) -> None:
        """Keep the data, or drop it and report that once. Never fails: if the disk is full, only
        the kept copy is lost."""
        refusal = self._quota.refusal(len(data))
        if refusal is None:
            if self._dropped:
                self._say(f"{self._dropped} bytes dropped; output is kept again")
                self._dropped = 0
            self._put(data)
            return
        if not self._dropped:
            self._say(f"{refusal}: further output is dropped, and the job continues")
        self._dropped += len(data)

    def add_line(self, text: str) -> None:
        """A line about the end of the job, also above its quota."""
        start = "" if self._at_line_start else "\n"
        self._put(f"{start}{text}\n".encode())

    def _say(self, text: str) -> None:
        self.add_line(f"odc: {text}")

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            self._dropped += len(view)
        self._at_line_start = data.endswith(b"\n")

    def leave(self) -> None:
        """In a fork: close without a report; the other process continues."""
        os.close(self._fd)

    def close(self) -> None:
        if self._dropped:
            self._say(f"{self._dropped} bytes dropped in all")
        os.close(self._fd)


def quota_of(order: dict[str, Any]) -> Quota:
    return Quota(os.path.dirname(order["spool"][0]), order["spool_bytes"], order["uid"])


class Spool:
    """Standard output and error of a job without a terminal."""

    def __init__(self, order: dict[str, Any]) -> None:
        """Raises CannotBegin, OSError."""
        quota = quota_of(order)
        self._streams: dict[int, Kept] = {}
        self.ends: list[int] = []
        """The job's ends of the pipes: its standard output and error."""
        try:
            for path in order["spool"]:
                kept = Kept(path, order, quota)
                reading, writing = os.pipe2(os.O_CLOEXEC)
                self._streams[reading] = kept
                self.ends.append(writing)
                os.set_blocking(reading, False)
                with contextlib.suppress(OSError):
                    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
                if order["switch_user"]:
                    # So that a script can open /dev/stdout.
                    os.fchown(writing, order["uid"], order["gid"])
        except BaseException:
            self.begun()
            self.close()
            raise

    def begun(self) -> None:
        """The job has its ends, or never will."""
        for fd in self.ends:
            os.close(fd)
        self.ends = []

    def leave(self) -> None:
        """In a fork: close everything except the ends. A job's input may be named /proc/self/fd/N;
        through a file that the user owns, the job could write past the quota."""
        for fd, kept in self._streams.items():
            os.close(fd)
            kept.leave()
        self._streams = {}

    def serving(self) -> dict[int, Callable[[], None]]:
        """Callbacks for readable descriptors; a descriptor at its end removes itself."""
        serve: dict[int, Callable[[], None]] = {}

        def server(fd: int) -> Callable[[], None]:
            def copy() -> None:
                if not self._copy(fd):
                    del serve[fd]

            return copy

        for fd in self._streams:
            serve[fd] = server(fd)
        return serve

    def _copy(self, fd: int) -> bool:
        """Whether more data may follow."""
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return True
        if data:
            self._streams[fd].write(data)
        return bool(data)

    def drain(self) -> None:
        """Read the remaining data: at most one pipe's capacity of each, even if a process continues
        writing."""
        for fd in self._streams:
            for _ in range(2 * _PIPE_BYTES // _READ_BYTES):
                try:
                    data = os.read(fd, _READ_BYTES)
                except BlockingIOError:
                    break
                if not data:
                    break
                self._streams[fd].write(data)

    def add_line(self, text: str) -> None:
        """To standard error."""
        if self._streams:
            list(self._streams.values())[-1].add_line(text)

    def close(self) -> None:
        for fd, kept in self._streams.items():
            os.close(fd)
            kept.close()
        self._streams = {}
