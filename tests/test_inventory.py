"""No behaviour that users of gpu-dev rely on is lost: each has a test, or a reason why not."""

from __future__ import annotations

from tests.support.harness.inventory import TESTS, held, page, read_tests, rows


def test_every_item_is_held_or_left_for_a_reason() -> None:
    left = {row["item"] for row in rows("left")}
    by = held()
    items = {row["item"] for row in rows("items")}
    assert items - by.keys() - left == set(), "name them in a test, or in left.csv with the reason"
    assert left & by.keys() == set(), "held now: take them out of left.csv"
    assert left - items == set()
    assert all(row["why"] for row in rows("left"))


def test_the_tests_named_for_items_are_there() -> None:
    known = {
        f"{path.relative_to(TESTS)}::{name}"
        for path in TESTS.rglob("test_*.py")
        for name, _ in read_tests(path)
    }
    items = {row["item"] for row in rows("items")}
    for row in rows("held"):
        assert row["test"] in known, row
        assert row["item"] in items, row


def test_the_page_is_as_the_tests_are() -> None:
    made = (TESTS.parent / "docs/reference/gpu-dev.md").read_text(encoding="utf-8")
    assert made == page(), "make docs"
