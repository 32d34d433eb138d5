"""Names of jobs and users are shown on the page as text, whatever they contain."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from odcd.api.answers.jobs import GpuUse
from odcd.page.files import macros, templates
from odcd.page.filters import moment, sentence
from odcd.page.gantt import Window, lay_out
from odcd.page.hues import preferred
from odcd.page.nodes import cells_of, slots_of

AT = datetime(2026, 7, 1, 12, tzinfo=UTC)
MARK = "zqx"
"""Values chosen by users are enclosed in this, so that they can be found again."""
NASTY = st.one_of(
    st.text(max_size=30),
    st.sampled_from([
        "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='x",
        "</title><svg/onload=alert(1)>", "{{ 7*7 }}", "{% raw %}", "javascript:alert(1)",
        "]]>--><!--", "&lt;b&gt;", "\x00\x1b[2J", "‮evil", "a\u2028b",
    ]),
)  # fmt: skip
TAGS = {
    "div", "span", "a", "b", "i", "small", "p", "details", "summary", "ol", "ul", "li", "svg",
    "rect", "line", "text", "title", "time", "h1", "h2", "dl", "dt", "dd", "br", "code", "section",
    "header", "label", "select", "option",
}  # fmt: skip
JOB: dict[str, Any] = {
    "id": 7, "array_job_id": None, "array_task_id": None, "array_tasks": None, "kind": "batch",
    "array_progress": None,
    "uid": 1000, "state": "PENDING", "reason": "Resources", "submitted_at": "2026-07-01T12:00:00Z",
    "planned_start_at": "2026-07-01T13:00:00Z", "begin_at": None, "checkpoint_at": None,
    "eta": {"p10": "2026-07-01T12:30:00Z", "p50": "2026-07-01T12:40:00Z",
            "p90": "2026-07-01T13:00:00Z", "exact": True},
    "started_at": None, "ended_at": None, "time_limit_s": 3600, "node_count": 1,
    "node_count_max": None, "gpus_per_node": 8, "gpus": 8, "gpu_type": "h100", "cpus_per_node": 4,
    "mem_per_node_mib": 1024, "node_names": [], "exit_code": None, "signal": None, "restarts": 0,
    "preemption": None, "licences": None, "hue": 3, "ran_s": None,
}  # fmt: skip


class Found(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert name != "style"
            assert MARK not in name
            if name in ("href", "src", "action"):
                assert (value or "").startswith(("/", "#")), value

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_data(self, data: str) -> None:
        self.text += data


def inert(html: object) -> str:
    found = Found()
    found.feed(str(html))
    found.close()
    return found.text


def chosen(text: str) -> str:
    return f"{MARK}{text}{MARK}"


@settings(deadline=None)
@given(NASTY, NASTY, NASTY, NASTY)
@example("<script>alert(1)</script>", '"><b>', "'", "&")
def test_job_fields_are_escaped(name: str, user: str, comment: str, why: str) -> None:
    rows = templates().get_template("rows.html").module
    parts = templates().get_template("job_parts.html").module
    causes = [{"cause": "node", "text": chosen(why), "until": "2026-07-01T12:00:00Z"}]
    job = {
        **JOB, "name": chosen(name), "user": chosen(user), "comment": chosen(comment),
        "why": causes, "partition": chosen(why), "account": chosen(name), "qos": chosen(user),
        "work_dir": "/" + chosen(comment), "dependency": chosen(why), "booking": chosen(name),
        "end_detail": chosen(comment),
    }  # fmt: skip
    band = {"low": 1.0, "wide": 2.0, "middle": 2.0}
    for html in (
        rows.live_job(job, 3, chosen(why), band),
        rows.live_job({**job, "state": "RUNNING", "started_at": JOB["submitted_at"],
                       "node_names": ["n1"]}, None, "", None),
        rows.ended_job({**job, "state": "FAILED", "ended_at": JOB["submitted_at"]}),
        rows.live_job({**job, "reason": "DependencyNeverSatisfied"}, None, chosen(why), None),
        rows.menu("user", "User", [chosen(name), chosen(user)], chosen(why), chosen(comment)),
        rows.mine_foot(9, True, chosen(user)), rows.map_legend([(chosen(user), 3)], 2),
        parts.head(job), parts.array_head(job, live=True), parts.when(job, 3, None),
        parts.why(job, {"why": causes, "kept": causes, "starts_now": causes[0]}), parts.facts(job),
        parts.timeline([{"at": JOB["submitted_at"], "kind": "held", "actor": chosen(user),
                         "text": "held", "more": chosen(why)}]),
    ):  # fmt: skip
        inert(html)
    if "\r" not in name:
        assert chosen(name).replace("\0", "�") in inert(parts.head(job)).replace("\0", "�")


@settings(deadline=None)
@given(NASTY, NASTY, NASTY)
def test_node_and_bar_fields_are_escaped(name: str, user: str, reason: str) -> None:
    rows = templates().get_template("rows.html").module
    held = [[7, chosen(user), chosen(name), 3]]
    node = {
        "name": "n1", "gpu_type": "h100", "state": "DRAIN", "reason": chosen(reason), "gpus": 4,
        "cpus": 4, "cpus_used": 1, "foreign": 8, "held": held, "mem_mib": 4096, "mem_used_mib": 1,
        "jobs": 1, "free_at": None, "booking": {"name": chosen(name), "ends_at": None},
    }  # fmt: skip
    copy, cells = json.loads(json.dumps(node)), cells_of(node)
    for dense, slots in ((False, None), (True, None), (True, slots_of(cells))):
        inert(rows.map_node(copy, cells, dense, slots))
    facts = {**copy, "name": chosen(name), "gpu_type": chosen(user), "gpus_used": 2}
    inert(rows.node_row(facts))
    inert(rows.node_card(facts))
    bar = {
        "kind": "running", "job_id": 7, "array_job_id": None, "array_task_id": None,
        "array_tasks": None, "array_progress": None, "name": chosen(name), "user": chosen(user),
        "gpus": 2, "gpu_indexes": [0, 1], "starts_at": AT.isoformat(), "likely_end_at": None,
        "ends_at": None,
    }  # fmt: skip
    copy = {**node, "bars": [bar, {**bar, "kind": "planned", "gpu_indexes": []}]}
    inert(rows.gantt_node(lay_out(copy, Window(AT, "24h"))))


def test_gpu_usage_is_shown_in_plain_text() -> None:
    parts = macros("job_parts.html")
    used: dict[str, Any] = {
        "source": "prometheus", "held_gpu_s": 36_000, "seen_gpu_s": 18_000, "busy_gpu_s": 9_000,
        "busy_ratio": 0.5, "mem_peak_mib": 40_960, "energy_j": 7_200_000, "owed": 1,
        "gave_up": "Prometheus forgot it", "now": {
            "at": "2026-07-01T12:00:00Z", "util_ratio": 0.03, "mem_used_mib": 100,
            "idle_gpus": 2, "idle_since": "2026-07-01T11:30:00Z"},
    }  # fmt: skip
    msgspec.convert(used, GpuUse)
    text = inert(parts.use(used))
    for phrase in ("50 %", "5.0 GPU-hours", "10.0 GPU-hours", "40.0 GiB", "2.00 kWh", "2 GPUs idle",
                  "3 % busy", "1 attempt", "Prometheus forgot it"):  # fmt: skip
        assert phrase in text, phrase
    nothing = {name: None for name in used} | {"held_gpu_s": 60, "seen_gpu_s": 0, "owed": 0}
    assert "0.0 GPU-hours" in inert(parts.use(nothing))
    assert inert(parts.use(None)).strip() == ""


@settings(deadline=None)
@given(NASTY)
def test_sentences_keep_their_text_and_format_times(text: str) -> None:
    rendered = inert(sentence(f"{text}2026-07-01T12:00:00Z{text}"))
    assert "Jul 01 12:00 UTC" in rendered
    if text.isprintable():
        assert rendered == f"{text}Jul 01 12:00 UTC{text}"
    assert 0 <= preferred(text) < 12
    assert str(moment(None)) == ""
