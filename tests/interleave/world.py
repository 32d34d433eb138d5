"""Data shared by the programs of one schedule: labels of jobs, the clock, submitted jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

from tests.support.builders.jobs import NOW


@dataclass
class World:
    """jobs: ids of committed submits by label. tasks: how many tasks each id has."""

    now: datetime = NOW
    jobs: dict[str, int] = field(default_factory=dict)
    tasks: dict[int, int] = field(default_factory=dict)

    def copy(self) -> Self:
        return type(self)(now=self.now, jobs=dict(self.jobs), tasks=dict(self.tasks))

    def at(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)

    def add(self, label: str, job_id: int, tasks: int = 1) -> None:
        self.jobs[label] = job_id
        self.tasks[job_id] = tasks

    def text(self, dependency: str) -> str | None:
        """The dependency with ids for labels; None when it names a job that does not exist yet."""
        try:
            return dependency.format(**self.jobs)
        except KeyError:
            return None
