"""A view in pieces, and what of it changed: rendered once, and sent to all its viewers."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec


@dataclass(frozen=True)
class Rendered:
    """parts: HTML by the id of the element it fills. rows: of a list's id, its items in order, HTML
    by key. The same ids whenever the same view is rendered; where they are others, the page loads
    anew."""

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
        """All of it, as an update."""
        return Update(
            version=self.version,
            parts=dict(self.parts),
            rows={
                name: Rows(keys=list(items), html=dict(items)) for name, items in self.rows.items()
            },
        )


class Rows(msgspec.Struct, kw_only=True):
    """keys: all in order, null where neither members nor order changed; html: of those that did."""

    keys: list[str] | None
    html: dict[str, str]


class Update(msgspec.Struct, kw_only=True, dict=True):
    """What brings an older rendering to this version. reload: nothing but loading the page does.
    as_of: a time of the API, since when it has not been read anew; null: it is current."""

    version: str
    parts: dict[str, str] = {}
    rows: dict[str, Rows] = {}
    reload: bool = False
    as_of: str | None = None

    @functools.cached_property
    def event(self) -> bytes:
        """As a server-sent event, whose id is the version; made once for all who get it."""
        return b"id: %b\ndata: %b\n\n" % (self.version.encode(), msgspec.json.encode(self))

    def then(self, later: Update) -> Update:
        """This and a later one, as one: what stands for a backlog, never larger than the view."""
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
            version=later.version,
            parts={**self.parts, **later.parts},
            rows=rows,
            reload=self.reload or later.reload,
            as_of=later.as_of,
        )


def difference(old: Rendered, new: Rendered) -> Update | None:
    """None: they are the same."""
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
