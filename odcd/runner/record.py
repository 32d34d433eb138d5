"""The file of one member: what the runner knows of it, and what outlives the runner.

members/<job>-<attempt>-<rank> is made whole before the member's process, so a full disk can refuse
a start and can never lose an exit: everything later is written in place. Each region has one
writer:

    intent   the runner, once     who it is, as whom, until when
    begun    the job's process    its pid, before it becomes the script: without it, it never began
    started  the shim             the script was executed
    control  the runner           the end as moved later, and a stop that is under way
    exit     the shim             how it ended, once none of its processes is left

The shim holds a flock on the file while it lives. The runner takes it before the shim has the file,
and both share it through one open file description, so it is free only when nobody cares for the
member.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import zlib
from pathlib import Path
from typing import Any, NamedTuple

INTENT = (0, 1024)
BEGUN = (1024, 256)
STARTED = (1280, 256)
CONTROL = (1536, 512)
EXIT = (2048, 2048)
SIZE = 4096

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

Regions = dict[str, Any]
"""What is written in each region, by its name; None where nothing is."""


class Begun:
    """The begun region, made ready by the shim for a process whose pid it cannot know yet.

    ticks: a moment before that process, as /proc/<pid>/stat counts. at: by the clock.
    """

    __slots__ = ("_rest",)

    def __init__(self, shim: int, ticks: int, at: float) -> None:
        self._rest = b',"ticks":%d,"shim":%d,"at":%r}' % (ticks, shim, at)

    def write(self, fd: int, pid: int) -> None:
        """pid 0: there is no process yet, but from now on there may be one. Raises OSError."""
        body = b'{"pid":%d' % pid + self._rest
        data = b"%08x %b\n" % (zlib.crc32(body), body)
        os.pwrite(fd, data.ljust(BEGUN[1]), BEGUN[0])


UNREADABLE: Regions = {"started": None, "exit": None, "begun": {"pid": 0, "ticks": 0}}
"""Stands for a record that cannot be read: it may have begun, and nobody knows how it ended."""
DETAIL_BYTES = 900
"""Of a failure's text, printable characters only: fits an exit record however it is quoted."""


class Key(NamedTuple):
    job: int
    attempt: int
    rank: int

    def __str__(self) -> str:
        return f"{self.job}-{self.attempt}-{self.rank}"

    @classmethod
    def parse(cls, name: str) -> Key | None:
        parts = name.split("-")
        if len(parts) != 3 or not all(part.isdigit() for part in parts):
            return None
        return cls(*map(int, parts))


def create(path: Path, intent: dict[str, Any], spare: Path | None = None) -> int:
    """Make the member's file, locked; its descriptor. Raises OSError (FileExistsError, ENOSPC).

    spare: a file to use up for it. File systems are slow to make and remove files at a high rate.
    """
    whole = encode(INTENT, intent).ljust(SIZE, b" ")
    if spare is not None and path.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    new = 0 if spare else os.O_CREAT | os.O_EXCL
    fd = os.open(spare or path, os.O_RDWR | os.O_CLOEXEC | new, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.pwrite(fd, whole, 0) != SIZE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if spare is not None:
            os.rename(spare, path)
    except BaseException:
        os.close(fd)
        with contextlib.suppress(OSError):
            (spare or path).unlink()
        raise
    return fd


def write(fd: int, region: tuple[int, int], facts: dict[str, Any]) -> None:
    os.pwrite(fd, encode(region, facts), region[0])


def write_file(path: Path, region: tuple[int, int], facts: dict[str, Any]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        write(fd, region, facts)
    finally:
        os.close(fd)


def read(fd: int) -> Regions:
    """Every region by name; None for one that was not, or not wholly, written."""
    whole = os.pread(fd, SIZE, 0)
    return {
        name: parse(whole[offset : offset + size])
        for name, (offset, size) in {
            "intent": INTENT, "begun": BEGUN, "started": STARTED, "control": CONTROL, "exit": EXIT,
        }.items()
    }  # fmt: skip


def read_file(path: Path) -> Regions:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read(fd)
    finally:
        os.close(fd)


def is_held(path: Path) -> bool:
    """Does the member's shim live (or is it just being made)?"""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def fits(region: tuple[int, int], facts: dict[str, Any]) -> bool:
    try:
        encode(region, facts)
    except ValueError:
        return False
    return True


def encode(region: tuple[int, int], facts: dict[str, Any]) -> bytes:
    body = _dumps(facts).encode()
    data = b"%08x " % zlib.crc32(body) + body + b"\n"
    if len(data) > region[1]:
        raise ValueError(f"a record of {len(data)} bytes does not fit its {region[1]}")
    return data.ljust(region[1], b" ")


def parse(data: bytes) -> dict[str, Any] | None:
    line, newline, _ = data.partition(b"\n")
    try:
        if newline and int(line[:8], 16) == zlib.crc32(line[9:]):
            return json.loads(line[9:])
    except ValueError:
        pass
    return None
