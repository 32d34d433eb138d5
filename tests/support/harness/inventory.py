"""The behaviour that users of gpu-dev rely on, and the test of each: docs/reference/gpu-dev.md.

An item is held by tests whose docstring or comment names it (EXP-04), or that
tests/inventory/held.csv names for it; or tests/inventory/left.csv says why it is not, or not yet.
"""

from __future__ import annotations

import ast
import csv
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[2]
FOLDER = TESTS / "inventory"
ITEM = re.compile(r"\b[A-Z]{3}-\d\d\b")
AREAS = {
    "CLI": "Commands", "LIF": "Life", "SCH": "Queue", "MNE": "Several nodes", "STO": "Storage",
    "IMG": "Images", "ACC": "Access", "AUT": "Identity", "API": "API", "EXP": "Expiry",
    "GPU": "Sizes", "POD": "Pods", "PRF": "Profiling", "SEC": "Security", "MON": "Monitoring",
    "BUG": "What went wrong there",
}  # fmt: skip
HEAD = """# What gpu-dev's users rely on

<!-- Made by `make docs`; do not edit. -->
Every behaviour of gpu-dev that its users count on, with the test that holds it here, or the reason
why none does. P0 is the core.
{summary}
"""


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@functools.cache
def read_tests(path: Path) -> tuple[tuple[str, str], ...]:
    """Each test of a file, with its source and its decorators'."""
    return tuple(_read_tests(path))


def _read_tests(path: Path) -> Iterator[tuple[str, str]]:
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            yield node.name, "\n".join(lines[first - 1 : node.end_lineno])


def held() -> dict[str, list[str]]:
    """The tests that hold each item, as path::name below tests/."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, source in read_tests(path):
            for item in sorted(set(ITEM.findall(source))):
                found.setdefault(item, []).append(f"{path.relative_to(TESTS)}::{name}")
    for row in rows("held"):
        found.setdefault(row["item"], []).append(row["test"])
    return found


def page() -> str:
    by, left = held(), {row["item"]: row["why"] for row in rows("left")}
    items = rows("items")
    count = sum(row["item"] in by for row in items)
    core = [row for row in items if row["priority"] == "P0"]
    lines = [
        HEAD.format(
            summary=f"Held: {count} of {len(items)}; of the core "
            f"{sum(row['item'] in by for row in core)} of {len(core)}."
        )
    ]
    for area, title in AREAS.items():
        lines += [f"## {title}", "", "| item | | behaviour | held by |", "|---|---|---|---|"]
        for row in items:
            if row["item"].startswith(area):
                held_by = "<br>".join(f"`{test}`" for test in by.get(row["item"], [])[:3])
                more = len(by.get(row["item"], [])) - 3
                held_by += f"<br>and {more} more" if more > 0 else ""
                shown = held_by or left.get(row["item"], "")
                text = row["behaviour"].replace("|", "\\|").replace("<", "&lt;")
                lines.append(f"| {row['item']} | {row['priority']} | {text} | {shown} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
