"""The query of a page's address: it alone distinguishes views."""

from __future__ import annotations

import functools
from typing import Annotated, Literal
from urllib.parse import urlencode

import msgspec

from odcd.events import Event
from odcd.slurm.lists import parse_selector

Zoom = Literal["6h", "24h", "7d"]
HOURS: dict[Zoom, int] = {"6h": 6, "24h": 24, "7d": 168}
Text = Annotated[str, msgspec.Meta(max_length=200)]
Cursor = Annotated[int, msgspec.Meta(ge=-(2**63) + 1, le=2**63 - 1)]


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Equal values are the same view."""

    def touched_by(self, event: Event) -> bool:
        return not event.kind.startswith(("login", "disk_", "github"))


def following(path: str, query: PageQuery, **cursor: int | None) -> str | None:
    """The address of the next page; None: this is the last one. cursor: the fields for the position
    of the next page, of which at most one is not None."""
    if all(value is None for value in cursor.values()):
        return None
    given = msgspec.to_builtins(query) | cursor
    given.pop("id", None)
    return f"{path}?{urlencode({k: v for k, v in given.items() if v is not None})}"


class PageOfAll(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    zoom: Zoom = "24h"


class PageOfMine(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The block of the viewer's own jobs, beside the overview; has no address of its own."""

    user: Text


class PageOfQueue(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    state: Literal["waiting", "running"] | None = None
    user: Text | None = None
    partition: Text | None = None
    text: Text | None = None
    place: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None = None
    """Only jobs behind this place."""
    after: Cursor | None = None


class PageOfNodes(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    gpu_type: Text | None = None
    after: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    """The nodes of the table before this page."""


class PageOfPlan(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    zoom: Zoom = "24h"
    gpu_type: Text | None = None
    node: Text | None = None
    after: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0


class PageOfEnded(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    state: Text | None = None
    user: Text | None = None
    partition: Text | None = None
    text: Text | None = None
    after: Cursor | None = None


class PageOfJob(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: Text
    after: Cursor | None = None

    def touched_by(self, event: Event) -> bool:
        return _job_of(self.id) in (event.job_id, event.array_job_id)


@functools.lru_cache(maxsize=1000)
def _job_of(text: str) -> int:
    """Cached, because it is called at every event, and parsing task ranges can take
    milliseconds."""
    return parse_selector(text).job_id
