"""The files in RUN_DIR/hooks: one for each member whose prolog may have begun and whose epilog is
still owed. They outlive the runner, so that the next one runs the epilog."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odcd.runner import record
from odcd.runner.record import Key

_NEW = ".new"
"""The end of the name of a file that is being written."""


class Debts:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._keys: dict[tuple[int, int], set[Key]] = {}
        for name in os.listdir(folder):
            if name.endswith(_NEW):
                (folder / name).unlink(missing_ok=True)
            elif (key := Key.parse(name)) is not None:
                self._keys.setdefault(key[:2], set()).add(key)

    def __iter__(self) -> Iterator[Key]:
        return (key for attempt in sorted(self._keys) for key in self.of(*attempt))

    def of(self, job: int, attempt: int) -> list[Key]:
        return sorted(self._keys.get((job, attempt), ()))

    def add(self, key: Key, facts: dict[str, Any]) -> None:
        """Raises OSError; then there is no file."""
        path = self._path(key)
        made = path.with_suffix(_NEW)
        try:
            made.write_bytes(json.dumps(facts).encode())
            made.rename(path)
        except OSError:
            with contextlib.suppress(OSError):
                made.unlink()
            raise
        self._keys.setdefault(key[:2], set()).add(key)

    def read(self, key: Key) -> dict[str, Any] | None:
        """None: the file cannot be read."""
        try:
            facts = json.loads(self._path(key).read_bytes())
        except (OSError, ValueError):
            return None
        return facts if isinstance(facts, dict) and isinstance(facts.get("env"), dict) else None

    def lock(self, key: Key) -> int:
        """A descriptor that holds the file's lock. Raises OSError, also when a keeper of an earlier
        runner holds it."""
        fd = os.open(self._path(key), os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise BlockingIOError(errno.EWOULDBLOCK, "a hook of an earlier runner lives") from None
        return fd

    def is_held(self, key: Key) -> bool:
        """Whether a keeper of an earlier runner lives."""
        with contextlib.suppress(OSError):
            return record.is_held(self._path(key))
        return False

    def settle(self, key: Key) -> None:
        """Its epilog has run."""
        keys = self._keys.get(key[:2], set())
        keys.discard(key)
        if not keys:
            self._keys.pop(key[:2], None)
        with contextlib.suppress(OSError):
            self._path(key).unlink()

    def _path(self, key: Key) -> Path:
        return self._folder / str(key)
