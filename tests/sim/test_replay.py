"""Every pass of a day, replayed at its end, decides the same."""

from __future__ import annotations

import asyncio
import json

import pytest

from odcd.database.pool import Database
from tests.sim.seeds import seeds
from tests.sim.simulation import Simulation
from tests.support.harness.depth import deep


def live_and_replay(dsn: str, seed: int, steps: int) -> None:
    async def simulate() -> None:
        async with Database(dsn, size=2) as database:
            day = Simulation(database, seed)
            await day.run(steps)
            rows = await database.fetch("select id from odc.pass order by id")
            replays = [
                json.loads(await day.store.plans.replay(row["id"], None, None)) for row in rows
            ]
            wrong = [one for one in replays if not one["equal"] or one["chain"] is False]
            assert wrong == [], f"seed {seed}: {len(wrong)} of {len(replays)}: {wrong[:2]}"
            assert len(replays) > steps / 10
            assert any(one["starts"] for one in replays)

    asyncio.run(simulate())


@pytest.mark.long
def test_every_pass_of_a_day_decides_the_same_again(database_url: str) -> None:
    live_and_replay(database_url, seed=0, steps=40)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(300))
def test_every_pass_of_many_days_decides_the_same_again(database_url: str, seed: int) -> None:
    live_and_replay(database_url, seed, steps=deep(100))
