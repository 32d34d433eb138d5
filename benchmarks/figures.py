"""The results of a benchmark with their targets."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

HEAD = (
    "| figure | measured | best run | target | times better | Slurm 22.05, tuned |\n"
    "|---|---:|---:|---:|---:|---|"
)


@dataclass(frozen=True)
class Figure:
    """One row. values: one per run; the median counts."""

    what: str
    values: Sequence[float]
    unit: str
    target: float | None = None
    at_least: bool = False
    """True for a rate: higher is better."""
    slurm: str = ""
    """The name of Slurm's figure in benchmarks/slurm.py; in a printed row, that figure."""
    note: str = ""
    """The dominant cost, and the method of measurement if it is not obvious."""

    @property
    def value(self) -> float:
        return statistics.median(self.values)

    @property
    def best(self) -> float:
        return max(self.values) if self.at_least else min(self.values)

    @property
    def ratio(self) -> float | None:
        """How many times better than the target: 1 or more meets it."""
        if self.target is None or not self.value:
            return None
        return self.value / self.target if self.at_least else self.target / self.value

    def row(self) -> str:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        if self.ratio is not None and self.ratio < 1:
            ratio = f"**{ratio}, missed**"
        target = "" if self.target is None else f"{'≥' if self.at_least else '≤'} {self.target:,g}"
        return (
            f"| {self.what} | {number(self.value)} {self.unit} | {number(self.best)} | {target} "
            f"| {ratio} | {self.slurm} |"
        )


def explained(figures: Sequence[Figure]) -> list[str]:
    return [f"- **{figure.what}**: {figure.note}." for figure in figures if figure.note]


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def timed_ms(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1000


def times_ms(call: Callable[[], object], times: int, warm: int = 3) -> list[float]:
    """The milliseconds of each of this many calls, after some that do not count."""
    for _ in range(warm):
        call()
    return [timed_ms(call) for _ in range(times)]
