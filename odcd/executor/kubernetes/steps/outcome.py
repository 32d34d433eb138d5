"""How a step ends, from what its pods report; the same object as on the local executor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from odcd.runner.steps import report
from odcd.slurm.commands.srun import MAX_TASKS

LAST_SIGNAL = 64
KILLED = 9
STATES = {"cancelled": "CANCELLED", "timeout": "TIMEOUT"}
MAX_MOMENT = 1e11


def wait_status(code: int) -> int:
    """Shells report a death by signal as 128 and the signal."""
    return code - 128 if 128 < code <= 128 + LAST_SIGNAL else code << 8


def read_code(text: str) -> int:
    """An exit code in a pod's answer, where its users may write anything. Raises ValueError."""
    return _within(int(text), 255)


def read_task(text: str) -> int:
    """The number of a task, or of a member. Raises ValueError."""
    return _within(int(text), MAX_TASKS - 1)


def read_moment(text: str) -> float:
    """Raises ValueError."""
    moment = float(text)
    if not (math.isfinite(moment) and 0 <= moment <= MAX_MOMENT):
        raise ValueError(f"{moment} is not a time")
    return moment


def _within(number: int, most: int) -> int:
    if not 0 <= number <= most:
        raise ValueError(f"{number} is not 0 to {most}")
    return number


class Outcome:
    """stopping: why the step is being ended: cancelled, timeout or task."""

    def __init__(self, tasks: Iterable[int]) -> None:
        self.tasks = list(tasks)
        self.statuses: dict[int, int] = {}
        self.stopping: str | None = None
        self.times: list[float] = []
        self._began: list[float] = []

    def note_end(self, began: float, ended: float) -> None:
        """Of one pod's part."""
        self._began.append(began)
        self.times.append(ended)

    def stop(self, why: str) -> None:
        if self.stopping is None or (self.stopping not in STATES and why in STATES):
            self.stopping = why

    def end(self, now: float) -> dict[str, Any]:
        """now: if no pod has reported when its part ended."""
        by_status: dict[int, list[int]] = {}
        for task in self.tasks:
            by_status.setdefault(self.statuses.get(task, KILLED), []).append(task)
        code = max((report.exit_code(status) for status in by_status), default=0)
        state = STATES.get(self.stopping or "", "FAILED" if code else "COMPLETED")
        return {
            "e": "ended", "state": state, "code": code,
            "started_at": min(self._began, default=now), "at": max(self.times, default=now),
            "statuses": {str(status): report.ranges(tasks) for status, tasks in by_status.items()},
        }  # fmt: skip


def read_look(parts: Mapping[int, list[str]]) -> tuple[Outcome, set[int], set[int], set[int]]:
    """From the lines that look_at_step prints in each pod, by rank. Returns the outcome so far, the
    ranks that the step has, those that are over, and those whose supervisor is gone. Raises
    ValueError."""
    ranks: set[int] = set()
    over: set[int] = set()
    lost: set[int] = set()
    outcome = Outcome(())
    for rank, lines in parts.items():
        for words in map(str.split, lines):
            match words:
                case ["known", *all_ranks]:
                    ranks |= set(map(read_task, all_ranks))
                case ["x", task, code, _]:
                    outcome.statuses[read_task(task)] = wait_status(read_code(code))
                case ["s", why]:
                    outcome.stop(why)
                case ["z", began, ended]:
                    outcome.note_end(read_moment(began), read_moment(ended))
                    over.add(rank)
                case ["l"]:
                    lost.add(rank)
                case _:
                    pass
    return outcome, ranks, over, lost
