"""One user's slow requests delay no request of another user, and leave the passes their CPUs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from odcd.database import slots as module
from odcd.database.pace import BUSY_S, LONG_S, SLOW_S, Asker, Pace, Speed
from odcd.database.slots import Slots, ask_as

REPLAY, LIST, OTHER = "/v1/passes/{id}/replay", "/v1/jobs", "/v1/availability"


class Scene:
    """Statements of users, on a clock that the test moves. No statement waits in vain for long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(module, "_now_s", lambda: self.now_s)
        self.slots = Slots(slow=1, patience_s=0.5)
        self.inside: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._ends: dict[str, asyncio.Event] = {}

    async def took(self, user: str, endpoint: str, seconds: float) -> None:
        """A statement of that user that took so long."""
        name = f"{user} took {seconds}"
        await self.begin(name, user, endpoint)
        self.now_s += seconds
        await self.end(name)

    async def begin(self, name: str, user: str, endpoint: str) -> None:
        ended = self._ends[name] = asyncio.Event()

        async def hold() -> None:
            ask_as(user, endpoint)
            async with self.slots.hold():
                self.inside.append(name)
                await ended.wait()
            self.inside.remove(name)

        self._tasks.append(asyncio.create_task(hold()))
        await settle()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await settle()

    async def finish(self) -> None:
        for ended in self._ends.values():
            ended.set()
        await asyncio.gather(*self._tasks)


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_long_replays_of_one_user_delay_no_list_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before: four replays of 30 s used the only place for slow statements. With 3,000 waiting
    jobs, a list took 0.3 s and so waited behind them: `odcctl queue` of every other user was
    answered with 503 after 10 s, for as long as the replays went on."""

    async def work() -> None:
        scene = Scene(monkeypatch)
        await scene.took("ann", REPLAY, 30.0)
        await scene.took("bob", LIST, 0.3)
        for number in range(4):
            await scene.begin(f"replay {number}", "ann", REPLAY)
        await scene.begin("list", "bob", LIST)
        assert scene.inside == ["replay 0", "list"]
        await scene.finish()

    run(work())


def test_a_slow_statement_that_turns_out_to_be_long_leaves_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if its user sent a quick request before, which is forgiven: one for a pass that does not
    exist, for example."""
    monkeypatch.setattr(module, "LONG_S", 0.0)

    async def work() -> None:
        scene = Scene(monkeypatch)
        await scene.took("ann", REPLAY, 0.3)
        await scene.took("bob", LIST, 0.3)
        await scene.begin("replay", "ann", REPLAY)
        await scene.begin("list", "bob", LIST)
        assert scene.inside == ["replay", "list"]
        await scene.end("list")
        # Her next ones wait until it has ended, at whatever endpoint.
        scene.now_s += LONG_S + 1
        await scene.begin("another", "ann", REPLAY)
        assert "another" not in scene.inside
        await scene.end("replay")
        assert "another" in scene.inside
        await scene.finish()

    run(work())


def test_users_take_turns_with_slow_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: first come, first served, so that others waited behind all of one user's."""

    async def work() -> None:
        scene = Scene(monkeypatch)
        await scene.took("ann", REPLAY, 0.3)
        await scene.took("bob", LIST, 0.3)
        for number in range(4):
            await scene.begin(f"replay {number}", "ann", REPLAY)
        await scene.begin("list", "bob", LIST)
        assert scene.inside == ["replay 0"]
        await scene.end("replay 0")
        assert scene.inside == ["list"]
        await scene.end("list")
        assert scene.inside == ["replay 1"]
        await scene.finish()

    run(work())


def test_many_quick_statements_of_one_user_are_slow_together() -> None:
    """Before: four connections that asked for the 5,000 tasks of a cancelled array, 40 ms each, or
    a slow request with a quick one after it, used four CPUs all the time."""
    pace, now_s = Pace(), 100.0

    def take(asker: Asker, seconds: float) -> None:
        nonlocal now_s
        pace.begin(asker, now_s)
        now_s += seconds
        pace.end(asker, now_s - seconds, now_s)

    ann, operator = Asker("ann", LIST), Asker("root", LIST, operator=True)
    unknown = Asker("client 192.0.2.7", LIST, known=False)
    for _ in range(round(2 * BUSY_S / 0.04) + 50):
        for asker in (ann, operator, unknown):
            now_s -= 0 if asker is ann else 0.04  # at the same time
            take(asker, 0.04)
    assert SLOW_S > 0.04
    assert pace.speed(ann, now_s) is Speed.SLOW
    assert pace.speed(Asker("ann", OTHER), now_s) is Speed.SLOW
    for asker in (operator, unknown, Asker("bob", LIST)):
        assert pace.speed(asker, now_s) is Speed.QUICK
    # It is forgiven while the user takes less.
    assert pace.speed(ann, now_s + 10) is Speed.QUICK


def test_a_user_who_asks_all_the_time_over_one_connection_of_four_is_quick() -> None:
    pace, now_s, ann = Pace(), 100.0, Asker("ann", LIST)
    for _ in range(1000):
        pace.begin(ann, now_s)
        pace.end(ann, now_s, now_s + 0.01)
        now_s += 0.04
        assert pace.speed(ann, now_s) is Speed.QUICK


def test_a_user_has_one_long_statement_at_a_time() -> None:
    pace, ann, other = Pace(), Asker("ann", REPLAY), Asker("ann", OTHER)
    pace.begin(other, 0.0)
    pace.end(other, 0.0, 1.0)
    pace.begin(ann, 1.0)
    assert pace.speed(other, 1.0 + LONG_S) is Speed.SLOW
    assert pace.speed(other, 1.1 + LONG_S) is Speed.LONG
    assert pace.speed(Asker("bob", OTHER), 1.1 + LONG_S) is Speed.QUICK
