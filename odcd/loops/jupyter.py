"""Start and stop Jupyter Lab in dev servers as their users request. Runs on the leader only.

The database lists the dev servers to change. Each stays due until a change was attempted.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from odcd.clock import Clock
from odcd.errors import OdcError, RunnerDown
from odcd.executor.base import DevServers
from odcd.isolation import Isolation
from odcd.loops.rounds import RoundMetrics, Rounds
from odcd.records.dev_server import JupyterRequest
from odcd.stores.dev_servers import DevServerStore

AT_ONCE = 16
RETRY_S = 3.0
MAX_ERROR_CHARS = 500


class JupyterControl(Rounds):
    """Woken when Jupyter may have been requested, or a dev server is ready."""

    name = "jupyter"

    def __init__(
        self, term: int, store: DevServerStore, servers: DevServers, clock: Clock, every: timedelta,
        metrics: RoundMetrics | None = None,
    ) -> None:  # fmt: skip
        super().__init__(clock, every, metrics)
        self._term = term
        self._store = store
        self._servers = servers
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._busy: set[int] = set()
        """Job ids in progress: a slow start does not delay other jobs."""
        self._isolation = Isolation[JupyterRequest](
            self.name,
            clock,
            metrics,
            key=lambda request: (request.job_id, request.attempt, request.on),
        )

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        async with asyncio.TaskGroup() as self._tasks:
            await super().run()

    async def run_once(self) -> None:
        """Begin to fulfil what is due. A round does not wait for the tasks that it begins."""
        due = await self._store.list_due_jupyters(self._term)
        self._isolation.keep_only(due)
        for request in self._isolation.ready(due):
            if request.job_id not in self._busy:
                self._busy.add(request.job_id)
                self._tasks.create_task(self._fulfil(request), name=f"jupyter-{request.job_id}")

    async def _fulfil(self, request: JupyterRequest) -> None:
        try:
            async with self._turns:
                await self._isolation.one(request, self.fulfil_once(request), job_id=request.job_id)
        except RunnerDown:
            await self._clock.sleep(RETRY_S)
        finally:
            self._busy.discard(request.job_id)
            # The request may have changed in the meantime.
            self.wake()

    async def fulfil_once(self, request: JupyterRequest) -> None:
        """Raises RunnerDown when it must be tried again."""
        error = None
        try:
            await self.reach(
                request.job_id,
                self._servers.set_jupyter(request.job_id, request.attempt, on=request.on),
            )
        except RunnerDown:
            raise
        except OdcError as failed:
            error = failed.message[-MAX_ERROR_CHARS:]
        await self._store.record_jupyter(self._term, request, error, self._clock.now())
