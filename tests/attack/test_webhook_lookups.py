"""Users choose the hosts of webhooks, and so the servers that answer for their names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odcd.errors import BadRequest, TooManyRequests
from odcd.notify import webhooks as module
from odcd.notify.templates import read_templates
from odcd.notify.webhooks import Webhooks


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
