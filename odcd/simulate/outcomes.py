"""The result of a replay, read from its database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from odcd.database.session import Session
from odcd.simulate.eta import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one job; in seconds since the first submission."""

    job_id: int
    submit_s: int
    start_s: int
    end_s: int
    gpus: int
    nodes: tuple[str, ...]
    predicted: tuple[float, float, float] | None = None
    """If it had to wait: p10, p50 and p90 of its expected start, predicted at submit."""

    @property
    def wait_s(self) -> int:
        return self.start_s - self.submit_s

    @property
    def run_s(self) -> int:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One replay: its jobs in order of submission, and the durations of its passes."""

    policy: str
    jobs: tuple[Outcome, ...]
    pass_ms: tuple[float, ...]


async def read_outcomes(
    session: Session, predictions: Mapping[int, Interval], start: datetime
) -> tuple[Outcome, ...]:
    """The jobs of a replay that began at start. predictions: by job id, made at submit."""
    rows = await session.fetch(
        "select j.id, extract(epoch from j.submitted_at - $1)::bigint as submit_s, "
        "extract(epoch from j.started_at - $1)::bigint as start_s, "
        "extract(epoch from j.ended_at - $1)::bigint as end_s, j.node_names, "
        "s.node_count * s.gpus_per_node as gpus "
        "from odc.job as j join odc.shape as s on s.id = j.shape_id order by j.id",
        start,
    )
    return tuple(
        Outcome(
            job_id=row["id"],
            submit_s=row["submit_s"],
            start_s=row["start_s"],
            end_s=row["end_s"],
            gpus=row["gpus"],
            nodes=tuple(row["node_names"]),
            predicted=_seconds(predictions.get(row["id"]), start),
        )
        for row in rows
    )


def _seconds(interval: Interval | None, start: datetime) -> tuple[float, float, float] | None:
    if interval is None:
        return None
    p10, p50, p90 = (
        (moment - start).total_seconds() for moment in (interval.p10, interval.p50, interval.p90)
    )
    return p10, p50, p90
