"""The jobs' own record of when and where they ran, independent of odc."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

NAME = "ledger"
Key = tuple[int, int, int]
"""Job, attempt, rank."""

# /proc/uptime: no step of a clock moves it. Each echo is one write of an O_APPEND file.
SCRIPT = f"""#!/bin/sh
note() {{
    read up _ < /proc/uptime
    echo "$1 $ODC_JOB_ID $ODC_ATTEMPT $ODC_RANK $ODC_NODE $CUDA_VISIBLE_DEVICES $up" >> {NAME}
}}
trap 'note end; exit 143' TERM
note start
sleep "$1" &
wait $!
note end
exit "$2"
"""


def uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


@dataclass(slots=True)
class Run:
    key: Key
    node: str
    gpus: tuple[int, ...]
    start: float
    end: float | None = None


@dataclass
class Ledger:
    runs: dict[Key, Run] = field(default_factory=dict)
    starts: Counter[Key] = field(default_factory=Counter)

    @classmethod
    def read(cls, folder: Path) -> Ledger:
        made = cls()
        path = folder / NAME
        for line in path.read_text().splitlines() if path.exists() else ():
            what, job, attempt, rank, node, gpus, up = line.split()
            key = int(job), int(attempt), int(rank)
            if what == "start":
                made.starts[key] += 1
                indexes = tuple(map(int, gpus.split(",")))
                made.runs.setdefault(key, Run(key, node, indexes, float(up)))
            elif key in made.runs and made.runs[key].end is None:
                made.runs[key].end = float(up)
        return made

    def wrong(self) -> list[str]:
        """Attempts that ran twice, jobs that ran twice at once, GPUs that two jobs used at once."""
        found = [f"{_words(key)} ran {n} times" for key, n in self.starts.items() if n > 1]
        by_gpu: dict[tuple[str, int], list[Run]] = defaultdict(list)
        by_rank: dict[tuple[int, int], list[Run]] = defaultdict(list)
        for run in self.runs.values():
            by_rank[run.key[0], run.key[2]].append(run)
            for gpu in run.gpus:
                by_gpu[run.node, gpu].append(run)
        for place, runs in by_gpu.items():
            found += _overlaps(f"GPU {place[1]} of {place[0]}", runs)
        for (job_id, rank), runs in by_rank.items():
            found += _overlaps(f"job {job_id} rank {rank}", runs)
        return found


def _overlaps(what: str, runs: list[Run]) -> list[str]:
    runs.sort(key=lambda run: run.start)
    # A process that recorded no end was killed: the database's end is checked elsewhere.
    return [
        f"{what}: {_words(one.key)} until {one.end}, {_words(next_.key)} from {next_.start}"
        for one, next_ in pairwise(runs)
        if one.end is not None and next_.start < one.end
    ]


def _words(key: Key) -> str:
    return f"job {key[0]} attempt {key[1]} rank {key[2]}"
