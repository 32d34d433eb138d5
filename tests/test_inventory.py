"""No behaviour that users of gpu-dev rely on is lost: each is held by a test, decided otherwise, or
open."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.support.harness.inventory import (
    AREAS,
    STATES,
    TESTS,
    held,
    known,
    page,
    rows,
    subjects,
    words,
)

ROOT = TESTS.parent
FOREIGN = ("ACC-12", "STO-16", "MNE-02")
PAGE = ROOT / "docs" / "reference" / "gpu-dev.md"


def test_every_item_of_each_area_is_listed_once() -> None:
    listed = [row["item"] for row in rows("items")]
    expected = [
        f"{area}-{number:02}"
        for area, (_, count) in AREAS.items()
        for number in range(1, count + 1)
    ]
    assert sorted(listed) == sorted(expected)
    assert len(listed) == 449
    assert {row["priority"] for row in rows("items")} == {"P0", "P1", "P2"}
    assert all(row["behaviour"].endswith(".") for row in rows("items"))


def test_every_item_has_exactly_one_state() -> None:
    left = [row["item"] for row in rows("left")]
    by = held().keys()
    items = {row["item"] for row in rows("items")}
    assert sorted(set(left)) == sorted(left)
    assert items - by - set(left) == set(), "name a test for them, or a reason in left.csv"
    assert by & set(left) == set(), "held now: take them out of left.csv"
    assert (by | set(left)) - items == set()


def test_what_is_not_held_has_a_reason() -> None:
    for row in rows("left"):
        assert row["state"] in STATES, row
        assert row["why"].endswith("."), row
        if row["link"]:
            assert (PAGE.parent / row["link"]).is_file(), row


def test_the_tests_named_for_items_exist() -> None:
    tests = known()
    assert [row for row in rows("held") if row["test"] not in tests] == []


def test_the_tests_named_for_items_mention_their_subject() -> None:
    """A word of the item that few other items have is in the test, or in what it uses."""
    tests, about = known(), subjects()
    strange = [
        (item, name)
        for item, names in held().items()
        for name in names
        if not about[item] & words(f"{tests[name].own} {tests[name].used}")
    ]
    assert strange == [], "they check something else, or the item has other words"


def test_a_test_about_something_else_is_noticed() -> None:
    """The rule above has effect: tests of disks and gangs do not mention port forwarding."""
    tests, about, found = known(), subjects(), held()
    forwarding, *others = FOREIGN
    for item in others:
        assert not any(about[forwarding] & words(tests[name].own) for name in found[item]), item


def test_the_page_is_as_the_tests_are() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "make docs"


@pytest.mark.parametrize("tool", ["ruff check", "ruff format --check", "pyright", "pytest"])
def test_the_workflow_formats_sorts_imports_and_checks_types(tool: str) -> None:
    """OPS-13: make lint and make test, which CI runs."""
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    assert {"make lint", "make test"} <= set(ci.splitlines())
    assert re.search(rf"^\t.*{tool}", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    rules = tomllib.loads(Path(ROOT / "pyproject.toml").read_text("utf-8"))
    assert "I" in rules["tool"]["ruff"]["lint"]["select"], "sorted imports"
