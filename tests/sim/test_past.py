"""An answer about a moment of the past stays the same forever, word for word."""

from __future__ import annotations

import asyncio
import json
import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from odcd.database.pool import Database
from odcd.errors import BadRequest, UnknownJob
from odcd.records.job import Identity, Selector
from tests.sim.seeds import seeds
from tests.sim.simulation import START, Simulation
from tests.support.harness.depth import deep

OTHER = Identity(user="other", uid=65_000, gid=65_000, operator=False)
"""Past answers name bookings for maintenance only, as those to this user do."""


class Remembering(Simulation):
    """Sends every query at random times, just before the clock moves on."""

    def __init__(self, database: Database, seed: int, share: float) -> None:
        super().__init__(database, seed)
        # A separate random generator: queries do not change the day.
        self.coin = random.Random(f"moments {seed}")
        self.share = share
        self.moments: dict[datetime, dict[str, Any]] = {}

    async def pass_time(self) -> None:
        now = self.clock.now()
        before = await self.answers(now) if self.coin.random() < self.share else None
        await super().pass_time()
        if before is not None and self.clock.now() > now:
            self.moments[now] = before

    async def answers(self, now: datetime, as_of: datetime | None = None) -> dict[str, Any]:
        """All jobs and nodes, and the answers about the last jobs one by one."""
        live, _ = await self.store.jobs.list(
            {}, now, ended=False, after=None, limit=10_000, as_of=as_of
        )
        every, _ = await self.store.jobs.list(
            {}, now, ended=True, after=None, limit=10_000, as_of=as_of
        )
        found: dict[str, Any] = {
            "live": json.loads(live),
            "all": json.loads(every),
            "nodes": json.loads(await self.store.nodes.list(OTHER, now, as_of)),
            "pages": await self.pages(now, as_of),
        }
        ids = [job["id"] for job in found["all"]]
        for job_id in [*ids[:3], *ids[len(ids) // 2 :][:1]]:
            selector = Selector(job_id=job_id)
            shown, _ = await self.store.jobs.list_rows(selector, now, as_of)
            found[f"show {job_id}"] = json.loads(shown)
            found[f"why {job_id}"] = json.loads(
                await self.store.jobs.explain(job_id, None, now)
                if as_of is None
                else await self.store.jobs.explain_past(selector, as_of, now)
            )
        return found

    async def pages(self, now: datetime, as_of: datetime | None) -> list[list[int]]:
        """Pending jobs of one user, page by page."""
        pages: list[list[int]] = []
        after: int | None = None
        while True:
            text, after = await self.store.jobs.list(
                {"user": "ann", "state": ["PENDING"]}, now, ended=False, after=after, limit=3,
                fields=["id"], as_of=as_of,
            )  # fmt: skip
            pages.append([job["id"] for job in json.loads(text)])
            if after is None:
                return pages


def differences(then: Any, now: Any, where: str = "") -> list[str]:
    """Where two answers differ, named so that a failure can be read."""
    if isinstance(then, dict) and isinstance(now, dict):
        keys = dict.fromkeys([*then, *now])
        return [d for k in keys for d in differences(then.get(k), now.get(k), f"{where}/{k}")]
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return [d for i, (a, b) in enumerate(zip(then, now, strict=True))
                for d in differences(a, b, f"{where}/{i}")]  # fmt: skip
    return [] if then == now else [f"{where}: showed {then!s:.300} then, {now!s:.300} now"]


def live_and_look_back(dsn: str, seed: int, steps: int, share: float) -> None:
    async def simulate() -> None:
        async with Database(dsn, size=2) as database:
            day = Remembering(database, seed, share)
            await day.run(steps)
            now = day.clock.now()
            assert len(day.moments) > steps * share / 10
            wrong = [
                f"seed {seed}, {moment}: {difference}"
                for moment, recorded in day.moments.items()
                for difference in differences(recorded, await day.answers(now, moment))
            ]
            assert wrong == [], "\n".join([f"{len(wrong)} differences", *wrong[:8]])
            await refuses_what_it_cannot_know(day)

    asyncio.run(simulate())


async def refuses_what_it_cannot_know(day: Remembering) -> None:
    now = day.clock.now()
    for moment, message in (
        (now + timedelta(microseconds=1), "is in the future"),
        (START - timedelta(microseconds=1), "no history is kept for"),
    ):
        with pytest.raises(BadRequest, match=message):
            await day.store.nodes.list(OTHER, now, moment)
    with pytest.raises(UnknownJob):
        await day.store.jobs.list_rows(Selector(job_id=day.submitted[-1]), now, START)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1))
def test_a_day_is_shown_later_as_it_was_shown_then(database_url: str, seed: int) -> None:
    live_and_look_back(database_url, seed, steps=100, share=0.1)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(1, 200))
def test_many_days_are_shown_later_as_they_were_shown_then(database_url: str, seed: int) -> None:
    live_and_look_back(database_url, seed, steps=deep(200), share=0.08)
