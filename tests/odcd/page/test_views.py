"""The content of the page's views, for each kind of user."""

from __future__ import annotations

import gzip
import re
from datetime import timedelta
from html import unescape
from typing import Any

import msgspec
import pytest

from odcd.api.answers.plan import Gantt
from odcd.page import nodes
from odcd.page.files import assets
from odcd.page.hues import HUES, assign
from odcd.page.job import timeline
from odcd.page.jobs import PAGE
from tests.odcd.api.service import ALICE, BOB, OPERATOR
from tests.odcd.page.browse import Browsed, browse

SECRET = "b8f1c2-do-not-tell"


def ids(html: str) -> list[int]:
    return [int(key) for key in re.findall(r'<li data-key="(\d+)">', html)]


def shared(html: str) -> str:
    """A page without the parts that name its viewer."""
    main = html.partition("<main")[2]
    main = re.sub(
        r'<section class="card" aria-labelledby="h-mine">.*?</section>', "", main, flags=re.S
    )
    return re.sub(r"<select.*?</select>", "", main, flags=re.S)


def test_the_queue_is_paged_and_never_dumped(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        made = [await it.service.submit(gpus=8, hold=True) for _ in range(PAGE + 7)]
        async with it.inside() as client:
            first = (await client.get("/page/queue?state=waiting")).text
            assert ids(first) == made[:PAGE]
            [following] = re.findall(r'href="(/page/queue\?[^"]*after=[^"]*)"', first)
            rest = (await client.get(following.replace("&amp;", "&"))).text
            assert ids(rest) == made[PAGE:]
            assert "after=" not in rest.partition("queue-foot")[2]
            overview = (await client.get("/")).text
            assert len(set(ids(overview))) < PAGE
            assert f"of {len(made)}" in overview

    browse(database_url, work)


def test_a_follower_refuses_output_and_names_the_leader(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        job_id = await it.service.submit()
        await it.service.plan()
        async with it.inside() as client:
            answer = await client.get(f"/page/jobs/{job_id}/logs?follow=true")
            assert answer.status_code == 503
            assert answer.headers["content-type"].startswith("text/plain")
            assert "does not lead" in answer.text
            assert "`odcctl diag`" in answer.text

    browse(database_url, work)


def test_the_queue_is_ordered_by_position_under_every_policy(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        run = it.service.database.execute
        await run("update odc.partition set policy = 'sjf'")
        await it.service.submit(gpus=8)
        await it.service.plan()
        made = [
            await it.service.submit(gpus=8, time_limit_s=60 * (PAGE + 9 - n))
            for n in range(PAGE + 3)
        ]
        await it.service.plan()
        now = it.service.api.clock.now()
        await it.service.database.fetchrow("select * from odc.refresh_eta(0, $1)", now)
        held = await it.service.submit(gpus=8, hold=True)
        async with it.inside() as client:
            first = (await client.get("/page/queue?state=waiting")).text
            assert ids(first) == made[::-1][:PAGE]
            [following] = re.findall(r'href="(/page/queue\?[^"]*place=[^"]*)"', first)
            rest = (await client.get(following.replace("&amp;", "&"))).text
            assert ids(rest) == [*made[::-1][PAGE:], held]
            places = re.findall(r"place </span>(\d+)", first + rest)
            assert [int(place) for place in places] == list(range(1, PAGE + 4))

    browse(database_url, work)


def test_a_deferred_job_shows_when_it_may_start(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        begin_at = it.service.api.clock.now() + timedelta(hours=2)
        await it.service.submit(begin_at=begin_at.isoformat())
        await it.service.submit(hold=True)
        await it.service.plan()
        async with it.inside() as client:
            html = (await client.get("/page/queue")).text
        assert re.findall(r'soft">(not before|not known yet)', html) == [
            "not before",
            "not known yet",
        ]

    browse(database_url, work)


FILTERS = (
        ("text=TRAI", ["train"]), ("text=64002", ["eval"]), ("text=hello", ["eval"]),
        ("user=64001", ["train", "100%"]), ("text=0%25", ["100%"]), ("text=nothing", []),
        ("user=64001&text=eval", []), ("partition=main&state=running", []),
        ("state=&user=&text=train", ["train"]),
)  # fmt: skip


def test_filters_are_in_the_address(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        await it.service.submit(name="train", gpus=8)
        await it.service.submit(BOB, name="eval", gpus=8, comment="say Hello")
        await it.service.submit(name="100%", gpus=8)
        async with it.inside() as client:
            for query, found in FILTERS:
                answer = await client.get(f"/page/queue?{query}")
                assert answer.status_code == 200
                names = re.findall(r'<span class="name">([^<]*)</span>', answer.text)
                assert names == found, query

    browse(database_url, work)


def test_ended_jobs_are_found_by_state(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        good, bad = await it.service.submit(name="good"), await it.service.submit(name="bad")
        await it.service.plan()
        await it.service.end(good)
        await it.service.end(bad, exit_code=3)
        async with it.inside() as client:
            assert ids((await client.get("/page/ended")).text) == [bad, good]
            assert ids((await client.get("/page/ended?state=FAILED")).text) == [bad]

    browse(database_url, work)


def test_an_invalid_address_is_refused_with_the_accepted_values(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.inside() as client:
            assert (await client.get("/page/ended?state=SLEEPING")).status_code == 400
            wrong = await client.get("/page/queue?state=SLEEPING")
            assert wrong.status_code == 400
            assert 'State cannot be "SLEEPING"' in unescape(wrong.text)
            assert "Accepted: running, waiting." in wrong.text
            unknown = await client.get("/page/plan?hours=2")
            assert unknown.status_code == 400
            assert 'address: the field "hours" is unknown' in unescape(unknown.text)
            assert "Start from the overview." in unknown.text

    browse(database_url, work)


def test_the_history_of_a_job_is_in_order() -> None:
    """Events have milliseconds, and attempts whole seconds."""

    def event(ms: int, kind: str, **detail: Any) -> dict[str, Any]:
        return {"at": f"2026-07-01T12:00:00.{ms}Z", "kind": kind, "actor": "odcd", "detail": detail}

    events = [event(204, "submitted"), event(228, "started", attempt=1), event(900, "ended")]
    attempts = [{"attempt": 1, "running_at": "2026-07-01T12:00:00Z"}]
    kinds = [line["kind"] for line in timeline(events, attempts)]
    assert kinds == ["submitted", "started", "running", "ended"]


def test_the_queue_shows_why_a_job_waits(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        await it.service.submit(gpus=8, time_limit_s=600)
        await it.service.plan()
        waiting = await it.service.submit(BOB, gpus=8)
        await it.service.plan()
        async with it.inside() as client:
            queue = (await client.get("/page/queue")).text
            assert "needs 1 node with 8 free GPUs" in queue
            why = (await client.get(f"/page/jobs/{waiting}/why")).text
            assert '<a href="/page/jobs/1">job 1</a> holds 8 GPUs' in why
            assert "<html" not in why
            page = (await client.get(f"/page/jobs/{waiting}")).text
            assert '<a href="/page/jobs/1">job 1</a> holds 8 GPUs' in page
            assert "at the latest; no job behind it" in page

    browse(database_url, work)


def test_a_heterogeneous_job_is_shown_with_its_components(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        server, train = {"cpus_per_task": 2}, {"gpus_per_node": 4}
        job = await it.service.submit(gpus=None, components=[server, train])
        async with it.inside() as client:
            for path in ("/page/queue", f"/page/jobs/{job}"):
                assert "2 CPUs + 4 GPUs" in (await client.get(path)).text

    browse(database_url, work)


def test_the_page_of_a_job_shows_its_history(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        job_id = await it.service.submit(name="train")
        await it.service.plan()
        await it.service.end(job_id, exit_code=3)
        async with it.inside(BOB) as client:
            page = (await client.get(f"/page/jobs/{job_id}")).text
            for text in ("submitted", "nodes allocated", "ended", "exit code 3", "code 3", "n1"):
                assert text in page, text
            assert (await client.get("/page/jobs/77")).status_code == 404
            assert (await client.get("/page/jobs/x")).status_code == 400

    browse(database_url, work)


def test_a_running_job_shows_its_expected_end(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        runs = await it.service.submit(name="train")
        over = await it.service.submit(name="eval")
        await it.service.plan()
        await it.service.end(over)
        async with it.inside(BOB) as client:
            page = (await client.get(f"/page/jobs/{runs}")).text
            assert "Expected end</dt><dd>unknown; " in page
            assert "at the latest" in page
            assert "Expected end" not in (await client.get(f"/page/jobs/{over}")).text
            plan = (await client.get("/page/plan")).text
            assert "expected end unknown, at the latest until" in plan
            # The whole bar is paler, except for the part in the past.
            assert re.search(r'class="sure" width="0(\.0)?%"', plan)

    browse(database_url, work)


def test_an_array_lists_its_tasks(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        array = await it.service.submit(name="sweep", gpus=8, array="0-3")
        await it.service.plan()
        async with it.inside() as client:
            page = (await client.get(f"/page/jobs/{array}")).text
            assert f"Array {array}" in page
            assert f"{array}_0" in page
            assert f"{array}_[1-3]" in page
            task = (await client.get(f"/page/jobs/{array}_0")).text
            assert f"Job {array}_0" in task
            # The last task has the id of the array, whose output is that of all tasks.
            assert f'data-logs="/page/jobs/{array}_0/logs"' in task
            assert f'href="/page/jobs/{array}_0/logs"' in task

    browse(database_url, work)


def test_an_array_is_one_running_row_with_its_progress(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        array = await it.service.submit(name="sweep", gpus=4, array="0-3")
        await it.service.plan()
        async with it.inside() as client:
            running = (await client.get("/page/queue?state=running")).text
            assert len(ids(running)) == 1
            assert "0 of 4 tasks done, 2 running" in running
            assert f'href="/page/jobs/{array}"' in running
            waiting = (await client.get("/page/queue?state=waiting")).text
            assert ids(waiting) == [array]
            assert "0 of 4 tasks done, 2 running. " in waiting

    browse(database_url, work)


@pytest.mark.parametrize(("scored", "shown"), [(49, False), (50, True)])
def test_few_scored_predictions_are_no_figure(database_url: str, scored: int, shown: bool) -> None:
    async def work(it: Browsed) -> None:
        await it.service.database.execute(
            "insert into odc.eta_day (day, cause, scored, inside, early, late, abs_error_s, "
            "error_s, width_s) values ($1::timestamptz::date, 'submit', $2, $2, 0, 0, 0, 0, 0)",
            it.service.api.clock.now(), scored,
        )  # fmt: skip
        async with it.inside() as client:
            assert ("predicted starts on time" in (await client.get("/")).text) is shown

    browse(database_url, work)


def test_other_users_see_no_secrets_of_a_job(database_url: str) -> None:
    """SEC-10, on the page: script, arguments, environment and output are the owner's."""

    async def work(it: Browsed) -> None:
        job_id = await it.service.submit(
            script=f"#!/bin/sh\n# {SECRET}\n", environment={"TOKEN": SECRET}, args=[SECRET]
        )
        await it.service.plan()
        async with it.inside(BOB) as client:
            for path in (
                "/", "/page/queue", "/page/nodes", "/page/plan", "/page/ended",
                f"/page/jobs/{job_id}", f"/page/jobs/{job_id}/why",
            ):  # fmt: skip
                answer = await client.get(path)
                assert answer.status_code == 200
                assert SECRET not in answer.text
                assert 'id="logs"' not in answer.text
            assert (await client.get(f"/page/jobs/{job_id}/logs")).status_code == 403
        for peer in (ALICE, OPERATOR):
            async with it.inside(peer) as client:
                assert 'id="logs"' in (await client.get(f"/page/jobs/{job_id}")).text

    browse(database_url, work)


def test_views_are_the_same_for_all_users(database_url: str) -> None:
    """A user's own rows are marked by a style sheet of that user, so a view is rendered once for
    all. Only the block of a user's own jobs and the filters' menus name the viewer."""

    async def work(it: Browsed) -> None:
        await it.service.submit()
        async with it.inside() as mine, it.inside(BOB) as others:
            for path in ("/", "/page/queue", "/page/nodes", "/page/plan"):
                pages = [shared((await c.get(path)).text) for c in (mine, others)]
                assert pages[0] == pages[1]
            css = (await mine.get("/page/mine.css")).text
            assert '[data-user="64001"]' in css

    browse(database_url, work)


def test_the_map_shows_the_user_of_each_gpu(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        await it.service.submit(gpus=3)
        await it.service.submit(BOB, gpus=4)
        await it.service.plan()
        async with it.inside() as client:
            page = (await client.get("/page/nodes")).text
            [label] = re.findall(r'title="(n1: [^"]*)"', page)
            assert "3 64001 (job 1)" in label
            assert "4 64002 (job 2)" in label
            assert label.endswith("1 free")
            assert "1 of 8 GPUs free" in page

    browse(database_url, work)


def test_a_node_among_many_is_one_element_with_all_its_gpus(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "DENSE", 0)

    async def work(it: Browsed) -> None:
        await it.service.submit(gpus=3)
        await it.service.submit(BOB, gpus=4)
        await it.service.plan()
        async with it.inside() as client:
            page = (await client.get("/page/nodes")).text
            [node, _] = re.findall(r'<li data-key="n1">(.*?)</li>', page, re.DOTALL)
            assert node.count("<") == 2
            alice, bob = (f"h{hue}" for hue in assign(["64001", "64002"]).values())
            colours = [f"p{n}{alice if n < 3 else bob}" for n in range(7)]
            assert set(colours) <= set(node.partition('"')[2].partition('"')[0].split())
            assert " p7" not in node
            assert '4 64002 (job 2), 1 free"' in node
            owners = [f"{64001 if n < 3 else 64002}.{n}" for n in range(7)]
            assert f'data-users="{" ".join(owners)}"' in node
            css = (await client.get("/page/mine.css")).text
            for slot in range(nodes.SLOTS):
                rule = f'.slots[data-users~="64001.{slot}"] {{--p{slot}: var(--mine)}}'
                assert rule in css
        style = assets()["page.css"].plain.decode()
        for slot in range(nodes.SLOTS):
            assert f"var(--p{slot}, var(--idle))" in style
            for colour in ("x", *(f"h{n}" for n in range(HUES))):
                assert f".p{slot}{colour} {{--p{slot}: " in style

    browse(database_url, work)


def test_the_gantt_chart_shows_running_and_planned_jobs(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        runs = await it.service.submit(gpus=6, time_limit_s=3600)
        await it.service.plan()
        planned = await it.service.submit(BOB, gpus=8, time_limit_s=1800)
        await it.service.plan()
        async with it.client() as client:
            answer = await client.get("/v1/plan/gantt", headers={"accept": "*/*"})
            gantt = msgspec.json.decode(answer.content, type=Gantt)
            plan = (await client.get("/v1/plan", headers={"accept": "*/*"})).json()
            first, second = gantt.nodes
            assert (first.name, second.name) == ("n1", "n2")
            [bar] = [b for node in gantt.nodes for b in node.bars if b.job_id == runs]
            assert (bar.kind, bar.gpus, len(bar.gpu_indexes)) == ("running", 6, 6)
            assert bar.ends_at is not None
            assert bar.likely_end_at is None
            assert bar.starts_at <= bar.ends_at
            ahead = [b for node in gantt.nodes for b in node.bars if b.job_id == planned]
            assert [b.starts_at for b in ahead if b.kind == "planned"] == [
                job["planned_start_at"] for job in plan["jobs"]
            ]
            one = await client.get(
                "/v1/plan/gantt", params={"limit": 1, "hours": 6}, headers={"accept": "*/*"}
            )
            page = msgspec.json.decode(one.content, type=Gantt)
            assert (page.node_count, page.next, len(page.nodes)) == (2, 1, 1)

    browse(database_url, work, nodes=2)


def test_a_page_past_the_last_node_shows_a_hint(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.inside() as client:
            last = (await client.get("/page/plan?after=1")).text
            assert "Nodes 2 to 2 of 2" in last
            past = (await client.get("/page/plan?after=2&zoom=6h")).text
            assert "Nodes 3" not in past
            assert "There are 2 nodes" in past
            [first] = re.findall(r'href="([^"]*)">First nodes', past)
            first = first.replace("&amp;", "&")
            assert "Nodes 1 to 2 of 2" in (await client.get(first)).text
            assert "zoom=6h" in first
            assert "No matching nodes" in (await client.get("/page/plan?gpu_type=x")).text

    browse(database_url, work, nodes=2)


def test_nodes_are_in_the_order_that_people_count(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.client() as client:
            gantt = (await client.get("/v1/plan/gantt", headers={"accept": "*/*"})).json()
            assert [node["name"] for node in gantt["nodes"]] == [f"n{i}" for i in range(1, 13)]

    browse(database_url, work, nodes=12)


def test_bookings_are_in_the_gantt(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        start = it.service.api.clock.now() + timedelta(hours=2)
        async with it.client(OPERATOR) as client:
            made = await client.post("/v1/bookings", json={
                "name": "driver", "kind": "maintenance", "starts_at": start.isoformat(),
                "duration_s": 3600, "node_list": ["n1"],
            })  # fmt: skip
            assert made.status_code == 201, made.text
        async with it.inside() as client:
            page = (await client.get("/page/plan")).text
            assert "booking driver, " in page

    browse(database_url, work)


def test_every_answer_is_guarded(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        job_id = await it.service.submit()
        async with it.inside() as client:
            for path in ("/", "/page/queue", f"/page/jobs/{job_id}", "/page/mine.css",
                         "/page/nothing", assets()["page.js"].url):  # fmt: skip
                headers = (await client.get(path)).headers
                policy = headers["content-security-policy"]
                assert "unsafe" not in policy
                assert "default-src 'none'" in policy
                assert "http" not in policy
                assert headers["x-content-type-options"] == "nosniff"
            page = (await client.get("/")).text
            assert not re.search(r"<script(?![^>]*\bsrc=)", page)
            assert not re.search(r"\sstyle=|<style|\son\w+=", page)
            found = re.findall(r'(?:src|href|action)="([^"]*)"', page)
            assert all(url.startswith(("/", "#")) for url in found)

    browse(database_url, work)


def test_assets_are_cached_forever_under_their_digest(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.client(None) as client:
            for asset in assets().values():
                answer = await client.get(asset.url, headers={"accept-encoding": "identity"})
                assert answer.content == asset.plain
                assert "immutable" in answer.headers["cache-control"]
                packed = await client.get(asset.url, headers={"accept-encoding": "gzip"})
                assert packed.headers["content-encoding"] == "gzip"
                assert packed.content == asset.plain
                assert gzip.decompress(asset.packed) == asset.plain
            assert (await client.get("/page/static/page.0.css")).status_code == 404
            assert (await client.get("/page/static/../app.py")).status_code == 404

    browse(database_url, work)


ADDRESSES = (
    "/page/queue?after=x", "/page/queue?who=me", "/page/plan?zoom=9d", "/page/queue?user=a%00",
    "/page/plan?after=-1", "/?zoom=1h", "/page/live?of=/nothing", "/page/queue?after=" + "9" * 30,
)  # fmt: skip


def test_invalid_addresses_are_refused(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.inside() as client:
            for address in ADDRESSES:
                assert (await client.get(address)).status_code == 400, address

    browse(database_url, work)
