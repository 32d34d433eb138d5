"""Build the images that reservations wait for. Runs on the leader only; the database decides.

An attempt is in the database before its Job is in the cluster, and its result is queried until it
is recorded. So whenever the daemon dies, the next one continues from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from odcd.clock import Clock
from odcd.errors import RunnerDown, WrongState
from odcd.isolation import Isolation, IsolationWatch, explain, is_at_fault
from odcd.records.build import Build, BuildLook
from odcd.stores.builds import BuildStore

log = logging.getLogger(__name__)

LOOK_S = 2.0
"""The time between two checks of running builds."""
MIN_GAP_S = 0.5
GONE = "its Kubernetes Job disappeared before it was done"
NO_CONTEXT = "its build context is no longer kept: reserve again"


class Builder(Protocol):
    """Carries builds out."""

    async def survey(self, builds: Sequence[Build]) -> dict[int, BuildLook]:
        """Return the observed state of each build, by id; a build is missing if this attempt has no
        Job. Deletes unfinished Jobs of all other builds. Raises RunnerDown: the state is
        unknown."""
        ...

    async def begin(self, build: Build, context: bytes) -> None:
        """Create the Job and its objects, also when some of them exist. Raises RunnerDown: try
        again; WrongState: it can never be created."""
        ...

    async def close(self) -> None: ...


class BuildWorker:
    def __init__(
        self, term: int, store: BuildStore, builder: Builder, clock: Clock, *, every: timedelta,
        at_once: int, on_change: Callable[[], None], watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        """every: check at least this often. on_change: called when reservations may no longer have
        to wait."""
        self._term = term
        self._store = store
        self._builder = builder
        self._clock = clock
        self._every_s = every.total_seconds()
        self._at_once = at_once
        self._on_change = on_change
        self._isolation = Isolation[Build](
            "builds", clock, watch, key=lambda build: (build.id, build.attempt)
        )
        self._wake = asyncio.Event()
        self._surveyed_at: float | None = None
        self._recorded: dict[tuple[int, int], tuple[str | None, str | None]] = {}

    def wake(self) -> None:
        """Called on a change: a user may wait for an image, or no longer wait."""
        self._wake.set()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        while True:
            self._wake.clear()
            building = await self.work_once()
            await self._clock.sleep(MIN_GAP_S)
            wait_s = min(LOOK_S, self._every_s) if building else self._every_s
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def work_once(self) -> int:
        """Check all builds once; return how many are in progress."""
        builds = await self._store.take(self._term, self._at_once, self._clock.now())
        if not builds and not self._due():
            return 0
        try:
            seen = await self._builder.survey(builds)
        except RunnerDown as error:
            log.warning("build.not_seen", extra={"why": error.message})
            return len(builds)
        self._surveyed_at = self._clock.monotonic()
        self._isolation.keep_only(builds)
        await self._isolation.each(builds, lambda build: self._settle(build, seen.get(build.id)))
        live = {(build.id, build.attempt) for build in builds}
        self._recorded = {key: progress for key, progress in self._recorded.items() if key in live}
        return len(builds)

    def _due(self) -> bool:
        """Check even without builds, because a previous leader's Job may appear late."""
        at = self._surveyed_at
        # The Job of a build that was just dropped is removed at the next check.
        return at is None or bool(self._recorded) or self._clock.monotonic() - at >= self._every_s

    async def _settle(self, build: Build, look: BuildLook | None) -> None:
        try:
            await self._settle_as_seen(build, look)
        except Exception as error:
            if not is_at_fault(error):
                raise
            # Not with what was read about it: that may be what cannot be stored.
            await self._end(build, BuildLook(state="failed", error=f"odc failed: {explain(error)}"))
            self._isolation.report(build.id, error)

    async def _settle_as_seen(self, build: Build, look: BuildLook | None) -> None:
        if look is None and build.made:
            await self._end(build, BuildLook(state="lost", error=GONE))
        elif look is not None and look.state != "going":
            await self._end(build, look)
        elif not build.made:
            await self._begin(build)
        elif look is not None:
            recorded = self._recorded.get((build.id, build.attempt))
            if recorded != (look.step, look.log):
                await self._note(build, look.step, look.log)

    async def _begin(self, build: Build) -> None:
        context = await self._store.get_context(build.id)
        if context is None:
            return await self._end(build, BuildLook(state="failed", error=NO_CONTEXT))
        try:
            await self._builder.begin(build, context)
        except RunnerDown as error:
            log.warning("build.not_begun", extra={"build": build.id, "why": error.message})
        except WrongState as error:
            log.error("build.refused", extra={"build": build.id, "why": error.message})
            await self._end(build, BuildLook(state="failed", error=error.message))
        else:
            log.info("build.begun", extra={"build": build.id, "attempt": build.attempt})
            await self._note(build, None, None)

    async def _note(self, build: Build, step: str | None, log: str | None) -> None:
        await self._store.record_progress(
            self._term, build, self._clock.now(), made=True, step=step, log=log
        )
        self._recorded[build.id, build.attempt] = (step, log)

    async def _end(self, build: Build, look: BuildLook) -> None:
        log.info(
            "build.ended", extra={"build": build.id, "attempt": build.attempt, "state": look.state}
        )
        await self._store.end(
            self._term, build, self._clock.now(), image=look.image, error=look.error,
            lost=look.state == "lost", log=look.log,
        )  # fmt: skip
        self._on_change()
