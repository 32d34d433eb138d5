"""Records that the modules for GPU usage exchange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple


class GpuKey(NamedTuple):
    """A GPU, or an instance of one under MIG (UUID/instance), and the member that holds it."""

    job_id: int
    attempt: int
    rank: int
    gpu: str


def uuid_of(gpu: str) -> str:
    """The UUID of a GpuKey's gpu."""
    return gpu.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmeasuredAttempt:
    """An ended attempt whose GPU usage is not stored yet."""

    job_id: int
    attempt: int
    gpus: int
    running_at: datetime
    ended_at: datetime
    covered_s: float
    source: str

    @property
    def duration(self) -> timedelta:
        return self.ended_at - self.running_at


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptUsage:
    """GPU usage of an ended attempt; see the table gpu_use. gave_up: why the data is incomplete;
    again_at: when to query again."""

    job_id: int
    attempt: int
    covered_s: float | None = None
    busy_gpu_s: float | None = None
    mem_peak_mib: int | None = None
    energy_j: float | None = None
    gpu_uuids: Sequence[str] | None = None
    gave_up: str | None = None
    again_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample:
    """Usage of one GPU of a running job since the last sample: the ratios from 0 to 1, and
    mem_used_mib at the end. index: the GPU's position on the node."""

    key: GpuKey
    mean_ratio: float
    peak_ratio: float
    mem_used_mib: float | None
    index: int | None
    model: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSlice:
    """Usage of a running attempt in one time range; it is added to the attempt's sums."""

    job_id: int
    attempt: int
    since: datetime
    until: datetime
    covered_s: float
    busy_gpu_s: float
    mem_peak_mib: int | None
    energy_j: float | None
    gpu_uuids: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedGpus:
    """The GPUs of one member of a running attempt; indexes: positions on its node. running: all
    members of the attempt have started."""

    job_id: int
    attempt: int
    rank: int
    indexes: tuple[int, ...]
    running: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPosition:
    """The position of a GPU. rank: of the member that holds it; None: the member on this
    machine."""

    rank: int | None
    index: int
    uuid: str
    model: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentUsage:
    """Current GPU usage of one job. attempt None: the running one. idle_gpus: the UUIDs of
    GPUs below the idle threshold (under MIG also the instance)."""

    job_id: int
    attempt: int | None
    util_ratio: float
    mem_used_mib: int | None
    idle_gpus: Sequence[str]
    gpus: Sequence[GpuPosition]


def attempt_of(
    one: AttemptUsage | UsageSlice | CurrentUsage | UnmeasuredAttempt,
) -> tuple[int, int | None]:
    return one.job_id, one.attempt


def usage_by_job(samples: Sequence[GpuSample], idle_ratio: float) -> list[CurrentUsage]:
    """Combine the samples of single GPUs into one CurrentUsage per job."""
    by_job: dict[tuple[int, int], list[GpuSample]] = {}
    for one in samples:
        by_job.setdefault((one.key.job_id, one.key.attempt), []).append(one)
    usage: list[CurrentUsage] = []
    for (job_id, attempt), gpus in sorted(by_job.items()):
        memory = [one.mem_used_mib for one in gpus if one.mem_used_mib is not None]
        usage.append(
            CurrentUsage(
                job_id=job_id,
                attempt=attempt or None,
                util_ratio=sum(one.mean_ratio for one in gpus) / len(gpus),
                mem_used_mib=round(sum(memory)) if memory else None,
                idle_gpus=sorted(one.key.gpu for one in gpus if one.peak_ratio < idle_ratio),
                gpus=[
                    GpuPosition(
                        rank=one.key.rank if attempt else None,
                        index=one.index,
                        uuid=uuid_of(one.key.gpu),
                        model=one.model,
                    )
                    for one in gpus
                    if one.index is not None
                ],
            )
        )
    return usage
