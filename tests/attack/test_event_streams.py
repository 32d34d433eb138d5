"""Event streams of selected tasks: one user's selector does not delay other users."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import Any

import pytest

from odcd.api.events import of_tasks
from odcd.clock import TURN_S, SystemClock
from odcd.events import Event, EventHub, Heartbeat
from odcd.events.pages import PAGE
from odcd.slurm.lists import parse_selector
from tests.odcd.api.service import Service, serve

SPARSE = "10000000-30000000:2001"
"""9,996 separate ranges of tasks."""


class Counted(int):
    """A task that counts how often it is compared."""

    compared = 0

    def _count(self, other: Any, name: str) -> bool:
        Counted.compared += 1
        return getattr(int(self), name)(int(other))

    def __lt__(self, other: Any) -> bool:
        return self._count(other, "__lt__")

    def __le__(self, other: Any) -> bool:
        return self._count(other, "__le__")

    def __gt__(self, other: Any) -> bool:
        return self._count(other, "__gt__")

    def __ge__(self, other: Any) -> bool:
        return self._count(other, "__ge__")


def event(task: int | None) -> Event:
    return Event(1, "started", 8, 7, task, "{}")


def test_an_event_is_compared_with_only_a_few_of_many_ranges() -> None:
    """Before: with all of them, so that one GET of 80 bytes blocked the event loop for 3.6 s."""
    selector = parse_selector(f"7_[{SPARSE}]")
    assert selector.tasks is not None
    matches = of_tasks(selector.tasks)
    for task, expected in ((5, False), (10_000_000, True), (10_000_001, False), (2**31 - 2, False)):
        Counted.compared = 0
        assert matches(event(Counted(task))) is expected
        assert Counted.compared <= 20


@pytest.mark.parametrize("selector", ["7_3", "7_[0-2,4,6-9:2]", "7_[2147483646]"])
def test_a_stream_of_selected_tasks_contains_only_those_tasks(selector: str) -> None:
    tasks = parse_selector(selector).tasks
    assert tasks is not None
    matches = of_tasks(tasks)
    matching = {task for task in (*range(12), 2**31 - 2) if matches(event(task))}
    assert matching == {"7_3": {3}, "7_[0-2,4,6-9:2]": {0, 1, 2, 4, 6, 8}}.get(
        selector, {2**31 - 2}
    )
    assert not matches(event(None))


class Pages:
    """Events of a store that never has to be waited for."""

    def __init__(self, count: int) -> None:
        self._count = count

    async def list(
        self, after: int, limit: int, job_id: int | None = None
    ) -> list[tuple[int, str]]:
        body = json.dumps({"kind": "started", "job_id": 7})
        return [(n, body) for n in range(after + 1, min(self._count, after + limit) + 1)]

    async def get_last(self) -> int:
        return 0

    async def list_settled(self, job_ids: list[int]) -> list[int]:
        return []

    async def get_results(self, selector: Any) -> str | None:
        return None


@pytest.mark.parametrize(("streams", "follow"), [(1, False), (1, True), (5, True)])
def test_other_requests_are_served_while_a_page_of_events_is_filtered(
    streams: int, follow: bool
) -> None:
    """Before: the event loop was given back once for a page of a thousand, by each stream."""
    count = 10
    assert count < PAGE

    async def work() -> list[int]:
        turns = 0
        seen: list[int] = []

        async def others() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        def slow(_event: Event) -> bool:
            """Filters out every event, and takes longer than a turn of the event loop may."""
            until = time.monotonic() + 0.011
            while time.monotonic() < until:
                pass
            seen.append(turns)
            return False

        hub = EventHub(Pages(0 if follow else count), SystemClock())
        reading = [
            hub.stream(0, matches=slow, follow=follow, heartbeat_s=0.001) for _ in range(streams)
        ]
        if follow:
            for stream in reading:
                assert isinstance(await anext(stream), Heartbeat)
            hub._store = Pages(count)  # pyright: ignore
            await hub._read()  # pyright: ignore
        beside = asyncio.create_task(others())
        await asyncio.gather(*(anext(stream, None) for stream in reading))
        beside.cancel()
        for stream in reading:
            await stream.aclose()
        return seen

    seen = asyncio.run(work())
    assert len(seen) == count * streams
    # One before the others' turn, and one after it.
    assert max(Counter(seen).values()) <= 2


def test_streams_that_read_the_past_leave_most_of_the_time_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before: 60 streams of one user that read all events from the first one used the loop all
    the time, and others' requests took 30 times as long."""
    rests: list[float] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        later = loop.call_later

        def call_later(delay: float, callback: Any, *args: Any, **more: Any) -> Any:
            if getattr(callback, "__name__", "") == "_begin":
                rests.append(delay)
            return later(delay, callback, *args, **more)

        monkeypatch.setattr(loop, "call_later", call_later)
        hub = EventHub(Pages(5), SystemClock())
        orders: list[int] = []

        async def read(number: int) -> None:
            def slow(_event: Event) -> bool:
                time.sleep(TURN_S)
                orders.append(number)
                return False

            stream = hub.stream(0, matches=slow, follow=False)
            assert await anext(stream, None) is None

        await asyncio.gather(*map(read, range(3)))
        assert len(orders) == 15
        # They take turns, too.
        assert {0, 1, 2} == set(orders[:6])

    asyncio.run(work())
    assert len(rests) >= 5
    assert min(rests) >= 2 * TURN_S


def test_a_stream_of_many_ranges_without_follow_ends_after_the_existing_events(
    database_url: str,
) -> None:
    async def work(service: Service) -> None:
        array = await service.submit(array="0-7", gpus=1)
        await service.plan()
        await service.final()
        async with service.client() as client:
            path = f"/v1/jobs/{array}_[0-1,4,{SPARSE}]/events?after=0&follow=false"
            answer = await client.get(path)
        assert answer.text.count("event: started") == 3

    serve(database_url, work)
