"""Histories to replay: days of jobs in which nothing fails, through the daemon's own loops."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime

from odcd.database.pool import Database
from odcd.executor.simulated import Run
from odcd.loops.lead import Lead
from odcd.loops.planner import Planner
from odcd.loops.reconciler import Reconciler
from odcd.records.dispatch import Dispatch
from odcd.records.job import ReservationSpec
from tests.sim.simulation import ROOT, USERS, Simulation


class QuietDays(Simulation):
    """Jobs, arrays, gangs, dependencies, holds, begin times and dev servers.

    eventful: also preemption, requeues, cancelled jobs and drained nodes.
    """

    def __init__(self, database: Database, seed: int, *, eventful: bool) -> None:
        super().__init__(database, seed)
        self._eventful = eventful

    def run_of(self, dispatch: Dispatch) -> Run:
        chance = random.Random(f"{dispatch.job_id}/{dispatch.attempt}")
        return Run(seconds=chance.choice([30.0, 600.0, 3600.0, 20_000.0]))

    async def make_qos(self) -> None:
        await super().make_qos()
        if not self._eventful:
            await self.database.execute("update odc.qos set preempts = '{}'")

    async def live(self, steps: int) -> datetime:
        """The time after these steps, when jobs still run and wait."""
        await self.make_qos()
        async with self.leading() as (lead, planner, reaper):
            for _ in range(steps):
                await self.step(lead, planner, reaper)
        return self.clock.now()

    async def step(self, lead: Lead, planner: Planner, reaper: Reconciler) -> None:
        chance = self.random.random()
        if chance < 0.35:
            await self.submit()
        elif chance < 0.40:
            await self.store.jobs.release(ROOT, {"all": True}, self.clock.now())
        elif chance < 0.45:
            await self.use_a_dev_server()
        elif chance < 0.50 and self._eventful:
            await self.random.choice([self.requeue_one, self.cancel_one, self.drain_one])()
        else:
            await self.pass_time()
        # A replay knows seconds only: what happens in one second happens at once there.
        self.clock.move(1)
        await self.look(lead, planner, reaper)

    async def use_a_dev_server(self) -> None:
        """Reserve one, or extend one."""
        if self.reservations and self.random.random() < 0.3:
            await self.extend()
            return
        spec = ReservationSpec(
            script="#!/bin/sh\ntrue\n", work_dir="/tmp", name="box", gpu_type="h100", pty=True,
            node_count=1, gpus_per_node=self.random.choice([1, 4]),
            time_limit_s=self.random.choice([300, 3600]), details={},
        )  # fmt: skip
        self.reservations.append(await self.take(self.random.choice(USERS), spec))

    async def requeue_one(self) -> None:
        running = await self.database.fetch("select job_id from odc.running order by job_id")
        if running:
            await self.store.jobs.requeue(
                ROOT, _only(self.random.choice(running)["job_id"]), self.clock.now(), hold=False
            )

    async def cancel_one(self) -> None:
        if self.submitted:
            await self.store.jobs.cancel(
                ROOT, _only(self.random.choice(self.submitted[-20:])), self.clock.now()
            )

    async def drain_one(self) -> None:
        await self.change_a_node()

    async def look(self, lead: Lead, planner: Planner, reaper: Reconciler) -> None:
        """One round of the loops, without late or doubled answers of the executor."""
        now = self.clock.now()
        if facts := self.executor.take(now):
            await self.store.attempts.record_facts(lead.term, facts, now)
            await self.executor.acknowledge(facts)
        await self.store.leader.sweep(lead.term, now)
        await reaper.carry_out_once()
        await planner.plan_once()


def _only(job_id: int) -> dict[str, object]:
    return {"ids": [{"job_id": job_id, "tasks": None}]}


def quiet_days(dsn: str, seed: int, steps: int, *, eventful: bool = False) -> datetime:
    """Fill the database with a history; return the time at its end."""

    async def live() -> datetime:
        async with Database(dsn, size=2) as database:
            return await QuietDays(database, seed, eventful=eventful).live(steps)

    return asyncio.run(live())
