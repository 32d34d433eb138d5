"""Panels: one function per kind. A panel gets its position when its dashboard is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafana.model import POSTGRES, PROMETHEUS, Json, Query


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
