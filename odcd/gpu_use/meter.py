"""GPU usage of jobs during one term, from Prometheus if configured, else from NVML, else none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from odcd.call_metrics import NOBODY, Calls
from odcd.clock import Clock
from odcd.errors import DatabaseDown, LeadershipLost
from odcd.executor.gpus import choose, type_of
from odcd.executor.kubernetes.naming import Namespaces
from odcd.gpu_use.apart import Apart, Hangs
from odcd.gpu_use.ended import EndedUse
from odcd.gpu_use.jobs_dir import JobsDir
from odcd.gpu_use.live import LiveUse
from odcd.gpu_use.nvml import Device, Nvml, PyNvml
from odcd.gpu_use.prometheus import Prometheus
from odcd.gpu_use.queries import Labels
from odcd.gpu_use.sampler import EVERY_S, Sampler, cgroup_of
from odcd.gpu_use.settings import GpuUseSettings
from odcd.isolation import IsolationWatch
from odcd.stores.gpu_use import GpuUseStore

log = logging.getLogger(__name__)

DEVICES_S = 30.0
RETRY_S = 30.0
SAMPLED = timedelta(seconds=2 * EVERY_S)
"""Within this time the sampler notices that an attempt has ended, and writes its samples."""


class GpuUse:
    """Implements odcd.loops.leader_term.Woken."""

    def __init__(
        self, term: int, store: GpuUseStore, clock: Clock, settings: GpuUseSettings, *,
        namespaces: Namespaces | None, every: timedelta,
        calls: Calls = NOBODY, nvml_calls: Calls = NOBODY, nvml: Nvml | None = None,
        devices_s: float = DEVICES_S, retry_s: float = RETRY_S,
        watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        """namespaces: of the jobs' pods; None: jobs are processes of this machine. every: the
        maximum time between two checks without a notification. calls: metrics for Prometheus.
        devices_s: how long NVML may take to list its GPUs; retry_s: the time until a failed step is
        repeated."""
        self._term = term
        self._store = store
        self._clock = clock
        self._settings = settings
        self._namespaces = namespaces
        self._every = every
        self._calls = calls
        self._nvml = nvml or PyNvml()
        self._nvml_calls = nvml_calls
        self._apart = Apart(devices_s)
        self._retry_s = retry_s
        self._watch = watch
        self._hung = False
        self._jobs_dir: JobsDir | None = None

    def wake(self) -> None:
        if self._jobs_dir is not None:
            self._jobs_dir.wake()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown, in a group."""
        own = self._settings
        prometheus = None
        if own.prometheus_url:
            prometheus = Prometheus(
                own.prometheus_url, token=own.prometheus_token, ca=own.prometheus_ca,
                calls=self._calls,
            )  # fmt: skip
        try:
            await self._measure(prometheus)
        finally:
            if prometheus is not None:
                await prometheus.close()

    async def _measure(self, prometheus: Prometheus | None) -> None:
        own = self._settings
        labels = Labels(self._namespaces, own.prometheus_match)
        async with asyncio.TaskGroup() as group:
            # Even without a source: attempts from before must be settled.
            ended = EndedUse(
                self._term, self._store, prometheus, labels, self._clock,
                scrape=own.scrape if prometheus else SAMPLED, kept=own.kept, watch=self._watch,
            )  # fmt: skip
            group.create_task(self._forever(ended.run), name="ended-gpu-use")
            if prometheus is not None:
                await self._set_meter("prometheus")
                live = LiveUse(
                    self._term, self._store, prometheus, labels, self._clock,
                    scrape=own.scrape, idle_ratio=self._idle_ratio, watch=self._watch,
                )  # fmt: skip
                group.create_task(self._forever(live.run), name="live-gpu-use")
            # NVML may be slow to answer; the tasks above do not wait for it.
            places = await self._find_places() if self._namespaces is None else []
            if own.jobs_dir is not None:
                self._jobs_dir = JobsDir(
                    self._term, self._store, self._clock, own.jobs_dir, places or [], self._every
                )
                group.create_task(self._forever(self._jobs_dir.run), name="jobs-dir")
            while places is None:
                await self._clock.sleep(self._retry_s)
                places = await self._find_places()
                if places and self._jobs_dir is not None:
                    self._jobs_dir.know(places)
            if prometheus is None:
                await self._set_meter("nvml" if places else None)
                if places:
                    sampler = Sampler(
                        self._term, self._store, self._nvml, places, self._clock,
                        idle_ratio=self._idle_ratio, cgroup_of=cgroup_of, calls=self._nvml_calls,
                        watch=self._watch,
                    )  # fmt: skip
                    group.create_task(self._forever(sampler.run), name="nvml")

    @property
    def _idle_ratio(self) -> float:
        return self._settings.idle_percent / 100

    async def _set_meter(self, source: str | None) -> None:
        idle_after = self._settings.idle_after
        await self._store.set_meter(self._term, source, self._idle_ratio, idle_after)
        log.info("gpu_use.source", extra={"source": source or "none"})

    async def _forever(self, loop: Callable[[], Awaitable[None]]) -> None:
        """Run a loop and restart it after any error: GPU usage is useful, but scheduling must
        continue."""
        while True:
            try:
                await loop()
            except (LeadershipLost, DatabaseDown):
                raise
            except Exception:
                log.exception("gpu_use.failed")
            await self._clock.sleep(self._retry_s)

    async def _find_places(self) -> Sequence[Device] | None:
        """The GPUs that jobs can be given, in the order of their positions; None: NVML hangs."""
        try:
            with self._nvml_calls.asking("devices"):
                devices = await self._apart.run(self._nvml.devices)
        except Hangs as error:
            if not self._hung:
                log.error("gpu_use.nvml_hangs", extra={"why": str(error)})
            self._hung = True
            return None
        except Exception:
            log.exception("gpu_use.failed")
            return []
        offered = choose([type_of(device.model) for device in devices])
        return [devices[index] for index in offered.indexes] if offered else []
