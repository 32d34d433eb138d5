"""In whatever order events happen, no job is lost, doubled or promised resources that do not
exist."""

from __future__ import annotations

import asyncio

import pytest

from odcd.database.pool import Database
from tests.sim.seeds import seeds
from tests.sim.simulation import Simulation
from tests.support.harness.depth import deep


def live_through(dsn: str, seed: int, steps: int) -> None:
    async def simulate() -> None:
        async with Database(dsn, size=2) as database:
            simulation = Simulation(database, seed)
            await simulation.run(steps)
            rows = await database.fetch(
                "select id, state, array_tasks from odc.job where state is null or ended_at is null"
            )
            assert rows == [], f"seed {seed}: jobs without an end"
            ids = {row["id"] for row in await database.fetch("select id from odc.job")}
            assert set(simulation.submitted) <= ids

    asyncio.run(simulate())


@pytest.mark.parametrize("seed", range(1))
def test_a_busy_day_keeps_every_promise(database_url: str, seed: int) -> None:
    live_through(database_url, seed, steps=150)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(1, 100))
def test_many_days_keep_every_promise(database_url: str, seed: int) -> None:
    live_through(database_url, seed, steps=deep(400))
