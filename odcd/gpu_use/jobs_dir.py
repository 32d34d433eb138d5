"""Files that tell the DCGM exporter of this machine which job has a GPU: its job mapping folder.

One file a GPU, named by NVML's index, with a job id a line, empty while it is free. The exporter
reads them at every scrape, so each is replaced whole. What is there is compared with what the
database says, so that a daemon that was killed, or a file that somebody changed, does no harm.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from odcd.clock import Clock
from odcd.gpu_use.nvml import Device
from odcd.records.gpu_use import HeldGpus
from odcd.stores.store import Store

log = logging.getLogger(__name__)

GAP_S = 0.1


class JobsDir:
    """Implements odcd.loops.leader_term.Woken."""

    def __init__(
        self, term: int, store: Store, clock: Clock, folder: Path, places: Sequence[Device],
        every: timedelta,
    ) -> None:  # fmt: skip
        """places: as of Sampler; none where NVML does not answer: GPUs are as jobs are given
        them."""
        self._term = term
        self._store = store
        self._clock = clock
        self._folder = folder
        self._places = places
        self._every_s = every.total_seconds()
        self._wake = asyncio.Event()
        self._trouble = ""

    def know(self, places: Sequence[Device]) -> None:
        """NVML answers now."""
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
        wanted = {device.index: "" for device in self._places}
        wanted |= texts_of(await self._store.live_gpus(self._term), self._places)
        try:
            changed = await asyncio.to_thread(write, self._folder, wanted)
        except OSError as error:
            # Told once: it is tried again and again.
            if str(error) != self._trouble:
                log.error(
                    "gpu_use.no_job_files", extra={"folder": str(self._folder), "why": str(error)}
                )
            self._trouble = str(error)
            return
        self._trouble = ""
        if changed:
            log.debug("gpu_use.job_files", extra={"changed": changed})


def texts_of(held: Iterable[HeldGpus], places: Sequence[Device]) -> dict[int, str]:
    """What the files of held GPUs say, by NVML's index."""
    ids: dict[int, list[int]] = {}
    for one in held:
        for bit in one.indexes:
            index = places[bit].index if bit < len(places) else bit
            ids.setdefault(index, []).append(one.job_id)
    return {
        index: "".join(f"{job_id}\n" for job_id in sorted(set(jobs))) for index, jobs in ids.items()
    }


def write(folder: Path, wanted: Mapping[int, str]) -> int:
    """Make the files say so; those of GPUs that are not named say nothing. How many changed.
    Raises OSError."""
    there = {
        int(path.name): path
        for path in folder.iterdir()
        if path.name.isascii() and path.name.isdecimal()
    }
    texts = dict.fromkeys(there, "") | dict(wanted)
    changed = 0
    for index, text in sorted(texts.items()):
        path = there.get(index) or folder / str(index)
        if index in there and path.read_bytes() == text.encode():
            continue
        # A name that is no number: the exporter reads none of it.
        new = folder / f".{path.name}.new"
        new.write_bytes(text.encode())
        new.chmod(0o644)
        new.replace(path)
        changed += 1
    return changed
