"""What the GPUs of jobs do, from where it is known: Prometheus, else NVML, else nowhere. One term
of one daemon."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from odcd.calls import NOBODY, Calls
from odcd.clock import Clock
from odcd.errors import DatabaseDown, LeadershipLost
from odcd.executor.gpus import choose, type_of
from odcd.executor.kubernetes.naming import Namespaces
from odcd.gpu_use.apart import Apart, Hangs
from odcd.gpu_use.ended import EndedUse
from odcd.gpu_use.jobs_dir import JobsDir
from odcd.gpu_use.live import LiveUse
from odcd.gpu_use.nvml import Device, Nvml, PyNvml
from odcd.gpu_use.prometheus import Prometheus, parse_place
from odcd.gpu_use.queries import Labels
from odcd.gpu_use.sampler import EVERY_S, Sampler, cgroup_of
from odcd.gpu_use.settings import GpuUseSettings
from odcd.store import Store

log = logging.getLogger(__name__)

NVML_S = 30.0
RETRY_S = 30.0
SAMPLED = timedelta(seconds=2 * EVERY_S)
"""Within it the sampler has seen that an attempt is over, and written what it saw."""


class GpuUse:
    """Implements odcd.leading.Woken."""

    def __init__(
        self, term: int, store: Store, clock: Clock, settings: GpuUseSettings, *,
        namespaces: Namespaces | None, every: timedelta,
        calls: Calls = NOBODY, nvml: Nvml | None = None,
    ) -> None:  # fmt: skip
        """namespaces: of the jobs' pods; None: they are processes of this machine. every: the
        longest between two looks at what notifications should have told. calls: of Prometheus."""
        self._term = term
        self._store = store
        self._clock = clock
        self._settings = settings
        self._namespaces = namespaces
        self._every = every
        self._calls = calls
        self._nvml = nvml or PyNvml()
        self._apart = Apart(NVML_S)
        self._jobs_dir: JobsDir | None = None

    def wake(self) -> None:
        if self._jobs_dir is not None:
            self._jobs_dir.wake()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        own = self._settings
        places = await self._find_places() if self._namespaces is None else []
        source = "prometheus" if own.prometheus_url else "nvml" if places else None
        idle_ratio = own.idle_percent / 100
        await self._store.set_gpu_meter(self._term, source, idle_ratio, own.idle_after)
        log.info("gpu_use.source", extra={"source": source or "none", "gpus": len(places)})
        labels = Labels(self._namespaces, own.prometheus_match)
        prometheus = None
        if own.prometheus_url:
            prometheus = Prometheus(
                place=parse_place(own.prometheus_url), token=own.prometheus_token,
                ca=own.prometheus_ca, calls=self._calls,
            )  # fmt: skip
        async with asyncio.TaskGroup() as group:
            # Without a source too: what is owed from before is settled.
            ended = EndedUse(
                self._term, self._store, prometheus, labels, self._clock,
                scrape=own.scrape if prometheus else SAMPLED, kept=own.kept,
            )  # fmt: skip
            group.create_task(self._for_ever(ended.run), name="ended-gpu-use")
            if prometheus is not None:
                live = LiveUse(
                    self._term, self._store, prometheus, labels, self._clock,
                    scrape=own.scrape, idle_ratio=idle_ratio,
                )  # fmt: skip
                group.create_task(self._for_ever(live.run), name="live-gpu-use")
            elif places:
                sampler = Sampler(
                    self._term, self._store, self._nvml, self._apart, places, self._clock,
                    idle_ratio=idle_ratio, cgroup_of=cgroup_of,
                )  # fmt: skip
                group.create_task(self._for_ever(sampler.run), name="nvml")
            if own.jobs_dir is not None:
                self._jobs_dir = JobsDir(
                    self._term, self._store, self._clock, own.jobs_dir, places, self._every
                )
                group.create_task(self._for_ever(self._jobs_dir.run), name="jobs-dir")

    async def _for_ever(self, loop: Callable[[], Awaitable[None]]) -> None:
        """What jobs did is good to know; whatever goes wrong here, scheduling goes on."""
        while True:
            try:
                await loop()
            except (LeadershipLost, DatabaseDown):
                raise
            except Exception:
                log.exception("gpu_use.failed")
            await self._clock.sleep(RETRY_S)

    async def _find_places(self) -> Sequence[Device]:
        """The GPUs that jobs are given, in the order of their places."""
        try:
            devices = await self._apart.run(self._nvml.devices)
        except Hangs as error:
            log.error("gpu_use.nvml_hangs", extra={"why": str(error)})
            return []
        except Exception:
            log.exception("gpu_use.failed")
            return []
        offered = choose([type_of(device.model) for device in devices])
        return [devices[index] for index in offered.indexes] if offered else []
