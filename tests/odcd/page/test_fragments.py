"""A client that applies the updates has the rendered page, whatever was combined into one
update."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odcd.page.fragments import Rendered, Update, difference

KEYS = st.sampled_from("abcdefgh")
HTML = st.text("xyz", max_size=2)
ROWS = st.dictionaries(KEYS, HTML, max_size=6).flatmap(
    lambda rows: st.permutations(list(rows.items())).map(dict)
)


@st.composite
def renderings(draw: st.DrawFn) -> Rendered:
    return Rendered(
        parts={"head": draw(HTML), "foot": draw(HTML)},
        rows={"queue": draw(ROWS), "map": draw(ROWS)},
    )


class Browser:
    """The work of page.js, without a browser."""

    def __init__(self, shown: Rendered) -> None:
        self.parts = dict(shown.parts)
        self.rows = {name: dict(items) for name, items in shown.rows.items()}

    def apply(self, event: bytes) -> None:
        update = json.loads(event.partition(b"data: ")[2])
        assert not update["reload"]
        self.parts |= update["parts"]
        for name, rows in update["rows"].items():
            there = self.rows[name] | rows["html"]
            keys = rows["keys"] if rows["keys"] is not None else list(self.rows[name])
            self.rows[name] = {key: there[key] for key in keys}

    def shows(self, rendered: Rendered) -> bool:
        return self.parts == dict(rendered.parts) and all(
            list(self.rows[name].items()) == list(items.items())
            for name, items in rendered.rows.items()
        )


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(renderings(), min_size=2, max_size=6), st.lists(st.booleans(), min_size=6))
def test_updates_bring_a_browser_to_the_rendered_view(
    versions: list[Rendered], slow: list[bool]
) -> None:
    browser = Browser(versions[0])
    waiting: Update | None = None
    for number, (old, new) in enumerate(itertools.pairwise(versions)):
        update = difference(old, new)
        if update is not None:
            waiting = update if waiting is None else waiting.then(update)
        if waiting is not None and not slow[number % len(slow)]:
            browser.apply(waiting.event)
            waiting = None
            assert browser.shows(new)
    if waiting is not None:
        browser.apply(waiting.event)
    assert browser.shows(versions[-1])


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(renderings(), min_size=2, max_size=8))
def test_a_backlog_is_never_larger_than_the_view(versions: list[Rendered]) -> None:
    waiting = versions[0].whole
    for old, new in itertools.pairwise(versions):
        update = difference(old, new)
        if update is not None:
            waiting = waiting.then(update)
    for name, rows in waiting.rows.items():
        assert set(rows.html) == set(versions[-1].rows[name])


@settings(deadline=None)
@given(renderings(), renderings())
def test_the_version_distinguishes_renderings(one: Rendered, other: Rendered) -> None:
    same = one.parts == other.parts and all(
        list(one.rows[name].items()) == list(other.rows[name].items()) for name in one.rows
    )
    assert (one.version == other.version) is same
    assert (difference(one, other) is None) is same


def test_the_page_reloads_when_a_list_appears_or_disappears() -> None:
    old = Rendered(parts={"sum-h100": ""}, rows={"map-h100": {}})
    update = difference(old, Rendered(parts={"sum-l4": ""}, rows={"map-l4": {}}))
    assert update is not None
    assert update.reload
