"""The generated files and their texts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from grafana.boards import all_boards
from grafana.links import DOCS
from grafana.model import Json

FOLDER = Path(__file__).parent
RULES = FOLDER / "prometheus"
MONITORING = FOLDER.parent / "k8s" / "components" / "monitoring"
HEAD = "# Made by `python -m grafana` from grafana/prometheus; do not edit.\n"
_RUNBOOK = re.compile(r"(runbook_url: )\S+/runbooks/")
LOADED = ("rules/join-odcd.yaml", "rules/gpu.yaml", "alerts/odc.yaml", "alerts/gpu.yaml")
"""The rule files for a Prometheus that scrapes odcd and DCGM."""


def written() -> dict[Path, str]:
    boards = {
        FOLDER / "dashboards" / f"{board['uid']}.json": _json(board) for board in all_boards()
    }
    alerts = {path: _addressed(path) for path in sorted((RULES / "alerts").glob("*.yaml"))}
    return boards | alerts | {MONITORING / "rules.yaml": HEAD + _dump(prometheus_rule())}


def _addressed(path: Path) -> str:
    """The text of a handwritten rules file, with the address of the runbooks filled in."""
    return _RUNBOOK.sub(rf"\g<1>{DOCS}/runbooks/", path.read_text(encoding="utf-8"))


def prometheus_rule() -> Json:
    """The rules as a resource of the Prometheus operator."""
    groups = [
        group for name in LOADED for group in yaml.safe_load(_addressed(RULES / name))["groups"]
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
    """Dumps expressions of several lines without changing their line breaks."""


def _text(dumper: yaml.SafeDumper, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _dump(manifest: Json) -> str:
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=1000)
