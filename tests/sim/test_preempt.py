"""A preemption from beginning to end: real planner, reaper and SQL, the simulated executor."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from odcd.database.pool import Database
from odcd.executor.simulated import Run
from odcd.jobs.submission import prepare
from odcd.loops.lead import Lead
from odcd.loops.planner import Planner
from odcd.loops.reconciler import Reconciler
from odcd.records.dispatch import Dispatch
from odcd.records.job import JobSpec
from tests.sim.simulation import NODES, USERS, Simulation


class Calm(Simulation):
    """Nothing is random: every job would run for a day."""

    def run_of(self, dispatch: Dispatch) -> Run:
        return Run(seconds=86_400)

    async def ask(self, **fields: Any) -> int:
        spec = JobSpec(
            script="#!/bin/sh\ntrue\n", work_dir="/tmp", launch="all", time_limit_s=86_400, **fields
        )
        prepared = prepare(USERS[0], [spec], key=None, dry_run=False)
        [[answer]] = await self.store.jobs.submit(
            json.dumps([prepared.request]), list(prepared.texts), list(prepared.texts.values()),
            self.clock.now(),
        )  # fmt: skip
        assert answer.job_id is not None, answer
        return answer.job_id

    async def look_on(
        self, lead: Lead, planner: Planner, reaper: Reconciler, seconds: float
    ) -> None:
        """The loops of the daemon, each second."""
        for _ in range(round(seconds)):
            self.clock.move(1)
            facts = self.executor.take(self.clock.now())
            if facts:
                await self.store.attempts.record_facts(lead.term, facts, self.clock.now())
                await self.executor.acknowledge(facts)
            await reaper.carry_out_once()
            await planner.plan_once()
            await self.check()

    async def states(self, *jobs: int) -> list[str]:
        rows = await self.database.fetch(
            "select coalesce(r.state, j.state, 'PENDING')::text from odc.job as j "
            "left join odc.running as r on r.job_id = j.id where j.id = any ($1) order by j.id",
            list(jobs),
        )
        return [row[0] for row in rows]


@pytest.mark.long
def test_victims_get_their_grace_and_the_preemptor_their_nodes_though_the_leader_changes(
    database_url: str,
) -> None:
    async def simulate() -> None:
        async with Database(database_url, size=2) as database:
            calm = Calm(database, 0)
            calm.executor = type(calm.executor)(calm.clock, calm.run_of, NODES, grace_s=1000)
            await calm.make_qos()
            async with calm.leading() as old:
                gangs = [
                    await calm.ask(node_count=2, gpus_per_node=8, gpu_type="h100", qos="scavenger")
                    for _ in range(2)
                ]
                for _ in range(2):
                    await calm.ask(gpus=8, gpu_type="h100")
                await calm.look_on(*old, 3)
                assert await calm.states(*gangs) == ["RUNNING"] * 2
                [outcome] = json.loads(
                    await calm.store.jobs.checkpoint(
                        USERS[0], {"ids": [{"job_id": gangs[1], "tasks": None}]}, calm.clock.now()
                    )
                )
                assert outcome["outcome"] == "checkpointed"
                urgent = await calm.ask(
                    node_count=2, gpus_per_node=8, gpu_type="h100", qos="urgent"
                )
                waits = await calm.ask(gpus=8, gpu_type="h100")
                await calm.look_on(*old, 20)
                assert await calm.states(*gangs) == ["RUNNING", "COMPLETING"]
                async with calm.leading() as new:
                    # The executor has not reported it yet: the gang uses its minute.
                    await calm.look_on(*new, 38)
                    assert await calm.states(gangs[1], urgent) == ["COMPLETING", "PENDING"]
                    await calm.look_on(*new, 4)
                    assert await calm.states(gangs[1], urgent, waits) == [
                        "PENDING", "RUNNING", "PENDING",
                    ]  # fmt: skip
                    nodes = await database.fetchval(
                        "select node_names from odc.attempt where job_id = $1", gangs[1]
                    )
                    held = await database.fetch(
                        "select n.name from odc.allocation as a join odc.node as n "
                        "on n.id = a.node_id where a.job_id = $1",
                        urgent,
                    )
                    assert {row["name"] for row in held} == set(nodes)
                    await calm.look_on(*new, 100)
                    assert await calm.states(*gangs) == ["RUNNING", "PENDING"]
            events = await database.fetch(
                "select kind, at from odc.event where job_id = $1 and kind <> 'submitted' "
                "order by id",
                gangs[1],
            )
            assert [row["kind"] for row in events] == [
                "started", "checkpointed", "preempting", "requeued",
            ]  # fmt: skip
            assert timedelta(seconds=59) < events[3]["at"] - events[2]["at"] < timedelta(seconds=63)

    asyncio.run(simulate())
