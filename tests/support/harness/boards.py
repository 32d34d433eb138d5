"""The dashboards of grafana/, with the queries that Grafana would send."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

GRAFANA = Path(__file__).parents[3] / "grafana"
RULES = GRAFANA / "prometheus"
ONE_SOURCE = frozenset({"join-kube-state-metrics.yaml"})
"""Loaded instead of another file, not with it."""

QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
BRACES = re.compile(r"\{[^{}]*\}")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)")
WORD = re.compile(r"(?<![\w:.])[a-zA-Z_:][a-zA-Z0-9_:]*\b(?!\s*\()")
KEYWORDS = frozenset({"and", "or", "unless", "bool", "offset", "inf", "nan"})
DURATION = re.compile(r"\b\d+(?:ms|[smhdwy])\b|\[[^\]]*\]")


@dataclass(frozen=True)
class Question:
    """The query of one target of a panel."""

    board: str
    panel: str
    letter: str
    """Which query of a panel with several; empty when it is the only one."""
    text: str
    instant: bool
    sql: bool

    def __str__(self) -> str:
        return f"{self.board}: {self.panel}{' ' if self.letter else ''}{self.letter}"


def boards() -> list[dict[str, Any]]:
    return [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((GRAFANA / "dashboards").glob("*.json"))
    ]


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def questions() -> Iterator[Question]:
    for board in boards():
        for panel in panels(board):
            for target in panel["targets"]:
                sql = "rawSql" in target
                yield Question(
                    board["uid"], panel["title"],
                    target["refId"] if len(panel["targets"]) > 1 else "",
                    target["rawSql" if sql else "expr"], sql or target["instant"], sql,
                )  # fmt: skip


def filled(text: str, chosen: dict[str, str] | None = None) -> str:
    """A query with its variables filled in: all values, except for the chosen ones.

    Raises AssertionError when a variable is left.
    """
    values = {
        "__rate_interval": "10s", "__range": "30s", "__interval": "5s",
        "user": ".*", "account": ".*", "partition": ".*", "gpu_type": ".*", "node": ".*",
        "gpu": ".*", "job_id": "1",
    } | (chosen or {})  # fmt: skip
    text = re.sub(
        r"\$__timeFilter\(([\w.\"]+)\)", r"\1 between now() - interval '90 days' and now()", text
    )
    text = re.sub(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)", lambda m: values.get(m[1] or m[2], m[0]), text)
    assert "$" not in text.replace(")$'", ""), text
    return text


def metrics_in(expression: str) -> set[str]:
    """The metrics that an expression names."""
    bare = QUOTED.sub("''", expression)
    bare = GROUPING.sub(" ", BRACES.sub(" ", bare))
    bare = DURATION.sub(" ", bare)
    return {word for word in WORD.findall(bare) if word.lower() not in KEYWORDS}


def groups(*names: str) -> list[dict[str, Any]]:
    """Of all rule files, or of those that are named, the groups."""
    paths = [RULES / name for name in names] or rule_files()
    return [
        group
        for path in paths
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
    ]


def rule_files() -> list[Path]:
    return [path for path in sorted(RULES.rglob("*.yaml")) if path.name not in ONE_SOURCE]


def rules(kind: str) -> list[dict[str, Any]]:
    """kind: record or alert."""
    return [rule for group in groups() for rule in group["rules"] if kind in rule]
