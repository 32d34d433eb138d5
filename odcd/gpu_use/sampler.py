"""GPU usage of this machine's jobs, by NVML: sampled continuously, written once a minute.

Each GPU is read independently and with a timeout. If one hangs, only its own values are missing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from odcd.call_metrics import NOBODY, Calls
from odcd.clock import Clock
from odcd.gpu_use.apart import Apart, Hangs
from odcd.gpu_use.nvml import Device, Nvml, NvmlDown, Process, Reading
from odcd.gpu_use.sums import Sums, own_memory
from odcd.isolation import Isolation, IsolationWatch
from odcd.records.gpu_use import (
    AllocatedGpus,
    CurrentUsage,
    GpuSample,
    UsageSlice,
    attempt_of,
    usage_by_job,
)
from odcd.stores.gpu_use import GpuUseStore

log = logging.getLogger(__name__)

EVERY_S = 5.0
WRITE_S = 60.0
GAP_S = 3 * EVERY_S
READ_S = 4.0
"""The timeout for one GPU. It is not read again until it has answered."""
PATIENCE = timedelta(seconds=3 * WRITE_S)

Look = tuple[Reading, dict[str, list[Process]]]
"""The reading of a GPU, and its processes by the name of their cgroup."""


class Sampler:
    def __init__(
        self, term: int, store: GpuUseStore, nvml: Nvml, places: Sequence[Device], clock: Clock, *,
        idle_ratio: float, cgroup_of: Callable[[int], str], calls: Calls = NOBODY,
        read_s: float = READ_S, watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        """places: the GPU at each position that jobs can be given. cgroup_of: the cgroup name of a
        process, which is the member's key. calls: metrics for NVML."""
        self._term = term
        self._store = store
        self._nvml = nvml
        self._places = places
        self._aparts = {device.index: Apart(read_s) for device in places}
        self._calls = calls
        self._clock = clock
        self._idle_ratio = idle_ratio
        self._cgroup_of = cgroup_of
        self._sums = Sums(GAP_S)
        self._hung: set[int] = set()
        self._parts = Isolation[UsageSlice]("gpu-use", clock, watch, key=attempt_of)
        self._current = Isolation[CurrentUsage]("gpu-use", clock, watch, key=attempt_of)

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        written_s = self._clock.monotonic()
        while True:
            began_s = self._clock.monotonic()
            ended = await self.sample_once()
            if began_s - written_s >= WRITE_S:
                await self.write(self._sums.keys(), ended)
                written_s = began_s
            elif ended:
                await self.write(ended, ended)
            took_s = self._clock.monotonic() - began_s
            await self._clock.sleep(max(EVERY_S / 5, EVERY_S - took_s))

    async def sample_once(self) -> set[tuple[int, int]]:
        """Sample every allocated GPU once; return the attempts that ended since the last sample."""
        held = [one for one in await self._store.list_allocated(self._term) if one.running]
        live = {(one.job_id, one.attempt) for one in held}
        known = len(self._places)
        allocated = {self._places[bit].index for one in held for bit in one.indexes if bit < known}
        if allocated:
            now_s, now = self._clock.monotonic(), self._clock.now()
            async with asyncio.TaskGroup() as group:
                tasks = {
                    index: group.create_task(self._look(index), name=f"gpu-{index}")
                    for index in sorted(allocated)
                }
            looks = {index: task.result() for index, task in tasks.items()}
            self._add(held, {i: look for i, look in looks.items() if look}, now_s, now)
        return self._sums.keys() - live

    async def _look(self, index: int) -> Look | None:
        """Return None if the GPU does not answer."""
        try:
            with self._calls.asking("read"):
                look = await self._aparts[index].run(lambda: self._read(index))
        except Hangs as error:
            if index not in self._hung:
                log.error("gpu_use.nvml_hangs", extra={"gpu": index, "why": str(error)})
            self._hung.add(index)
            return None
        except NvmlDown as error:
            log.warning("gpu_use.not_read", extra={"gpu": index, "why": str(error)})
            return None
        if index in self._hung:
            log.info("gpu_use.nvml_answers", extra={"gpu": index})
            self._hung.discard(index)
        return look

    def _read(self, index: int) -> Look:
        """Runs in its own thread."""
        reading = self._nvml.read(index)
        groups: dict[str, list[Process]] = {}
        for process in reading.processes:
            groups.setdefault(self._cgroup_of(process.pid), []).append(process)
        return reading, groups

    def _add(
        self,
        held: Sequence[AllocatedGpus],
        readings: Mapping[int, Look],
        now_s: float,
        now: datetime,
    ) -> None:
        counts: dict[tuple[int, int], int] = {}
        for one in held:
            key = one.job_id, one.attempt
            counts[key] = counts.get(key, 0) + len(one.indexes)
        for one in held:
            key = one.job_id, one.attempt
            for bit in one.indexes:
                device = self._places[bit] if bit < len(self._places) else None
                if device is None or device.index not in readings:
                    continue
                reading, groups = readings[device.index]
                own = groups.get(f"{one.job_id}-{one.attempt}-{one.rank}", [])
                self._sums.add(
                    key, one.rank, device, counts[key], reading, own_memory(reading, own),
                    now_s, now,
                )  # fmt: skip

    async def write(self, keys: set[tuple[int, int]], ended: set[tuple[int, int]]) -> None:
        """Write the sums of these attempts, and forget those that ended."""
        parts: list[UsageSlice] = []
        seen: list[GpuSample] = []
        for key in sorted(keys):
            part, gpus = self._sums.take(key, over=key in ended)
            parts.append(part)
            if key not in ended:
                seen += gpus
        await self._parts.together(parts, lambda some: self._store.add(self._term, some))
        looks = usage_by_job(seen, self._idle_ratio)
        now = self._clock.now()
        await self._current.together(
            looks,
            lambda some: self._store.record_current(
                self._term, some, now - timedelta(seconds=WRITE_S), now + PATIENCE, now
            ),
        )


def cgroup_of(pid: int, proc: Path = Path("/proc")) -> str:
    """The last part of a process's cgroup v2 path; "" if it has none, or the process is gone."""
    try:
        text = (proc / str(pid) / "cgroup").read_text()
    except OSError:
        return ""
    paths = [line[3:] for line in text.splitlines() if line.startswith("0::")]
    return paths[0].rpartition("/")[2] if paths else ""
