"""The page at /docs: the OpenAPI document as a self-contained HTML page."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import Any

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
color:#222;background:#fff}
code{font-family:ui-monospace,monospace;font-size:.92em}
h2{margin-top:2.5rem;border-bottom:1px solid #ddd}
h3{margin:1.6rem 0 .2rem}
.method{display:inline-block;min-width:3.6rem;font-weight:700;color:#06c}
table{border-collapse:collapse;width:100%;margin:.4rem 0}
td{vertical-align:top;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #eee}
td:first-child{white-space:nowrap}
a{color:#06c}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}
h2,td{border-color:#333}a,.method{color:#6af}}
"""
_TAGS = (
    "submit", "jobs", "cron", "slurm", "reservations", "disks", "plan", "events", "nodes",
    "bookings", "licences", "partitions", "accounts", "keys", "cluster",
)  # fmt: skip


def page(document: Mapping[str, Any]) -> str:
    info = document["info"]
    return "".join(
        [
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>odc API</title>',
            f"<style>{_STYLE}</style>",
            f"<h1>odc API {_text(info['version'])}</h1><p>{_text(info['description'])}</p>",
            '<p>The same, for programs: <a href="/openapi.json">/openapi.json</a></p>',
            *_operations(document["paths"]),
            "<h2>Types</h2>",
            *(_schema(name, schema) for name, schema in document["components"]["schemas"].items()),
            "</html>",
        ]
    )


def _operations(paths: Mapping[str, Any]) -> Iterator[str]:
    for tag in _TAGS:
        yield f"<h2>{tag}</h2>"
        for path, methods in paths.items():
            for method, operation in methods.items():
                if tag in operation["tags"]:
                    yield _operation(path, method, operation)


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    parts = [
        f'<h3><code><span class="method">{method.upper()}</span> {_text(path)}</code></h3>',
        f"<p>{_text(operation['summary'])}.",
    ]
    if body := operation.get("requestBody"):
        parts.append(f" Body: {_type(next(iter(body['content'].values()))['schema'])}.")
    for status, response in operation["responses"].items():
        for media, content in response.get("content", {}).items():
            parts.append(
                f" Answer {_text(status)}: {_type(content.get('schema', {})) or _text(media)}."
            )
    parts.append("</p>")
    rows = [
        f"<tr><td><code>{_text(p['name'])}</code></td><td>{_text(p['in'])}</td>"
        f"<td>{_type(p['schema'])}</td><td>{_text(p['description'])}</td></tr>"
        for p in operation["parameters"]
    ]
    if rows:
        parts.append(f"<table>{''.join(rows)}</table>")
    return "".join(parts)


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    rows = [
        f"<tr><td><code>{_text(field)}</code></td><td>{_type(of)}</td>"
        f"<td>{'required' if field in schema.get('required', ()) else ''}</td>"
        f"<td>{_text(of.get('description', ''))}</td></tr>"
        for field, of in schema.get("properties", {}).items()
    ]
    about = f"<p>{_text(schema['description'])}</p>" if "description" in schema else ""
    head = f'<h3 id="{_text(name)}"><code>{_text(name)}</code></h3>'
    return f"{head}{about}<table>{''.join(rows)}</table>"


def _type(schema: Mapping[str, Any]) -> str:
    """A short description of a schema."""
    if "$ref" in schema:
        name = _text(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(
            _text("null" if value is None else str(value)) for value in schema["enum"]
        )
    kind = str(schema.get("type", ""))
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    limits = [
        f"≥ {schema['minimum']}" if "minimum" in schema else "",
        f"≤ {schema['maximum']}" if "maximum" in schema else "",
    ]
    bounds = " ".join(limit for limit in limits if limit)
    default = (
        f", default {schema['default']}" if schema.get("default") not in (None, {}, []) else ""
    )
    return _text(f"{kind} {bounds}".strip() + default)


def _text(value: object) -> str:
    return html.escape(str(value))
