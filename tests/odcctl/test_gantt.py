"""odcctl plan --gantt and odcctl page: what they ask, and what they show."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odcctl.text.gantt import draw
from odcd.api.answers.keys import PageTicket
from odcd.api.answers.plan import Gantt
from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import Object
from tests.odcctl.peer import Peer

AT = datetime(2026, 7, 1, 12, tzinfo=UTC)


def at(hours: float) -> str:
    return (AT + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def bar(
    kind: str, begin: float, end: float | None, job_id: int | None = 7, **fields: Any
) -> Object:
    return {
        "kind": kind, "job_id": job_id, "array_job_id": None, "array_task_id": None,
        "array_tasks": None, "name": "train", "user": "ann" if job_id else None, "gpus": 8,
        "gpu_indexes": [0, 1] if kind == "running" else [], "starts_at": at(begin),
        "likely_end_at": None, "ends_at": None if end is None else at(end), **fields,
    }  # fmt: skip


def node(name: str, *bars: Object, state: str = "UP") -> Object:
    return {"name": name, "gpu_type": "h100", "gpus": 8, "state": state, "reason": None,
            "bars": list(bars)}  # fmt: skip


GANTT: Object = {
    "at": at(0), "from": at(0), "to": at(12), "node_count": 5, "next": None,
    "nodes": [
        node("gpu-1", bar("running", -2, 3, likely_end_at=at(1.5)), bar("planned", 3, 8, 9)),
        node("gpu-2", bar("running", -1, None, 8), bar("running", -1, 2, 10),
             bar("booking", 4, 8, None, name="driver")),
        node("gpu-3", bar("booking", 4, 8, None, name="driver")),
        node("gpu-4", state="DOWN"),
        node("gpu-10", bar("planned", 1, 1.1, 11), bar("planned", 2, 4, 12, array_job_id=12,
                                                       array_tasks="3-9%2")),
    ],
}  # fmt: skip


def test_the_plan_is_drawn(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    msgspec.convert(GANTT, Gantt)
    peer.on("GET", "/v1/plan/gantt", GANTT)
    run = odcctl("plan", "--gantt", "--hours", "12", "--type", "h100", "--node", "gpu-1,gpu-2")
    assert peer.requests[-1].query == {
        "hours": "12", "gpu_type": "h100", "node": "gpu-1,gpu-2", "limit": "1000",
    }  # fmt: skip
    narrow = odcctl("plan", "--gantt", COLUMNS="70")
    ascii_only = odcctl("plan", "--gantt", PYTHONIOENCODING="ascii", COLUMNS="80")
    assert ascii_only.out.isascii()
    golden("plan-gantt", "\n".join([run.out, narrow.out, ascii_only.out]))
    assert json.loads(odcctl("plan", "--gantt", "--json").out) == GANTT
    assert odcctl("plan", "--gantt", "--output", "quiet").out == "7\n8\n9\n10\n11\n12\n"


def test_all_pages_are_drawn(peer: Peer, odcctl: Odcctl) -> None:
    first = {**GANTT, "nodes": GANTT["nodes"][:2], "next": 2}
    peer.on("GET", "/v1/plan/gantt", first, {**GANTT, "nodes": GANTT["nodes"][2:]})
    assert json.loads(odcctl("plan", "--gantt", "--json").out) == GANTT
    assert peer.requests[-1].query["cursor"] == "2"


BARS = st.builds(
    bar,
    st.sampled_from(["running", "planned"]),
    st.floats(-5, 30), st.one_of(st.none(), st.floats(-5, 40)), st.integers(1, 99),
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(BARS, max_size=8), st.integers(10, 300), st.booleans())
def test_lines_fit_and_have_every_bar(bars: list[Object], width: int, blocks: bool) -> None:
    plan = {**GANTT, "nodes": [node("gpu-1", *bars)]}
    *lines, _ = draw(plan, width, blocks=blocks)
    assert all(len(line) <= max(width, 60) for line in lines)
    assert blocks or "".join(lines).isascii()


@pytest.mark.parametrize(
    "arguments",
    [("--hours", "6"), ("--node", "n1"), ("--type", "l4"), ("--gantt", "--what-if"),
     ("--gantt", "--hours", "soon"), ("--gantt", "-N", "2")],
)  # fmt: skip
def test_options_of_the_chart_stand_beside_it(
    peer: Peer, odcctl: Odcctl, arguments: tuple[str, ...]
) -> None:
    assert odcctl("plan", *arguments).code == 2
    assert peer.requests == []


def test_the_page_has_an_address(peer: Peer, odcctl: Odcctl) -> None:
    answer = {
        "ticket": "odc_x", "expires_at": at(0), "path": "/page/enter?ticket=odc_x",
        "url": "http://127.0.0.1:7070/page/enter?ticket=odc_x",
    }  # fmt: skip
    msgspec.convert(answer, PageTicket)
    peer.on("POST", "/v1/page/tickets", answer)
    run = odcctl("page")
    assert run.out == f"{answer['url']}\n"
    assert "once" in run.err
    assert odcctl("page", "--output", "quiet").err == ""
    assert json.loads(odcctl("page", "--json").out) == answer


def test_the_page_is_opened(peer: Peer, odcctl: Odcctl, home: Any) -> None:
    answer = {"ticket": "x", "expires_at": at(0), "path": "/p", "url": "http://127.0.0.1:7070/p"}
    peer.on("POST", "/v1/page/tickets", answer)
    seen = home / "seen"
    browser = home / "browser"
    browser.write_text(f'#!/bin/sh\ncp "${{1#file://}}" {seen}\n')
    browser.chmod(0o755)
    assert odcctl("page", "--open", BROWSER=str(browser)).code == 0
    # A file that sends on: the address would stand in the command line.
    assert 'url=http://127.0.0.1:7070/p"' in seen.read_text()


def test_the_address_is_for_whose_browser_and_port_it_is(peer: Peer, odcctl: Odcctl) -> None:
    answer = {"ticket": "x", "expires_at": at(0), "path": "/p", "url": "http://127.0.0.1:720/p"}
    peer.on("POST", "/v1/page/tickets", answer)
    assert odcctl("page", "--browser", "root").out == "http://127.0.0.1:720/p\n"
    assert odcctl("page", "--browser", "64001", "--port", "7070").out == "http://127.0.0.1:7070/p\n"
    assert odcctl("page", SUDO_UID="1000").code == 0
    browser_uids = [request.query.get("browser_uid") for request in peer.requests]
    assert browser_uids == ["0", "64001", "1000"]
    for wrong in (("--browser", "no-such-user"), ("--port", "0"), ("--port", "x")):
        assert odcctl("page", *wrong).code == 2
