"""One browser that follows a view, and a view that browsers follow."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from odcd.page.fragments import Rendered, Update

HEARTBEAT_S = 15.0


class Viewer:
    """One browser's connection, with at most one pending update. by: the uid of its user."""

    def __init__(self, by: int | None) -> None:
        self.by = by
        self._update: Update | None = None
        self._news = asyncio.Event()
        self._ages: dict[object, str | None] = {}

    def put(self, update: Update, of: object = None) -> None:
        """of: the view beside the main one, if it is an update of that. The browser sees the age of
        the older one of both."""
        self._ages[of] = update.as_of
        age = min((age for age in self._ages.values() if age is not None), default=None)
        if age != update.as_of:
            update = replace(update, as_of=age)
        self._update = update if self._update is None else self._update.then(update)
        self._news.set()

    async def take(self) -> Update | None:
        """Return the next update; None: nothing happened for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_S):
                await self._news.wait()
        self._news.clear()
        update, self._update = self._update, None
        return update


class Aside:
    """The same browser, as the viewer of a view beside its main one. A browser reports the version
    that it has only of the main view, so these updates have none."""

    def __init__(self, viewer: Viewer) -> None:
        self.by = viewer.by
        self._viewer = viewer

    def put(self, update: Update) -> None:
        self._viewer.put(replace(update, version=""), self)


class Watched:
    """A view that is open in some browser."""

    def __init__(self, rendered: Rendered, at: datetime, now_s: float, *, aside: bool) -> None:
        """aside: its viewers have it beside another view."""
        self.aside = aside
        self.rendered = rendered
        self.at = at
        """When the data was read."""
        self.stale = False
        """Whether its viewers were notified that it is outdated."""
        self.viewers: set[Viewer | Aside] = set()
        self.due_s = now_s
        """The earliest time of the next rendering, if it is dirty."""
        self.refresh_s = now_s
        self.dirty = False

    def next_s(self) -> float:
        return self.due_s if self.dirty else max(self.refresh_s, self.due_s)

    def put(self, update: Update) -> None:
        for viewer in self.viewers:
            viewer.put(update)

    def grow_stale(self) -> None:
        self.dirty = True
        if not self.stale:
            self.stale = True
            self.put(self.age)

    @property
    def age(self) -> Update:
        return Update(version=self.rendered.version, as_of=f"{self.at:%Y-%m-%dT%H:%M:%SZ}")
