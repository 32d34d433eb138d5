"""A view in pieces, and the changes between two renderings, which are sent to all its viewers."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec


@dataclass(frozen=True)
class Rendered:
    """parts: HTML by the id of the element it fills. rows: by a list's id, its items in order, HTML
    by key. The ids are the same for every rendering of a view; if they differ, the page is
    reloaded."""

    parts: Mapping[str, str] = field(default_factory=dict[str, str])
    rows: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    @functools.cached_property
    def version(self) -> str:
        digest = hashlib.blake2b(digest_size=8)
        for name, html in self.parts.items():
            digest.update(f"{name}\0{html}\0".encode())
        for name, items in self.rows.items():
            digest.update(f"{name}\0\0".encode())
            for key, html in items.items():
                digest.update(f"{key}\0{html}\0".encode())
        return digest.hexdigest()

    @functools.cached_property
    def whole(self) -> Update:
        """The whole view, as an update."""
        return Update(
            version=self.version,
            parts=dict(self.parts),
            rows={
                name: Rows(keys=list(items), html=dict(items)) for name, items in self.rows.items()
            },
        )


class Rows(msgspec.Struct, kw_only=True):
    """keys: all keys in order, null if neither members nor order changed; html: of the changed
    items."""

    keys: list[str] | None
    html: dict[str, str]


class Update(msgspec.Struct, kw_only=True, dict=True):
    """The changes that turn an older rendering into this version. reload: only a reload of the page
    does. as_of: the time since which the data could not be read; null: it is current."""

    version: str
    """Empty: of a view beside the main one."""
    parts: dict[str, str] = {}
    rows: dict[str, Rows] = {}
    reload: bool = False
    as_of: str | None = None

    @functools.cached_property
    def event(self) -> bytes:
        """A server-sent event whose id is the version; encoded once for all viewers. Without an id
        the browser keeps the last one."""
        data = msgspec.json.encode(self)
        if not self.version:
            return b"data: %b\n\n" % data
        return b"id: %b\ndata: %b\n\n" % (self.version.encode(), data)

    def then(self, later: Update) -> Update:
        """Merge this update with a later one. A backlog thus never gets larger than the view."""
        rows = {name: Rows(keys=r.keys, html=dict(r.html)) for name, r in self.rows.items()}
        for name, new in later.rows.items():
            old = rows.get(name)
            if old is None:
                rows[name] = new
                continue
            keys = new.keys if new.keys is not None else old.keys
            html = {**old.html, **new.html}
            if keys is not None:
                there = set(keys)
                html = {key: text for key, text in html.items() if key in there}
            rows[name] = Rows(keys=keys, html=html)
        return Update(
            version=later.version or self.version,
            parts={**self.parts, **later.parts},
            rows=rows,
            reload=self.reload or later.reload,
            as_of=later.as_of,
        )


def difference(old: Rendered, new: Rendered) -> Update | None:
    """Return None if both are the same."""
    if old.version == new.version:
        return None
    if old.parts.keys() != new.parts.keys() or old.rows.keys() != new.rows.keys():
        return Update(version=new.version, reload=True)
    rows: dict[str, Rows] = {}
    for name, items in new.rows.items():
        before = old.rows[name]
        html = {key: text for key, text in items.items() if before.get(key) != text}
        keys = None if list(before) == list(items) else list(items)
        if html or keys is not None:
            rows[name] = Rows(keys=keys, html=html)
    parts = {name: html for name, html in new.parts.items() if old.parts[name] != html}
    return Update(version=new.version, parts=parts, rows=rows)
