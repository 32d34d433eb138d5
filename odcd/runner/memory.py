"""The data that the runner must not forget: the highest term, and the attempts that ended.

Both are in RUN_DIR. `term` is one record, written in place (so a full disk cannot prevent it) and
synced. `ended` lists attempts whose facts are committed in the database and whose files are
deleted: a late, repeated start of one of them must not run it again. It is limited to the last few
ten thousand.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from odcd.runner import kernel, record

_TERM = (0, 512)
KEPT_LINES = 50_000


class Memory:
    def __init__(self, run_dir: Path) -> None:
        """Raises OSError when the folder cannot be written."""
        self._fd = os.open(
            run_dir / "term", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        known = record.parse(os.pread(self._fd, _TERM[1], 0)) or {}
        boot = kernel.boot_identity()
        self.term: int = known.get("term", 0)
        self.fresh: bool = known.get("boot") != boot
        """Nothing is known about earlier attempts: the folder is new, or the machine was restarted.
        Becomes false when a daemon has reported the attempts that it expects."""
        self.since: float = time.time() if self.fresh else known["since"]
        self._boot = boot
        self._ended: dict[int, int] = {}
        self._older: dict[int, int] = {}
        self._path = run_dir / "ended"
        self._lines = 0
        for path in (self._path.with_suffix(".1"), self._path):
            self._older, self._ended = self._ended, _read_lines(path)
        self._lines = len(self._ended)
        self._log = self._open_log()
        self._write_term()

    def raise_term(self, term: int) -> None:
        """Raises OSError when the term cannot be stored; then the old one stays."""
        if term > self.term:
            before, self.term = self.term, term
            try:
                self._write_term()
            except OSError:
                self.term = before
                raise

    def _write_term(self) -> None:
        record.write(self._fd, _TERM, {"term": self.term, "boot": self._boot, "since": self.since})
        os.fdatasync(self._fd)

    def has_ended(self, job: int, attempt: int) -> bool:
        return max(self._ended.get(job, 0), self._older.get(job, 0)) >= attempt

    def remember_ended(self, attempts: list[tuple[int, int]]) -> None:
        """Raises OSError when it cannot be written; the attempts' files must then stay."""
        # The leading newline separates this from a line that a full disk cut off.
        data = "".join(["\n", *(f"{job} {attempt}\n" for job, attempt in attempts)]).encode()
        if os.write(self._log, data) != len(data):
            raise OSError(28, os.strerror(28))
        self._ended.update(attempts)
        self._lines += len(attempts)
        if self._lines > KEPT_LINES:
            self._rotate()

    def _rotate(self) -> None:
        self._path.replace(self._path.with_suffix(".1"))
        os.close(self._log)
        self._log = self._open_log()
        self._older, self._ended, self._lines = self._ended, {}, 0

    def _open_log(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self._path, flags, 0o600)


def _read_lines(path: Path) -> dict[int, int]:
    ended: dict[int, int] = {}
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return ended
    for line in text.splitlines():
        job, _, attempt = line.partition(" ")
        if job.isdigit() and attempt.isdigit():
            ended[int(job)] = int(attempt)
    return ended
