"""Sums of GPU samples, by attempt, until they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from odcd.gpu_use.nvml import Device, Process, Reading
from odcd.records.gpu_use import GpuKey, GpuSample, UsageSlice


@dataclass(slots=True, kw_only=True)
class _Gpu:
    """One GPU of one attempt, since the last flush; at_s, energy_mj: of the previous sample."""

    device: Device
    rank: int
    at_s: float
    energy_mj: int | None
    covered_s: float = 0.0
    busy_s: float = 0.0
    energy_j: float | None = None
    peak_mib: int | None = None
    last_mib: int | None = None
    peak: float = 0.0

    def add(self, reading: Reading, own_mib: int | None, now_s: float, longest_s: float) -> None:
        passed_s = now_s - self.at_s
        if reading.ratio is not None and 0 < passed_s <= longest_s:
            self.covered_s += passed_s
            self.busy_s += reading.ratio * passed_s
            joules = self._joules(reading, passed_s)
            if joules is not None:
                self.energy_j = (self.energy_j or 0.0) + joules
        self.peak = max(self.peak, 1.0 if reading.ratio is None else reading.ratio)
        if own_mib is not None:
            self.last_mib = own_mib
            self.peak_mib = max(self.peak_mib or 0, own_mib)
        self.at_s, self.energy_mj = now_s, reading.energy_mj

    def _joules(self, reading: Reading, passed_s: float) -> float | None:
        before, now = self.energy_mj, reading.energy_mj
        if before is not None and now is not None and now >= before:
            return (now - before) / 1000
        return None if reading.power_w is None else reading.power_w * passed_s


@dataclass(slots=True, kw_only=True)
class _Attempt:
    gpus: dict[int, _Gpu] = field(default_factory=dict)
    count: int = 0
    since: datetime
    until: datetime


class Sums:
    """longest_s: the maximum time between two samples; a longer gap counts as not observed."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._attempts: dict[tuple[int, int], _Attempt] = {}

    def add(
        self, key: tuple[int, int], rank: int, device: Device, count: int, reading: Reading,
        own_mib: int | None, now_s: float, now: datetime,
    ) -> None:  # fmt: skip
        """Add one sample. count: the number of GPUs of the attempt; own_mib: memory that its
        processes use."""
        attempt = self._attempts.get(key)
        if attempt is None:
            attempt = self._attempts[key] = _Attempt(since=now, until=now)
        attempt.count, attempt.until = count, now
        gpu = attempt.gpus.get(device.index)
        if gpu is None:
            gpu = attempt.gpus[device.index] = _Gpu(
                device=device, rank=rank, at_s=now_s, energy_mj=reading.energy_mj
            )
        gpu.add(reading, own_mib, now_s, self._longest_s)

    def keys(self) -> set[tuple[int, int]]:
        return set(self._attempts)

    def take(self, key: tuple[int, int], *, over: bool) -> tuple[UsageSlice, list[GpuSample]]:
        """Return the sums since the last call. over: the attempt has ended, so forget it."""
        attempt = self._attempts[key]
        gpus = attempt.gpus.values()
        memory = [gpu.peak_mib for gpu in gpus if gpu.peak_mib is not None]
        energy = [gpu.energy_j for gpu in gpus if gpu.energy_j is not None]
        part = UsageSlice(
            job_id=key[0],
            attempt=key[1],
            since=attempt.since,
            until=attempt.until,
            covered_s=sum(gpu.covered_s for gpu in gpus) / max(1, attempt.count),
            busy_gpu_s=sum(gpu.busy_s for gpu in gpus),
            mem_peak_mib=max(memory) if memory else None,
            energy_j=sum(energy) if energy else None,
            gpu_uuids=sorted(gpu.device.uuid for gpu in gpus),
        )
        seen = [
            GpuSample(
                key=GpuKey(*key, gpu.rank, gpu.device.uuid),
                mean_ratio=gpu.busy_s / gpu.covered_s,
                peak_ratio=gpu.peak,
                mem_used_mib=gpu.last_mib,
                index=index,
                model=gpu.device.model,
            )
            for index, gpu in attempt.gpus.items()
            if gpu.covered_s > 0
        ]
        if over:
            del self._attempts[key]
        else:
            attempt.since = attempt.until
            for gpu in gpus:
                gpu.covered_s = gpu.busy_s = gpu.peak = 0.0
                gpu.energy_j = gpu.peak_mib = None
        return part, seen


def own_memory(reading: Reading, own: Sequence[Process]) -> int | None:
    """Memory used by the job's processes if NVML reports it for all of them; otherwise all memory
    used on the GPU, which only the job uses."""
    sizes = [process.mem_mib for process in own if process.mem_mib is not None]
    return sum(sizes) if sizes and len(sizes) == len(own) else reading.mem_used_mib
