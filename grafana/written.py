"""The files that are generated, each with its text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from grafana.boards import all_boards
from grafana.model import Json

FOLDER = Path(__file__).parent
RULES = FOLDER / "prometheus"
MONITORING = FOLDER.parent / "k8s" / "components" / "monitoring"
HEAD = "# Made by `python -m grafana` of grafana/prometheus; do not edit.\n"
LOADED = ("rules/join-odcd.yaml", "rules/gpu.yaml", "alerts/odc.yaml", "alerts/gpu.yaml")
"""What a Prometheus that scrapes odcd and DCGM loads."""


def written() -> dict[Path, str]:
    boards = {
        FOLDER / "dashboards" / f"{board['uid']}.json": _json(board) for board in all_boards()
    }
    return boards | {MONITORING / "rules.yaml": HEAD + _dump(prometheus_rule())}


def prometheus_rule() -> Json:
    """The rules as an object of the Prometheus operator."""
    groups = [
        group
        for name in LOADED
        for group in yaml.safe_load((RULES / name).read_text(encoding="utf-8"))["groups"]
    ]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "odc", "namespace": "monitoring", "labels": {"release": "monitoring"}},
        "spec": {"groups": groups},
    }


def _json(board: Json) -> str:
    return json.dumps(board, indent=2, ensure_ascii=False) + "\n"


class _Dumper(yaml.SafeDumper):
    """Expressions of several lines as they were written."""


def _text(dumper: yaml.SafeDumper, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _dump(manifest: Json) -> str:
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=1000)
