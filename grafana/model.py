"""The part of Grafana's JSON model that our dashboards use.

Sizes are on Grafana's grid of 24 columns; a panel gets its position when its dashboard is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]

SCHEMA_VERSION = 39
"""Grafana 10.4 reads it; newer versions upgrade it in memory."""
COPY = (Path(__file__).parent / "docs.url").read_text(encoding="utf-8").strip()
"""The address of the copy of odc with the docs/ for links; operators may change it."""
DOCS = f"{COPY}/docs/operating"
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
POSTGRES = {"type": "grafana-postgresql-datasource", "uid": "${database}"}
COLUMNS = 24

Query = tuple[str, str]
"""An expression, and the name of its series in the legend."""


def runbook(alert: str) -> Json:
    """A panel's link to the runbook of the alert on the same metrics."""
    name = "".join(f"-{c.lower()}" if c.isupper() else c for c in alert).lstrip("-")
    return {
        "title": f"Runbook of {alert}",
        "url": f"{DOCS}/runbooks/{name}.md",
        "targetBlank": True,
    }


def page(title: str, path: str = "/") -> Json:
    """A link to odc's own page."""
    return {"title": title, "url": f"${{odc}}{path}", "targetBlank": True}


def to_job(column: str, title: str = "Open the job") -> dict[str, Json]:
    """The links for a table's column of job ids."""
    return {column: page(title, "/page/jobs/${__value.raw}")}


def timeseries(
    title: str, *queries: Query, unit: str = "short", description: str = "", stack: bool = False,
    links: Sequence[Json] = (), top: float | None = None, bars: bool = False, signed: bool = False,
) -> Json:  # fmt: skip
    custom: Json = {
        "drawStyle": "bars" if bars else "line",
        "fillOpacity": 60 if stack else 8,
        "lineWidth": 1,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stack else "none"},
    }
    fields = _fields(unit, custom=custom, top=top)
    if signed:
        del fields["defaults"]["min"]
    return _panel("timeseries", title, description, links, queries) | {
        "fieldConfig": fields,
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def stat(
    title: str, *queries: Query, unit: str = "short", description: str = "",
    links: Sequence[Json] = (),
    red_above: float | None = None, red_below: float | None = None,
) -> Json:  # fmt: skip
    fields = _fields(unit)
    fields["defaults"]["thresholds"] = _thresholds(red_above, red_below)
    return _panel("stat", title, description, links, queries, instant=True) | {
        "fieldConfig": fields,
        "options": {
            "colorMode": "value" if red_above is None and red_below is None else "background",
            "graphMode": "none",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "textMode": "auto",
        },
    }


def bars(
    title: str, *queries: Query, unit: str = "short", description: str = "",
    links: Sequence[Json] = (),
    top: float | None = None,
) -> Json:  # fmt: skip
    return _panel("bargauge", title, description, links, queries, instant=True) | {
        "fieldConfig": _fields(unit, top=top),
        "options": {
            "displayMode": "basic",
            "orientation": "horizontal",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        },
    }


def heatmap(
    title: str, query: str, *, unit: str = "s", description: str = "", links: Sequence[Json] = ()
) -> Json:
    """query: a histogram's buckets, `sum by (le) (increase(..._bucket[$__rate_interval]))`."""
    made = _panel("heatmap", title, description, links, [(query, "{{le}}")])
    made["targets"][0]["format"] = "heatmap"
    return made | {
        "fieldConfig": {"defaults": {}, "overrides": []},
        "options": {
            "calculate": False,
            "yAxis": {"unit": unit},
            "cellGap": 1,
            "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
        },
    }


def table(
    title: str, *queries: Query, unit: str = "short", description: str = "",
    links: Sequence[Json] = (),
    hide: Sequence[str] = (), names: dict[str, str] | None = None,
    column_links: dict[str, Json] | None = None,
) -> Json:  # fmt: skip
    """The current results of the queries, one row per series. hide and names refer to columns."""
    made = _panel("table", title, description, links, queries, instant=True)
    for target in made["targets"]:
        target["format"] = "table"
    hidden = {name: True for name in ("Time", "__name__", "instance", "job", *hide)}
    return made | {
        "fieldConfig": _fields(unit, overrides=_column_links(column_links)),
        "options": {"showHeader": True, "cellHeight": "sm"},
        "transformations": [
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {"excludeByName": hidden, "renameByName": names or {}},
            },
        ],
    }


def rows_of(
    title: str, sql: str, *, description: str = "", links: Sequence[Json] = (),
    units: dict[str, str] | None = None, column_links: dict[str, Json] | None = None,
) -> Json:  # fmt: skip
    """A table of rows from PostgreSQL, read from the views of odc_report."""
    made = _panel("table", title, description, links, [])
    made["datasource"] = POSTGRES
    made["targets"] = [
        {
            "refId": "A",
            "datasource": POSTGRES,
            "format": "table",
            "rawQuery": True,
            "editorMode": "code",
            "rawSql": sql,
        }
    ]
    overrides = [_override(column, "unit", unit) for column, unit in (units or {}).items()]
    return made | {
        "fieldConfig": _fields("", overrides=overrides + _column_links(column_links)),
        "options": {"showHeader": True, "cellHeight": "sm"},
    }


def sql_series(title: str, sql: str, *, unit: str = "short", description: str = "") -> Json:
    """Bars over time from PostgreSQL rows with the columns time, metric and value."""
    made = rows_of(title, sql, description=description)
    made["targets"][0]["format"] = "time_series"
    drawn = timeseries(title, unit=unit, stack=True, bars=True)
    return drawn | {"datasource": POSTGRES, "targets": made["targets"], "description": description}


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
            _link("odc's page", "${odc}/"),
            _link("Runbooks", f"{DOCS}/runbooks/README.md"),
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
        wanted = [member.pop("w", 1) for member in members]
        x = 0
        for member, share in zip(members, wanted, strict=True):
            width = COLUMNS * share // sum(wanted)
            place = {"x": x, "y": y, "w": width, "h": height}
            panels.append(member | {"id": len(panels) + 1, "gridPos": place})
            x += width
        y += height
    return panels


def _panel(
    kind: str, title: str, description: str, links: Sequence[Json], queries: Sequence[Query], *,
    instant: bool = False,
) -> Json:  # fmt: skip
    return {
        "type": kind,
        "title": title,
        "description": description,
        "links": list(links),
        "datasource": PROMETHEUS,
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": PROMETHEUS,
                "expr": expression,
                "legendFormat": legend,
                "editorMode": "code",
                "instant": instant,
                "range": not instant,
            }
            for number, (expression, legend) in enumerate(queries)
        ],
    }


def _fields(
    unit: str, *, custom: Json | None = None, top: float | None = None,
    overrides: Sequence[Json] = (),
) -> Json:  # fmt: skip
    defaults: Json = {"custom": custom or {}, "min": 0, "thresholds": _thresholds(None, None)}
    if unit:
        defaults["unit"] = unit
    if top is not None:
        defaults["max"] = top
    return {"defaults": defaults, "overrides": list(overrides)}


def _thresholds(red_above: float | None, red_below: float | None) -> Json:
    if red_above is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": red_above}]
    elif red_below is not None:
        steps = [{"color": "red", "value": None}, {"color": "green", "value": red_below}]
    else:
        steps = [{"color": "blue", "value": None}]
    return {"mode": "absolute", "steps": steps}


def _column_links(links: dict[str, Json] | None) -> list[Json]:
    return [_override(column, "links", [link]) for column, link in (links or {}).items()]


def _override(column: str, what: str, value: Any) -> Json:
    return {
        "matcher": {"id": "byName", "options": column},
        "properties": [{"id": what, "value": value}],
    }


def _source(name: str, kind: str, label: str) -> Json:
    return {
        "type": "datasource", "name": name, "label": label, "query": kind, "refresh": 1,
        "multi": False, "includeAll": False, "hide": 0, "regex": "", "current": {},
    }  # fmt: skip


def _link(title: str, url: str) -> Json:
    return {
        "type": "link", "title": title, "url": url, "icon": "external link", "targetBlank": True,
        "tags": [], "asDropdown": False, "includeVars": False, "keepTime": False, "tooltip": "",
    }  # fmt: skip
