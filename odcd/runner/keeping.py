"""The bound on kept output of all jobs: the oldest of ended jobs goes first."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from odcd.runner.log import Log
from odcd.runner.spool import FULL

GONE = b"odc: this output was deleted: kept output of all jobs together reached its limit\n"
MAX_FILES = 100_000
LOOK_S = 1.0
REST = 20
"""A look rests so many times as long as it took."""
_MIB = 1024 * 1024


class Keeping:
    def __init__(self, folder: Path, log: Log) -> None:
        self._folder = folder
        self._log = log
        self._next_look = 0.0

    def look_after(self, live: set[str], total_mib: int) -> None:
        """live: members that may still write. Raises nothing: a file that is gone is no matter."""
        began = time.monotonic()
        if began < self._next_look:
            return
        with contextlib.suppress(OSError):
            self._look(live, total_mib * _MIB)
        took = time.monotonic() - began
        self._next_look = time.monotonic() + max(LOOK_S, REST * took)

    def _look(self, live: set[str], limit: int) -> None:
        total = 0
        ended: list[tuple[int, str, int]] = []
        for entry in os.scandir(self._folder):
            if entry.name.startswith("."):
                continue
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                total += status.st_size
                if entry.name.rpartition(".")[0] not in live:
                    ended.append((status.st_mtime_ns, entry.path, status.st_size))
        too_many = len(ended) - MAX_FILES
        ended.sort()
        deleted = 0
        for number, (written, path, size) in enumerate(ended):
            if number < too_many:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                    total -= size
            elif total > limit and size > len(GONE):
                with contextlib.suppress(OSError):
                    _replace(path, written)
                    total -= size - len(GONE)
                    deleted += 1
        if deleted:
            self._log.info("output.deleted", files=deleted, left_bytes=total)
        self._set_full(total > limit)

    def _set_full(self, full: bool) -> None:
        path = self._folder / FULL
        if full != path.exists():
            self._log.info("output.full" if full else "output.has_space")
            path.touch() if full else path.unlink()


def _replace(path: str, written_ns: int) -> None:
    """Leave a line for whoever asks, as old as the output was."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.write(fd, GONE)
        os.utime(fd, ns=(written_ns, written_ns))
    finally:
        os.close(fd)
