"""Changes reach the viewers: rendered once for all, at a limited rate, with limited backlogs."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any

import pytest

from odcd.errors import DatabaseDown, Unavailable
from odcd.events import Event
from odcd.home.postgres import EmbeddedPostgres
from odcd.page import app, queries, viewer
from odcd.page import live as module
from odcd.page.fragments import Rendered, Update
from odcd.page.live import Live, View, Viewer
from odcd.page.queries import PageOfAll, PageOfJob, PageOfQueue
from odcd.records.job import Selector
from odcd.slurm.lists import parse_selector
from tests.odcd.api.service import ALICE, BOB, until
from tests.odcd.page.browse import OURS, Browsed, browse, updates
from tests.odcd.page.conftest import restart

QUEUE = PageOfQueue()
PATIENCE_S = 60


def counting(it: Browsed) -> list[Any]:
    """Every view that is rendered from now on, in order."""
    live, seen = it.page._live, []  # pyright: ignore[reportPrivateUsage]
    render = live._render  # pyright: ignore[reportPrivateUsage]

    async def counted(view: Any) -> Rendered:
        seen.append(view)
        return await render(view)

    live._render = counted  # pyright: ignore[reportPrivateUsage]
    return seen


@pytest.fixture(autouse=True)
def _seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that stalls, views would be rendered again for their age, or be called old."""
    monkeypatch.setattr(module, "REFRESH_S", 3600.0)
    monkeypatch.setattr(module, "LATE_S", 60.0)


def live_of(it: Browsed) -> Live:
    return it.page._live  # pyright: ignore[reportPrivateUsage]


async def followed(it: Browsed) -> None:
    """Wait until no event can be missed."""
    hub = it.service.hub
    await until(lambda: hub._position is not None)  # pyright: ignore[reportPrivateUsage]


async def settled(it: Browsed, view: View) -> None:
    """Until events are followed, and the second look after the last of them is over."""
    await followed(it)
    watched = live_of(it)._watched[view]  # pyright: ignore[reportPrivateUsage]
    await until(lambda: not watched.dirty and watched.refresh_s - watched.due_s > module.AGAIN_S)


async def news(viewer: Viewer) -> Update:
    """The next message, however long it takes."""
    async with asyncio.timeout(PATIENCE_S):
        while (update := await viewer.take()) is None:
            pass
    return update


@pytest.mark.long
def test_a_change_reaches_all_viewers_by_one_rendering(database_url: str) -> None:
    """And at once: triggered by its event, because nothing else is due."""

    async def work(it: Browsed) -> None:
        live = live_of(it)
        async with AsyncExitStack() as stack:
            seen = (await live.current(QUEUE)).version
            viewers = [await stack.enter_async_context(live.watch(QUEUE, seen)) for _ in range(50)]
            await settled(it, QUEUE)
            rendered = counting(it)
            job_id = await it.service.submit()
            updates = [await news(viewer) for viewer in viewers]
            for update in updates:
                assert update.rows["queue"].keys == [str(job_id)]
            assert len({id(update) for update in updates}) == 1
            assert len(rendered) <= 2
        assert live._watched == {}  # pyright: ignore[reportPrivateUsage]

    browse(database_url, work)


def test_an_up_to_date_viewer_gets_nothing_and_an_old_one_gets_all_rows(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        live = live_of(it)
        await it.service.submit()
        now = await live.current(QUEUE)
        async with live.watch(QUEUE, "older") as behind, live.watch(QUEUE, now.version) as current:
            update = await behind.take()
            assert update is not None
            assert set(update.rows["queue"].html) == {"1"}
            assert current._update is None  # pyright: ignore[reportPrivateUsage]

    browse(database_url, work)


def test_a_slow_viewer_has_one_update_waiting(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        live = live_of(it)
        async with live.watch(QUEUE, (await live.current(QUEUE)).version) as viewer:
            watched = live._watched[QUEUE]  # pyright: ignore[reportPrivateUsage]
            made: list[str] = []
            for _ in range(4):
                made.append(str(await it.service.submit()))
                await until(lambda: list(watched.rendered.rows["queue"]) == made)
            update = await viewer.take()
            assert update is not None
            assert update.rows["queue"].keys == made
            assert viewer._update is None  # pyright: ignore[reportPrivateUsage]

    browse(database_url, work)


def test_a_storm_of_events_is_a_few_renderings(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        live = live_of(it)
        async with live.watch(PageOfAll(), None):
            rendered = counting(it)
            begin = asyncio.get_running_loop().time()
            for _ in range(60):
                await it.service.happen("held")
            await asyncio.sleep(0.5)
            await until(lambda: rendered)
            took = asyncio.get_running_loop().time() - begin
            assert 1 <= len(rendered) <= took / module.GAP_S + 2

    browse(database_url, work)


@pytest.mark.long
def test_a_jobs_page_is_touched_by_its_own_events_alone(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        mine, other = await it.service.submit(), await it.service.submit()
        live, view = live_of(it), PageOfJob(id=str(mine))
        async with live.watch(view, None):
            await settled(it, view)
            rendered = counting(it)
            await it.service.happen("held", other)
            await asyncio.sleep(0.7)
            assert rendered == []
            await it.service.happen("held", mine)
            await until(lambda: view in rendered)

    browse(database_url, work)


def test_events_do_not_read_again_which_tasks_a_view_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that names thousands of jobs must not block the daemon at every event."""
    read: list[str] = []

    def counted(text: str) -> Selector:
        read.append(text)
        return parse_selector(text)

    monkeypatch.setattr(queries, "parse_selector", counted)
    view = PageOfJob(id="987654_[0-19998:2]")
    event = Event(
        id=1, kind="held", job_id=987654, array_job_id=None, array_task_id=None, body=""
    )  # fmt: skip
    assert [view.touched_by(event) for _ in range(3)] == [True] * 3
    assert len(read) == 1


def test_without_viewers_nothing_is_rendered(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        live = live_of(it)
        async with live.watch(QUEUE, None):
            await followed(it)
        await it.service.happen("held")
        await until(lambda: not it.service.hub.clients)
        rendered = counting(it)
        for _ in range(5):
            await it.service.happen("held")
            await asyncio.sleep(0.1)
        assert rendered == []
        assert it.service.hub.clients == 0

    browse(database_url, work)


@pytest.mark.long
def test_trouble_of_the_database_is_outlasted(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        live = live_of(it)
        async with live.watch(QUEUE, (await live.current(QUEUE)).version) as viewer:
            render = live._render  # pyright: ignore[reportPrivateUsage]
            failures: list[int] = []
            made: list[int] = []

            async def down(view: Any) -> Rendered:
                if len(failures) < 2 or not made:
                    failures.append(1)
                    raise DatabaseDown("away")
                return await render(view)

            live._render = down  # pyright: ignore[reportPrivateUsage]
            made.append(await it.service.submit())
            received = await news(viewer)
            assert (received.as_of or "").endswith("Z")
            assert received.rows == {}
            update = await news(viewer)
            assert update.as_of is None
            assert update.rows["queue"].keys == [str(job_id) for job_id in made]
            assert len(failures) >= 2

    browse(database_url, work)


@pytest.mark.long
def test_many_views_leave_the_daemon_its_time_and_each_has_its_turn(database_url: str) -> None:
    """All of them together use a third of it, however many there are."""
    views = [PageOfQueue(user=f"u{n}") for n in range(40)]

    async def work(it: Browsed) -> None:
        live, took_s, seen = live_of(it), 0.02, dict[Any, int]()

        async def slow(view: Any) -> Rendered:
            seen[view] = seen.get(view, 0) + 1
            await asyncio.sleep(took_s)
            return Rendered()

        async with AsyncExitStack() as stack:
            for view in views:
                await stack.enter_async_context(live.watch(view, None))
            live._render = slow  # pyright: ignore[reportPrivateUsage]
            seen.clear()
            loop = asyncio.get_running_loop()
            begin = loop.time()
            while min(seen.get(view, 0) for view in views) < 1:
                await it.service.happen("held")
                await asyncio.sleep(0.05)
                assert loop.time() - begin < PATIENCE_S
            count = sum(seen.values())
            assert count * took_s <= (loop.time() - begin) / 2
            assert max(seen.values()) <= 2

    browse(database_url, work)


@pytest.mark.long
def test_a_dead_database_and_its_return_reach_the_viewer(own_server: EmbeddedPostgres) -> None:
    async def work(it: Browsed) -> None:
        begin = it.service.api.clock.now().replace(microsecond=0)
        async with live_of(it).watch(QUEUE, (await live_of(it).current(QUEUE)).version) as viewer:
            await settled(it, QUEUE)
            dead = own_server.postmaster()
            assert dead is not None
            os.kill(dead.pid, signal.SIGKILL)
            received = await news(viewer)
            assert received.as_of is not None
            assert begin <= datetime.fromisoformat(received.as_of) <= it.service.api.clock.now()
            await asyncio.to_thread(restart, own_server)
            async with asyncio.timeout(PATIENCE_S):
                while (await news(viewer)).as_of is not None:
                    pass
            job_id = await it.service.submit()
            update = await news(viewer)
            assert update.rows["queue"].keys == [str(job_id)]

    browse(own_server.dsn, work)


def test_a_view_that_cannot_be_drawn_ends_nothing(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(it: Browsed) -> None:
        live = live_of(it)
        async with live.watch(QUEUE, (await live.current(QUEUE)).version) as viewer:
            render = live._render  # pyright: ignore[reportPrivateUsage]
            made: list[int] = []

            async def broken(view: Any) -> Rendered:
                if not made:
                    raise ZeroDivisionError
                return await render(view)

            live._render = broken  # pyright: ignore[reportPrivateUsage]
            received = await news(viewer)
            assert received.as_of is not None
            made.append(await it.service.submit())
            update = await news(viewer)
            assert update.rows["queue"].keys == [str(job_id) for job_id in made]
        assert "page.failed" in caplog.text

    browse(database_url, work)


def test_a_stream_ends_so_that_the_viewer_is_authenticated_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "STREAM_S", 0.3)
    for place in (module, viewer):
        monkeypatch.setattr(place, "HEARTBEAT_S", 0.1)

    async def work(it: Browsed) -> None:
        async with it.inside() as client, asyncio.timeout(PATIENCE_S):
            answer = await client.get("/page/live?of=/page/queue&seen=none")
            assert answer.headers["content-type"].startswith("text/event-stream")
            [whole] = updates(answer.content)
            assert whole["rows"]["queue"]["keys"] == []
            assert answer.content.count(b"\nevent: beat\n") >= 1
            await client.post("/page/leave", headers=OURS)
            assert (await client.get("/page/live?of=/page/queue")).status_code == 401

    browse(database_url, work)


def test_a_view_that_is_drawn_already_has_room_for_more(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_VIEWS", 1)

    async def work(it: Browsed) -> None:
        live = live_of(it)
        async with live.watch(QUEUE, None):
            with pytest.raises(Unavailable):
                async with live.watch(PageOfAll(), None):
                    pass
            async with live.watch(QUEUE, None):
                pass

    browse(database_url, work)


def test_a_user_cannot_use_all_view_slots(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_VIEWS_PER_USER", 1)
    monkeypatch.setattr(app, "STREAM_S", 0.1)
    for place in (module, viewer):
        monkeypatch.setattr(place, "HEARTBEAT_S", 0.1)

    async def work(it: Browsed) -> None:
        async with (
            it.inside(ALICE) as alice,
            it.inside(BOB) as bob,
            live_of(it).watch(QUEUE, None, ALICE.uid),
        ):
            other = "/page/live?of=/page/nodes"
            assert (await alice.get(other)).status_code == 503
            assert (await alice.get("/page/live?of=/page/queue")).status_code == 200
            assert (await bob.get(other)).status_code == 200

    browse(database_url, work)


def test_the_number_of_viewers_is_a_metric(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async def viewers() -> str:
            async with it.client() as client:
                text = (await client.get("/metrics")).text
            return next(line for line in text.splitlines() if line.startswith("odcd_page_viewers"))

        live = live_of(it)
        async with live.watch(QUEUE, None), live.watch(QUEUE, None):
            assert await viewers() == "odcd_page_viewers 2.0"
        assert await viewers() == "odcd_page_viewers 0.0"

    browse(database_url, work)
