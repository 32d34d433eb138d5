"""Jobs of a workload, and the rules that make a trace replayable."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from odcd.errors import BadRequest
from odcd.simulate.cluster import Cluster

NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    """One job of a trace. gpus: processors, on a machine without GPUs."""

    submit_s: int
    run_s: int
    gpus: int
    limit_s: int
    """The user's estimate."""
    user: str = NOBODY
    name: str = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The jobs to replay, in order of submission, the first at 0."""

    name: str
    jobs: tuple[TraceJob, ...]
    empty: int = 0
    """Left out: they did not run, or requested nothing."""
    too_wide: int = 0
    """Left out: no machine of this size could run them."""
    cut: int = 0
    """Kept, with the run time cut at the time limit."""

    def first(self, count: int) -> Workload:
        """Its first jobs, this many."""
        return replace(self, jobs=self.jobs[:count])


def replayable(name: str, jobs: Iterable[TraceJob], cluster: Cluster) -> Workload:
    """Apply the usual rules for replays: leave out jobs that did not run or do not fit, cut run
    times at the estimate, and start time at the first job that is kept."""
    kept: list[TraceJob] = []
    empty = too_wide = cut = 0
    for job in jobs:
        if job.run_s <= 0 or job.gpus <= 0:
            empty += 1
        elif not cluster.fits(job.gpus):
            too_wide += 1
        else:
            cut += job.run_s > job.limit_s
            kept.append(replace(job, run_s=min(job.run_s, job.limit_s)))
    kept.sort(key=lambda job: job.submit_s)
    first = kept[0].submit_s if kept else 0
    shifted = tuple(replace(job, submit_s=job.submit_s - first) for job in kept)
    return Workload(name=name, jobs=shifted, empty=empty, too_wide=too_wide, cut=cut)


@contextmanager
def open_trace(path: Path) -> Generator[IO[bytes] | gzip.GzipFile]:
    """The bytes of a trace, decompressed if its name ends in .gz."""
    with path.open("rb") as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.open(file, "rb") as unpacked:
            yield unpacked


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that are neither empty nor comments, with their numbers from 1."""
    try:
        with open_trace(path) as lines:
            for number, line in enumerate(lines, start=1):
                text = line.decode("utf-8", "replace").strip()
                if text and text[0] not in ";#":
                    yield number, text
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadRequest(
            f"{path} is not a complete gzip file: {error}", "Fetch the file again."
        ) from error


class Fields:
    """The fields of one line; errors name the file and the line."""

    def __init__(self, path: Path, number: int, values: list[str]) -> None:
        self._where = f"{path}, line {number}"
        self._values = values

    def number(self, index: int, name: str) -> int:
        """Parse seconds or a count; a fraction is dropped."""
        text = self._values[index]
        try:
            value = float(text)
        except ValueError:
            raise self.wrong(f'{name} is not a number: "{text}"') from None
        if not math.isfinite(value) or abs(value) > 2**31:
            raise self.wrong(f'{name} is out of range: "{text}"')
        return int(value)

    def wrong(self, what: str) -> BadRequest:
        return BadRequest(
            f"{self._where}: {what}", "Correct the line, or make it a comment with a leading #."
        )


Reader = Callable[[Path], Iterator[TraceJob]]


def distinct_users(jobs: Iterable[TraceJob]) -> list[str]:
    """In order of appearance."""
    return list(dict.fromkeys(job.user for job in jobs))
