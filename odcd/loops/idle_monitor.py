"""Check for idle dev servers, as their QOS demands: warn their users, and end them if it says so.
Runs on the leader only.

The database decides what is idle. A dev server that cannot be checked does not count as idle.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from odcd.clock import Clock
from odcd.errors import OdcError
from odcd.executor.base import DevServers
from odcd.isolation import Isolation
from odcd.loops.rounds import RoundMetrics, Rounds
from odcd.records.dev_server import DueCheck, IdleNotice
from odcd.records.dispatch import Notice
from odcd.stores.dev_servers import DevServerStore

AT_ONCE = 16


class IdleMonitor(Rounds):
    name = "idle"

    def __init__(
        self, term: int, store: DevServerStore, servers: DevServers, clock: Clock, every: timedelta,
        metrics: RoundMetrics | None = None,
    ) -> None:  # fmt: skip
        """every: how often each dev server is checked."""
        super().__init__(clock, every, metrics)
        self._term = term
        self._store = store
        self._servers = servers
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._isolation = Isolation[DueCheck](
            self.name, clock, metrics, key=lambda check: (check.job_id, check.attempt)
        )

    async def run_once(self) -> None:
        """Check every dev server that is due."""
        due = await self._store.list_due_looks(self._term)
        self._isolation.keep_only(due)
        async with asyncio.TaskGroup() as group:
            for check in self._isolation.ready(due):
                group.create_task(
                    self._isolation.one(check, self._look_at(check), job_id=check.job_id),
                    name=f"look-{check.job_id}",
                )

    async def _look_at(self, check: DueCheck) -> None:
        async with self._turns:
            try:
                activity = await self.reach(
                    check.job_id, self._servers.look(check.job_id, check.attempt)
                )
            except OdcError:
                return
            now = self._clock.now()
            idle_notice = await self._store.record_look(
                self._term, check, activity, self._every, now
            )
            if idle_notice is None:
                return
            try:
                notice = notice_of(check, idle_notice)
                await self.reach(
                    check.job_id, self._servers.notify(check.job_id, check.attempt, notice)
                )
            except OdcError:
                # The notice is sent again after the next check. No dev server ends without a
                # delivered notice.
                return
            await self._store.record_idle_notice(self._term, check, idle_notice, self._clock.now())


def notice_of(check: DueCheck, idle_notice: IdleNotice) -> Notice:
    name = f"IDLE_{check.job_id}.txt"
    if idle_notice.idle_s is None:
        return Notice(remove=[name])
    idle = timedelta(seconds=idle_notice.idle_s)
    text = (
        f"Reservation {check.job_id} has been idle for {idle}: no one is connected, and its "
        "GPUs and CPUs are idle.\n"
    )
    if idle_notice.release_at is not None:
        at = f"{idle_notice.release_at:%Y-%m-%d %H:%M} UTC"
        text += f"If it stays idle, it ends at {at} or soon after.\n"
    return Notice(name=name, text=text, wall=text)
