"""What a benchmark measured, beside what was asked for."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    what: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = False
    """True for a rate: more is better."""
    slurm: str = ""
    """The same of Slurm 22.05, tuned, on the same kind of machine."""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times better than the target: above 1 is met."""
        if self.target is None or not self.value:
            return None
        return self.value / self.target if self.at_least else self.target / self.value

    def row(self) -> str:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        target = "" if self.target is None else f"{'≥' if self.at_least else '≤'} {self.target:g}"
        return (
            f"| {self.what} | {self.value:,.4g} {self.unit} | {target} | {ratio} "
            f"| {self.slurm} | {self.note} |"
        )


HEAD = (
    "| figure | measured | target | times better | Slurm 22.05, tuned | note |\n"
    "|---|---:|---:|---:|---:|---|"
)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median_ms(call: Callable[[], object], times: int, warm: int = 3) -> tuple[float, float]:
    """Median and best of so many calls, in ms."""
    for _ in range(warm):
        call()
    took: list[float] = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        took.append((time.perf_counter() - begin) * 1000)
    return statistics.median(took), min(took)
