"""One step, as the runner knows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from odcd.runner.record import Key


@dataclass(slots=True, eq=False)
class Step:
    key: Key
    """The job, the attempt, and the step's number."""
    uid: int
    mark: str
    cgroups: list[str]
    pid: int | None = None
    watch_fd: int | None = None
    end: dict[str, Any] | None = None
    """How it ended; None: it lives."""
    ended_at: float = 0.0
    kept_bytes: int = 0
    """Of its journal, after the end."""
    acknowledged: bool = False
    """The daemon has recorded its end."""
    waiting: list[Callable[[], None]] = field(default_factory=list)
    """Called when it has ended."""

    @property
    def live(self) -> bool:
        return self.end is None

    def fact(self) -> dict[str, Any]:
        job, attempt, step = self.key
        return {"job": job, "attempt": attempt, "step": step, "end": self.end}
