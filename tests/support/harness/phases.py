"""Where the time of a long run goes: per phase its duration, rates, and the CPU of each process."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

SAMPLE_S = 1.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass
class Phase:
    name: str
    took_s: float = 0.0
    cpu_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def __str__(self) -> str:
        cores = ", ".join(
            f"{name} {seconds / max(self.took_s, 0.001):.2f}"
            for name, seconds in sorted(self.cpu_s.items(), key=lambda one: -one[1])
            if seconds >= 0.01 * self.took_s
        )
        counts = ", ".join(
            f"{count:,} {name} ({count / max(self.took_s, 0.001):.1f} /s)"
            for name, count in self.counts.items()
        )
        return f"{self.name}: {self.took_s:,.0f} s; {counts or '-'}; cores used: {cores or '-'}"


class Phases:
    def __init__(
        self,
        processes: Callable[[], Mapping[str, int]],
        counters: Callable[[], Mapping[str, int]],
    ) -> None:
        """processes: pids by name at the moment; faults may replace them. counters: totals that
        only grow."""
        self.all: list[Phase] = []
        self._processes = processes
        self._counters = counters
        self._known: dict[int, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        phase = Phase(name)
        self.all.append(phase)
        before, begin = self._counters(), time.monotonic()
        self._known = {}
        self._sample(defaultdict(float))
        over = threading.Event()
        sampler = threading.Thread(target=self._watch, args=(phase, over), daemon=True)
        sampler.start()
        try:
            yield
        finally:
            over.set()
            sampler.join()
            phase.took_s = time.monotonic() - begin
            after = self._counters()
            phase.counts = {name: after[name] - before.get(name, 0) for name in after}

    def _watch(self, phase: Phase, over: threading.Event) -> None:
        while not over.wait(SAMPLE_S):
            self._sample(phase.cpu_s)
        self._sample(phase.cpu_s)

    def _sample(self, used: defaultdict[str, float]) -> None:
        """A process that is new since the last sample counts from its start."""
        for name, pid in self._processes().items():
            with suppress(OSError, IndexError, ValueError):
                now_s = _cpu_s(pid)
                used[name] += now_s - self._known.get(pid, 0.0)
                self._known[pid] = now_s

    def __str__(self) -> str:
        return "\n".join(f"- {phase}" for phase in self.all)


def _cpu_s(pid: int) -> float:
    """Of the process, its children, and those of them that have ended."""
    total = _ticks(pid)
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for child in children:
        with suppress(OSError, IndexError, ValueError):
            total += _ticks(int(child))
    return total / TICKS_PER_S


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))
