"""What the GPUs of this machine's jobs do, by NVML: sampled all the time, written once a minute."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from odcd.clock import Clock
from odcd.gpu_use.apart import Apart, Hangs
from odcd.gpu_use.nvml import Device, Nvml, NvmlDown, Process, Reading
from odcd.gpu_use.records import HeldGpus, Part, Seen, sum_up
from odcd.gpu_use.sums import Sums, own_memory
from odcd.store import Store

log = logging.getLogger(__name__)

EVERY_S = 5.0
WRITE_S = 60.0
GAP_S = 3 * EVERY_S
PATIENCE = timedelta(seconds=3 * WRITE_S)

Readings = dict[int, tuple[Reading, dict[str, list[Process]]]]
"""By NVML's index: what it read, and the processes by their cgroup's name."""


class Sampler:
    def __init__(
        self, term: int, store: Store, nvml: Nvml, apart: Apart, places: Sequence[Device],
        clock: Clock, *, idle_ratio: float, cgroup_of: Callable[[int], str],
    ) -> None:  # fmt: skip
        """places: the GPU at each place that jobs are given. cgroup_of: the name of a process's
        group, of a member its key."""
        self._term = term
        self._store = store
        self._nvml = nvml
        self._apart = apart
        self._places = places
        self._clock = clock
        self._idle_ratio = idle_ratio
        self._cgroup_of = cgroup_of
        self._sums = Sums(GAP_S)
        self._hung = False

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
        """One sample of every GPU that is held; the attempts that are over since the last."""
        held = [one for one in await self._store.live_gpus(self._term) if one.running]
        live = {(one.job_id, one.attempt) for one in held}
        known = len(self._places)
        wanted = {self._places[bit].index for one in held for bit in one.indexes if bit < known}
        if wanted:
            try:
                readings = await self._apart.run(lambda: self._read(wanted))
            except Hangs as error:
                if not self._hung:
                    log.error("gpu_use.nvml_hangs", extra={"why": str(error)})
                self._hung = True
            else:
                self._hung = False
                self._add(held, readings)
        return self._sums.keys() - live

    def _read(self, wanted: set[int]) -> Readings:
        """In a thread of its own."""
        found: Readings = {}
        for index in sorted(wanted):
            try:
                reading = self._nvml.read(index)
            except NvmlDown as error:
                log.warning("gpu_use.no_reading", extra={"gpu": index, "why": str(error)})
                continue
            groups: dict[str, list[Process]] = {}
            for process in reading.processes:
                groups.setdefault(self._cgroup_of(process.pid), []).append(process)
            found[index] = reading, groups
        return found

    def _add(self, held: Sequence[HeldGpus], readings: Readings) -> None:
        now_s, now = self._clock.monotonic(), self._clock.now()
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
        """What was added up of these attempts; those that ended are forgotten then."""
        parts: list[Part] = []
        seen: list[Seen] = []
        for key in sorted(keys):
            part, gpus = self._sums.take(key, over=key in ended)
            parts.append(part)
            if key not in ended:
                seen += gpus
        if parts:
            await self._store.add_gpu_use(self._term, parts)
        looks = sum_up(seen, self._idle_ratio)
        if looks:
            now = self._clock.now()
            await self._store.note_gpu_now(
                self._term, looks, now - timedelta(seconds=WRITE_S), now + PATIENCE, now
            )


def cgroup_of(pid: int, proc: Path = Path("/proc")) -> str:
    """The last part of a process's cgroup v2; "" where there is none, or no such process."""
    try:
        text = (proc / str(pid) / "cgroup").read_text()
    except OSError:
        return ""
    paths = [line[3:] for line in text.splitlines() if line.startswith("0::")]
    return paths[0].rpartition("/")[2] if paths else ""
