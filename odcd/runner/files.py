"""The members' files in RUN_DIR/members, and spare files for the next members."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odcd.runner import record
from odcd.runner.record import Key

MAX_SPARES = 256
STOCKED_AT_ONCE = 32
_SPARE = "spare"


class Files:
    def __init__(self, run_dir: Path) -> None:
        self._folder = run_dir / "members"
        self._numbers = itertools.count()
        self._spares: list[Path] = []
        for path in self._folder.glob(f"{_SPARE}-*"):
            with contextlib.suppress(OSError):
                path.unlink()

    def path(self, key: Key) -> Path:
        return self._folder / str(key)

    def all_keys(self) -> Iterator[Key]:
        """The keys of all members that have a file."""
        for name in sorted(os.listdir(self._folder)):
            key = Key.parse(name)
            if key is not None:
                yield key

    def create(self, key: Key, intent: dict[str, Any]) -> int:
        """See record.create."""
        spare = self._spares.pop() if self._spares else None
        return record.create(self.path(key), intent, spare)

    def stock(self) -> None:
        """While idle: create some of the spare files that a burst of starts will use."""
        for _ in range(min(STOCKED_AT_ONCE, MAX_SPARES - len(self._spares))):
            spare = self._next_spare()
            try:
                os.close(record.create(spare, {}))
            except OSError:
                return
            self._spares.append(spare)

    def _next_spare(self) -> Path:
        return self._folder / f"{_SPARE}-{next(self._numbers)}"

    def give_up(self, key: Key) -> None:
        """Remove the file; the member's facts are no longer needed."""
        path = self.path(key)
        with contextlib.suppress(OSError):
            if len(self._spares) < MAX_SPARES:
                spare = self._next_spare()
                path.rename(spare)
                self._spares.append(spare)
            else:
                path.unlink()
