"""The file of one member: the runner's data about it, which outlives the runner.

members/<job>-<attempt>-<rank> gets its full size before the member's process starts. So a full disk
can prevent a start, but can never lose an exit: everything later is written in place. Each region
has one writer:

    intent   the runner, once     its key, its user, its time limit
    begun    the job's process    its pid, before it executes the script: without it, it never began
    started  the shim             the script was executed
    control  the runner           changes of the end, and a stop in progress
    exit     the shim             how it ended, once none of its processes is left

The shim holds a flock on the file while it lives. The runner takes the lock before the shim has the
file, and both share it through one open file description. So it is free only when no process
handles the member.
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
"""The content of each region by name; None for an empty one."""


class Begun:
    """The begun region, prepared by the shim for a process whose pid it does not know yet.

    ticks: a time before that process, in the unit of /proc/<pid>/stat. at: wall-clock time.
    """

    __slots__ = ("_rest",)

    def __init__(self, shim: int, ticks: int, at: float) -> None:
        self._rest = b',"ticks":%d,"shim":%d,"at":%r}' % (ticks, shim, at)

    def write(self, fd: int, pid: int) -> None:
        """pid 0: there is no process yet, but there may be one from now on. Raises OSError."""
        body = b'{"pid":%d' % pid + self._rest
        data = b"%08x %b\n" % (zlib.crc32(body), body)
        os.pwrite(fd, data.ljust(BEGUN[1]), BEGUN[0])


UNREADABLE: Regions = {"started": None, "exit": None, "begun": {"pid": 0, "ticks": 0}}
"""Used for an unreadable record: the member may have begun, and its outcome is unknown."""
DETAIL_BYTES = 900
"""The limit for a failure's text, printable characters only: it fits an exit record with any
quoting."""


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

    @classmethod
    def of(cls, request: dict[str, Any]) -> Key:
        """The member that a request names. Raises KeyError, TypeError or ValueError when a field
        is missing or not a number."""
        return cls(int(request["job"]), int(request["attempt"]), int(request["rank"]))


def create(path: Path, intent: dict[str, Any], spare: Path | None = None) -> int:
    """Create the member's file, locked, and return its descriptor. Raises OSError (FileExistsError,
    ENOSPC).

    spare: an existing file to use for it. File systems are slow to create and remove files at a
    high rate.
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
    """Every region by name; None for a region that was not, or not completely, written."""
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
    """Whether the member's shim lives, or is just being created."""
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
