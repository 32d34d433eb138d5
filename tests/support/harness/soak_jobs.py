"""The jobs of a soak, and how they should end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakJob:
    """A job, and how it ends if nothing happens to it."""

    nodes: int
    gpus: int
    run_s: int | None
    exit_code: int
    requeue: bool

    @property
    def body(self) -> dict[str, Any]:
        environment = {"TEST_EXIT_CODE": str(self.exit_code)}
        if self.run_s is not None:
            environment["TEST_RUN_S"] = str(self.run_s)
        return {
            "script": "#!/bin/sh\nsleep $TEST_RUN_S\nexit $TEST_EXIT_CODE\n",
            "work_dir": "/tmp", "time_limit_s": 36_000, "environment": environment,
            "node_count": self.nodes, "gpus_per_node": self.gpus, "requeue": self.requeue,
        }  # fmt: skip

    @property
    def end(self) -> tuple[str, int]:
        """Its end without faults; jobs that never end are cancelled."""
        if self.run_s is None:
            return "CANCELLED", 0
        return ("COMPLETED" if self.exit_code == 0 else "FAILED"), self.exit_code


def some_jobs(chance: random.Random, count: int) -> Iterator[SoakJob]:
    """15 % gangs, some of them of whole nodes; one in six fails by itself."""
    for _ in range(count):
        gang = chance.random() < 0.15
        yield SoakJob(
            nodes=chance.randint(2, 8) if gang else 1,
            gpus=chance.choice([1, 2, 4, 8]) if gang else chance.choice([1, 1, 1, 2, 4, 8]),
            run_s=chance.choice([0, 1, 2, 5, 10, 20]),
            exit_code=0 if chance.random() < 0.84 else chance.randint(1, 99),
            requeue=chance.random() < 0.9,
        )
