"""What users look for every day: their own jobs, times, colours, nodes and filters."""

from __future__ import annotations

import asyncio
import re
from html import unescape

import pytest

from odcd.page.answering import words
from odcd.page.filters import stated
from odcd.page.fragments import Update
from odcd.page.gantt import LEAST_HEIGHT, least_height
from odcd.page.hues import HUES, assign, preferred
from odcd.page.queries import PageOfAll, PageOfMine
from odcd.page.viewer import Aside, Viewer
from tests.odcd.api.service import BOB
from tests.odcd.page.browse import Browsed, browse, updates
from tests.odcd.page.test_views import ids


def block(html: str) -> str:
    """The block of the viewer's own jobs."""
    [found] = re.findall(
        r'<section class="card" aria-labelledby="h-mine">.*?</section>', html, re.S
    )
    return found


def plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def test_the_overview_begins_with_the_jobs_of_its_viewer(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        theirs = [await it.service.submit(BOB, gpus=8) for _ in range(2)]
        await it.service.plan()
        own = [await it.service.submit(gpus=8, name="mine") for _ in range(9)]
        await it.service.plan()
        async with it.inside() as client:
            page = (await client.get("/")).text
            assert page.index('id="h-mine"') < page.index('class="sums"')
            assert ids(block(page)) == own[:8]
            assert "Show all your jobs" in block(page)
        async with it.inside(BOB) as client:
            assert ids(block((await client.get("/")).text)) == theirs
            assert "Show all your jobs" not in block((await client.get("/")).text)

    browse(database_url, work)


def test_a_user_without_jobs_reads_so(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        await it.service.submit(BOB)
        async with it.inside() as client:
            own = block((await client.get("/")).text)
            assert "You have no waiting or running jobs." in own
            assert 'href="/page/ended?user=64001"' in own

    browse(database_url, work)


def test_changes_of_own_jobs_are_sent_with_those_for_everyone(database_url: str) -> None:
    """In one stream: the overview keeps its version, and the own jobs come without one."""

    async def work(it: Browsed) -> None:
        own, other = await it.service.submit(gpus=1), await it.service.submit(BOB, gpus=1)
        live = it.page._live  # pyright: ignore[reportPrivateUsage]
        main, beside = PageOfAll(), PageOfMine(user="64001")
        seen = (await live.current(main)).version
        async with live.watch(main, seen, 64001, beside) as viewer:
            update = await viewer.take()
            assert update is not None
            assert list(update.rows["mine"].html) == [str(own)]
            assert str(other) not in update.rows["mine"].html
            assert update.event.startswith((b"data: ", b"id: " + seen.encode()))
            assert updates(update.event)
            # The user's own block takes none of the room for views.
            watched = live._watched  # pyright: ignore[reportPrivateUsage]
            assert [one.aside for one in watched.values()] == [False, True]
        assert not watched

    browse(database_url, work)


def test_a_running_job_shows_the_time_used_and_its_limit(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        job_id = await it.service.submit(time_limit_s=7200)
        await it.service.plan()
        await it.service.database.execute(
            "update odc.running set started_at = started_at - interval '65 min 30 s'"
        )
        async with it.inside() as client:
            for path in ("/", "/page/queue?state=running"):
                [row] = re.findall(
                    r'class="ran-for">(.*?)</span>', (await client.get(path)).text, re.S
                )[:1]
                assert plain(row).startswith("1 h 5 min of 2 h since "), path
            page = plain((await client.get(f"/page/jobs/{job_id}")).text)
            assert "Running for 1 h 5 min of 2 h" in page

    browse(database_url, work)


def test_ended_jobs_have_headings_a_duration_and_the_order_of_their_ends(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        first, second = await it.service.submit(gpus=1), await it.service.submit(gpus=1)
        await it.service.plan()
        await it.service.database.execute(
            "update odc.running set started_at = started_at - interval '2 min 5 s'"
        )
        await it.service.end(second)
        await it.service.end(first)
        never = await it.service.submit(gpus=1, hold=True)
        async with it.client() as client:
            cancelled = await client.post(f"/v1/jobs/{never}/cancel", json={})
            assert cancelled.status_code < 300, cancelled.text
        async with it.inside() as client:
            page = (await client.get("/page/ended")).text
            assert ids(page) == [never, first, second]
            [head] = re.findall(r'ended-head"[^>]*>(.*?)</div>', page, re.S)
            assert plain(head) == "Job User Requested State Nodes Duration Ended"
            took = [plain(one) for one in re.findall(r'class="took">(.*?)</span>\n', page, re.S)]
            assert "did not start" in took
            assert sum(one.startswith("ran for 2 min") for one in took) == 2

    browse(database_url, work)


def test_the_page_of_an_array_shows_its_progress(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        array = await it.service.submit(name="sweep", gpus=4, array="0-4")
        await it.service.plan()
        async with it.inside() as client:
            page = (await client.get(f"/page/jobs/{array}")).text
            assert "0 of 5 tasks done, 2 running, 3 waiting" in plain(page)
            assert 'width="40.0%" height="8" class="ran"' in page

    browse(database_url, work)


def test_the_first_users_have_different_colours() -> None:
    users = [f"user{n}" for n in range(40)]
    assert len({preferred(user) for user in users[:HUES]}) < HUES
    given = assign(users)
    assert {given[user] for user in users[:HUES]} == set(range(HUES))
    # A later user takes no colour from those before it.
    assert {user: assign([*users[:5], "late"])[user] for user in users[:5]} == assign(users[:5])


def test_the_legend_names_the_users_in_the_colours_of_their_cells(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        await it.service.submit(gpus=3)
        await it.service.submit(BOB, gpus=4)
        await it.service.plan()
        colours = assign(["64001", "64002"])
        assert colours["64001"] != colours["64002"]
        async with it.inside() as client:
            for path in ("/", "/page/nodes"):
                page = (await client.get(path)).text
                [legend] = re.findall(r'<ul class="legend users".*?</ul>', page, re.S)
                keys = re.findall(r'class="c w1 h(\d+) key" data-user="(\d+)"', legend)
                assert {user: int(hue) for hue, user in keys} == colours
                cells = re.findall(r'class="c w\d h(\d+)" data-user="(\d+)"', page)
                assert {user: int(hue) for hue, user in cells} == colours
            queue = (await client.get("/page/queue")).text
            dots = re.findall(r'class="dot h(\d+)"></i>(\d+)<', queue)
            assert {user: int(hue) for hue, user in dots} == colours

    browse(database_url, work)


def test_a_job_that_can_never_start_says_so(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        first = await it.service.submit(gpus=1)
        await it.service.plan()
        lost = await it.service.submit(gpus=1, dependency=f"afterok:{first}")
        async with it.inside() as client:
            assert "can never start" not in (await client.get("/page/queue")).text
            await it.service.end(first, exit_code=1)
            page = (await client.get("/page/queue?state=waiting")).text
            assert ids(page) == [lost]
            assert 'class="badge s-NEVER">can never start</span>' in page
            assert "it will not start" in page
            assert "can never start" in plain((await client.get(f"/page/jobs/{lost}")).text)

    browse(database_url, work)


def test_nodes_show_cpus_memory_and_when_they_are_free(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        await it.service.submit(gpus=3, cpus_per_task=5, mem_per_node_mib=2048, time_limit_s=3600)
        await it.service.plan()
        ends = await it.service.database.fetchrow("select ends_at from odc.running")
        async with it.inside() as client:
            page = (await client.get("/page/nodes")).text
            rows = re.findall(r'<div class="noderow">(.*?)</div>', page, re.S)
            busy = next(row for row in rows if "3 of 8 GPUs" in row)
            assert "5 of " in plain(busy)
            assert "2 GiB of " in plain(busy)
            assert f"{ends['ends_at']:%Y-%m-%dT%H:%M:%S}Z" in busy
            assert any("0 of 8 GPUs" in row and "free now" in row for row in rows)
            one = (await client.get("/page/plan?node=n1")).text
            assert re.search(
                r"CPUs [\d,]+ of [\d,]+ allocated Memory .* allocated Free", plain(one)
            )
            assert (await client.get("/page/plan?node=nothing")).status_code == 200

    browse(database_url, work, nodes=2)


def test_filters_are_menus_of_the_users_and_partitions(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        await it.service.submit(BOB)
        await it.service.submit()
        async with it.inside() as client:
            for path in ("/page/queue", "/page/ended"):
                page = (await client.get(f"{path}?user=64002&partition=main")).text
                [users] = re.findall(r'<select name="user">(.*?)</select>', page, re.S)
                assert re.findall(r">([^<]+)</option>", users) == ["all", "64001 (you)", "64002"]
                assert "<option selected>64002</option>" in users
                [partitions] = re.findall(r'<select name="partition">(.*?)</select>', page, re.S)
                assert "<option selected>main</option>" in partitions
                # A user of the address who never submitted a job stays chosen.
                page = (await client.get(f"{path}?user=carol")).text
                assert "<option selected>carol</option>" in page

    browse(database_url, work)


def test_the_names_of_users_are_read_once_for_many_views(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        store, read = it.service.api.store.page, []
        original = store.list_choices

        async def counted() -> tuple[list[str], list[str]]:
            read.append(1)
            return await original()

        store.list_choices = counted  # pyright: ignore[reportAttributeAccessIssue]
        await it.service.submit()
        async with it.inside() as client:
            for path in ("/page/queue", "/page/nodes", "/page/ended", "/page/plan"):
                await client.get(path)
            assert len(read) == 1
            await it.service.submit(BOB)
            await client.get("/page/queue?user=64002")
            await client.get("/page/queue?partition=main")
            assert len(read) == 2

    browse(database_url, work)


@pytest.mark.parametrize(("nodes", "height"), [(0, 96), (1, 96), (6, 80), (20, 24), (40, 18)])
def test_rows_of_the_plan_are_higher_for_few_nodes(nodes: int, height: int) -> None:
    assert least_height(nodes) == height
    assert height >= LEAST_HEIGHT


def test_planned_bars_are_hatched_and_short_bars_have_a_label_beside(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        await it.service.submit(gpus=8, time_limit_s=60, name="brief")
        await it.service.submit(gpus=8, time_limit_s=60)
        await it.service.plan()
        await it.service.submit(gpus=8, time_limit_s=60, name="soon")
        await it.service.submit(gpus=8, time_limit_s=360_000, name="long")
        await it.service.plan()
        async with it.inside() as client:
            page = (await client.get("/page/plan?zoom=7d")).text
            bars = re.findall(r'<a class="bar ([a-z]+)[^"]*"(.*?)</a>', page, re.S)
            planned = [bar for kind, bar in bars if kind == "planned"]
            assert len(planned) == 2
            assert all('fill="url(#hatch)"' in bar for bar in planned)
            short = next(bar for _, bar in bars if "brief" in bar)
            assert re.search(r'<text class="tip"[^>]*>1 brief \(64001\)</text>', short)
            assert any("soon (64001, planned)" in bar for bar in planned)

    browse(database_url, work)


def test_errors_are_shown_in_words(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.inside() as client:
            for path, title, text in (
                ("/page/jobs/77", "Unknown job", "Job 77 does not exist."),
                ("/page/nothing", "Page not found", "There is no page or action at this address."),
                ("/page/plan?zoom=9d", "Bad request", "Zoom cannot be"),
            ):
                page = unescape((await client.get(path)).text)
                assert f">{title}</h1>" in page, path
                assert text in page, path
                assert "Error code <code>OD0" in page

    browse(database_url, work)


def test_words_of_errors() -> None:
    assert [words(name) for name in ("UnknownJob", "BadRequest", "UnknownQOS")] == [
        "Unknown job", "Bad request", "Unknown QOS",
    ]  # fmt: skip
    assert stated("there is no job 7") == "There is no job 7."
    assert stated("zoom: no") == "zoom: no."
    assert stated("Try again.") == "Try again."


async def _ages() -> None:
    viewer = Viewer(1)
    aside = Aside(viewer)
    viewer.put(Update(version="a", as_of="2026-07-01T12:00:05Z"))
    aside.put(Update(version="b"))
    update = await viewer.take()
    assert update is not None
    assert (update.version, update.as_of) == ("a", "2026-07-01T12:00:05Z")
    aside.put(Update(version="b", as_of="2026-07-01T12:00:01Z"))
    viewer.put(Update(version="c"))
    update = await viewer.take()
    assert update is not None
    assert (update.version, update.as_of) == ("c", "2026-07-01T12:00:01Z")
    aside.put(Update(version="d"))
    update = await viewer.take()
    assert update is not None
    assert (update.as_of, update.event.startswith(b"data: ")) == (None, True)


def test_a_browser_sees_the_age_of_the_older_of_its_views() -> None:
    """And the version of the main one only."""
    asyncio.run(_ages())
