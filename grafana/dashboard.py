"""Dashboards: their variables, and the places of their panels on Grafana's grid of 24 columns."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.links import dashboard_link, runbooks
from grafana.model import POSTGRES, PROMETHEUS, Json

SCHEMA_VERSION = 39
"""Grafana 10.4 reads it; newer versions upgrade it in memory."""
COLUMNS = 24


def choice(name: str, series: str, *, label: str, multi: bool = True) -> Json:
    """A variable with the values of one label of a series; panels match it with =~."""
    query = f"label_values({series}, {name})"
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": PROMETHEUS,
        "definition": query,
        "query": {"query": query, "refId": "StandardVariableQuery"},
        "refresh": 2,
        "sort": 1,
        "multi": multi,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


GPU_TYPES = choice("gpu_type", "odcd_gpus", label="GPU type")


def given(name: str, value: str, *, label: str) -> Json:
    """A variable that the user types in."""
    return {
        "type": "textbox",
        "name": name,
        "label": label,
        "query": value,
        "current": {"text": value, "value": value},
        "options": [{"text": value, "value": value, "selected": True}],
    }


def dashboard(
    uid: str, title: str, description: str, rows: Sequence[tuple[str, int, Sequence[Json]]],
    variables: Sequence[Json] = (), *, since: str = "now-6h", refresh: str = "30s",
) -> Json:  # fmt: skip
    """rows: heading, height and panels. The panels share the width in proportion to their `w`."""
    panels = _placed(rows)
    sources = [_source("datasource", "prometheus", "Prometheus")]
    if any(panel.get("datasource") == POSTGRES for panel in panels):
        sources.append(_source("database", "grafana-postgresql-datasource", "odc's database"))
    return {
        "id": None,
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["odc"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": refresh,
        "time": {"from": since, "to": "now"},
        "timezone": "browser",
        "fiscalYearStartMonth": 0,
        "annotations": {"list": []},
        "templating": {
            "list": [
                *sources,
                *variables,
                given("odc", "http://localhost:7070", label="odc's page"),
            ]
        },
        "links": [
            {
                "type": "dashboards", "title": "odc", "tags": ["odc"], "asDropdown": True,
                "includeVars": False, "keepTime": True, "targetBlank": False, "icon": "dashboard",
                "tooltip": "", "url": "",
            },
            dashboard_link("odc's page", "${odc}/"),
            runbooks(),
        ],
        "panels": panels,
    }  # fmt: skip


def _placed(rows: Sequence[tuple[str, int, Sequence[Json]]]) -> list[Json]:
    panels: list[Json] = []
    y = 0
    for heading, height, members in rows:
        if heading:
            panels.append(
                {
                    "type": "row",
                    "title": heading,
                    "collapsed": False,
                    "panels": [],
                    "id": len(panels) + 1,
                    "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
                }
            )
            y += 1
        shares = [member.pop("w", 1) for member in members]
        x = 0
        for member, share in zip(members, shares, strict=True):
            width = COLUMNS * share // sum(shares)
            place = {"x": x, "y": y, "w": width, "h": height}
            panels.append(member | {"id": len(panels) + 1, "gridPos": place})
            x += width
        y += height
    return panels


def _source(name: str, kind: str, label: str) -> Json:
    return {
        "type": "datasource", "name": name, "label": label, "query": kind, "refresh": 1,
        "multi": False, "includeAll": False, "hide": 0, "regex": "", "current": {},
    }  # fmt: skip
