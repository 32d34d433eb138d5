"""The limit on kept output of all jobs: output of ended jobs is deleted first, starting with the
user who has the most.

However many jobs a user has, they displace that user's own output before the output of others.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from odcd.runner.log import Log
from odcd.runner.spool import FULL, full_of
from odcd.runner.subuids import Subuids

GONE = b"odc: this output was deleted: kept output of all jobs together reached its limit\n"
MAX_FILES = 100_000
"""The limit for files of ended jobs. Each takes a block of the disk, however short it is."""
RUNNING_SHARE = 2
"""Running jobs of one user keep at most this part (a half) if there may be several users."""
LOOK_S = 1.0
REST = 20
"""After each check the runner pauses for this many times the duration of the check."""
_MIB = 1024 * 1024


@dataclass(slots=True)
class _User:
    uid: int
    uids: set[int] = field(default_factory=set[int])
    """The owners of these files: the user, and the user's subordinate ids."""
    size: int = 0
    running: int = 0
    ended: list[tuple[int, str, int]] = field(default_factory=list)
    """Time of the last write, path and size, sorted in reverse: the oldest is last."""


class Keeping:
    def __init__(self, folder: Path, log: Log, subuids: Subuids | None = None) -> None:
        self._folder = folder
        self._subuids = subuids or Subuids()
        self._log = log
        self._next_look = 0.0

    def look_after(self, live: set[str], total_mib: int) -> None:
        """live: members that may still write. Raises nothing: files may vanish meanwhile."""
        began = time.monotonic()
        if began < self._next_look:
            return
        with contextlib.suppress(OSError):
            self._look(live, total_mib * _MIB)
        took = time.monotonic() - began
        self._next_look = time.monotonic() + max(LOOK_S, REST * took)

    def _look(self, live: set[str], limit: int) -> None:
        users, marks = self._users(live)
        _unlink_beyond(MAX_FILES, users)
        share = limit // RUNNING_SHARE if os.geteuid() == 0 else limit
        # Output of a user's running jobs above the share, between two checks, does not displace
        # others'.
        total = sum(user.size - max(0, user.running - share) for user in users)
        deleted, total = _replace_beyond(limit, users, total)
        if deleted:
            self._log.info("output.deleted", files=deleted, left_bytes=total)
        full = {full_of(uid) for user in users if user.running > share for uid in user.uids}
        self._set_full(marks, full | {FULL} if total > limit else full)

    def _users(self, live: set[str]) -> tuple[list[_User], set[str]]:
        """The kept output by user, and the existing marker files."""
        users: dict[int, _User] = {}
        owners: dict[int, int] = {}
        marks: set[str] = set()
        for entry in os.scandir(self._folder):
            if entry.name.startswith("."):
                marks.add(entry.name)
                continue
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                uid = status.st_uid
                if uid not in owners:
                    owners[uid] = self._subuids.user_of(uid)
                user = users.setdefault(owners[uid], _User(owners[uid]))
                user.uids.add(uid)
                user.size += status.st_size
                if entry.name.rpartition(".")[0] in live:
                    user.running += status.st_size
                else:
                    user.ended.append((status.st_mtime_ns, entry.path, status.st_size))
        for user in users.values():
            user.ended.sort(reverse=True)
        return list(users.values()), marks

    def _set_full(self, marks: set[str], full: set[str]) -> None:
        for name in full - marks:
            self._log.info("output.full", mark=name)
            (self._folder / name).touch()
        for name in marks - full:
            if name.startswith(FULL):
                self._log.info("output.has_space", mark=name)
                (self._folder / name).unlink()


def _unlink_beyond(limit: int, users: Iterable[_User]) -> None:
    """Delete files of the user with the most files first."""
    heap = [(-len(user.ended), user.uid, user) for user in users if user.ended]
    heapq.heapify(heap)
    for _ in range(-sum(count for count, _, _ in heap) - limit):
        count, uid, user = heap[0]
        _, path, size = user.ended.pop()
        with contextlib.suppress(OSError):
            os.unlink(path)
            user.size -= size
        heapq.heapreplace(heap, (count + 1, uid, user))


def _replace_beyond(limit: int, users: Iterable[_User], total: int) -> tuple[int, int]:
    """Replace output of the user with the most bytes first. Returns the number of files and the
    remaining bytes."""
    heap = [(-user.size, user.uid, user) for user in users]
    heapq.heapify(heap)
    replaced = 0
    while heap and total > limit:
        size, uid, user = heapq.heappop(heap)
        while user.ended:
            written, path, length = user.ended.pop()
            if length > len(GONE):
                break
        else:
            continue
        with contextlib.suppress(OSError):
            _replace(path, written)
            replaced += 1
            total -= length - len(GONE)
            size += length - len(GONE)
        heapq.heappush(heap, (size, uid, user))
    return replaced, total


def _replace(path: str, written_ns: int) -> None:
    """Leave one line for readers of the output, with the output's old modification time."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.write(fd, GONE)
        os.utime(fd, ns=(written_ns, written_ns))
    finally:
        os.close(fd)
