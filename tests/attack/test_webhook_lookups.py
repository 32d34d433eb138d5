"""Users choose the hosts of webhooks, and so the servers that answer for their names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odcd.database.pool import Database
from odcd.errors import BadRequest, TooManyRequests
from odcd.notify import webhooks as module
from odcd.notify.templates import read_templates
from odcd.notify.webhooks import Webhooks
from tests.odcd.loops.test_webhook_posts import a_hook, a_poster, fill
from tests.odcd.notify.test_webhooks import a_sink


def test_a_user_waits_for_one_name_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: four names whose servers did not answer kept everybody's webhooks waiting."""
    answered = asyncio.Event()
    asked: list[str] = []

    async def look_up(host: str, _port: int) -> list[tuple[Any, ...]]:
        asked.append(host)
        if host == "slow.example":
            await answered.wait()
        raise OSError("no such name")

    monkeypatch.setattr(module, "look_up", look_up)
    monkeypatch.setattr(module, "RESOLVE_S", 0.001)

    async def work() -> None:
        webhooks = Webhooks((), read_templates())
        with pytest.raises(BadRequest, match=r"slow\.example cannot be resolved"):
            await webhooks.check("https://slow.example", 1001)
        with pytest.raises(TooManyRequests, match="still being looked up"):
            await webhooks.check("https://other.example", 1001)
        assert asked == ["slow.example"]
        with pytest.raises(BadRequest, match=r"other\.example cannot be resolved"):
            await webhooks.check("https://other.example", 1002)
        answered.set()
        while webhooks._looking:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0)
        with pytest.raises(BadRequest, match=r"third\.example cannot be resolved"):
            await webhooks.check("https://third.example", 1001)

    asyncio.run(work())


def test_a_webhook_that_answers_slowly_delays_no_other_user(database_url: str) -> None:
    """Before: all webhooks waited for the slowest one of their batch, ten seconds each time."""

    async def work() -> None:
        answers = asyncio.Event()
        async with (
            Database(database_url, size=4) as database,
            a_sink(answers=answers) as slow,
            a_sink() as good,
        ):
            await a_hook(database, 1, slow)
            await a_hook(database, 2, good)
            await fill(database, 1, 2)
            await fill(database, 2, 20)
            sending = asyncio.create_task(a_poster(database).run_once())
            async with asyncio.timeout(60):
                while len(good.keys) < 20:
                    await asyncio.wait([sending], timeout=0.01)
            assert len(slow.keys) == 1
            assert not sending.done()
            answers.set()
            await sending
            assert len(slow.keys) == 2

    asyncio.run(work())
