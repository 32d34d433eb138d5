"""Job mapping files for this machine's DCGM exporter, which say which job uses each GPU.

There is one file per GPU, named by NVML's index, with one job id per line; it is empty while the
GPU is free. The exporter reads the files at every scrape, so each one is replaced atomically. The
files are compared with the database, so a killed daemon or an edited file does no harm.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from odcd.clock import Clock
from odcd.gpu_use.nvml import Device
from odcd.records.gpu_use import AllocatedGpus
from odcd.stores.gpu_use import GpuUseStore

log = logging.getLogger(__name__)

GAP_S = 0.1


class JobsDir:
    """Implements odcd.loops.leader_term.Woken."""

    def __init__(
        self, term: int, store: GpuUseStore, clock: Clock, folder: Path, places: Sequence[Device],
        every: timedelta,
    ) -> None:  # fmt: skip
        """places: see Sampler; empty if NVML does not answer: then the positions of jobs' GPUs are
        used as indexes."""
        self._term = term
        self._store = store
        self._clock = clock
        self._folder = folder
        self._places = places
        self._every_s = every.total_seconds()
        self._wake = asyncio.Event()
        self._trouble = ""

    def know(self, places: Sequence[Device]) -> None:
        """Called when NVML answers."""
        self._places = places
        self._wake.set()

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        while True:
            self._wake.clear()
            await self.write_once()
            await self._clock.sleep(GAP_S)
            try:
                async with asyncio.timeout(self._every_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def write_once(self) -> None:
        contents = {device.index: "" for device in self._places}
        contents |= texts_of(await self._store.list_allocated(self._term), self._places)
        try:
            changed = await asyncio.to_thread(write, self._folder, contents)
        except OSError as error:
            # Logged once, because every retry may fail the same way.
            if str(error) != self._trouble:
                log.error(
                    "gpu_use.no_job_files", extra={"folder": str(self._folder), "why": str(error)}
                )
            self._trouble = str(error)
            return
        self._trouble = ""
        if changed:
            log.debug("gpu_use.job_files", extra={"changed": changed})


def texts_of(held: Iterable[AllocatedGpus], places: Sequence[Device]) -> dict[int, str]:
    """The contents of the files for allocated GPUs, by NVML's index."""
    ids: dict[int, list[int]] = {}
    for one in held:
        for bit in one.indexes:
            index = places[bit].index if bit < len(places) else bit
            ids.setdefault(index, []).append(one.job_id)
    return {
        index: "".join(f"{job_id}\n" for job_id in sorted(set(jobs))) for index, jobs in ids.items()
    }


def write(folder: Path, contents: Mapping[int, str]) -> int:
    """Write the files, and empty those of other GPUs; return how many changed. Raises OSError."""
    there = {
        int(path.name): path
        for path in folder.iterdir()
        if path.name.isascii() and path.name.isdecimal()
    }
    texts = dict.fromkeys(there, "") | dict(contents)
    changed = 0
    for index, text in sorted(texts.items()):
        path = there.get(index) or folder / str(index)
        if index in there and path.read_bytes() == text.encode():
            continue
        # Not a numeric name, so the exporter ignores it.
        new = folder / f".{path.name}.new"
        new.write_bytes(text.encode())
        new.chmod(0o644)
        new.replace(path)
        changed += 1
    return changed
