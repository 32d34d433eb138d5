"""Keep views current: a view that someone has open is rendered once for all its viewers.

Only the event hub listens to the database. An event marks views as due. They are rendered one after
the other, each a few times per second at most, and all together for at most a third of the time.
Users take turns: some views take seconds, such as a search in all ended jobs.
Changes go to every viewer. A slow viewer has at most one pending update, and later changes are
merged into it. If nothing can be read, viewers see the age of the data.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Protocol

from odcd.clock import Clock
from odcd.errors import DatabaseDown, OdcError, Unavailable
from odcd.events import Event, EventHub
from odcd.page.fragments import Rendered, Update, difference
from odcd.page.viewer import HEARTBEAT_S, Aside, Viewer, Watched

log = logging.getLogger(__name__)

GAP_S = 0.2
"""The minimum between two renderings of a view."""
SHARE = 2.0
"""The pause after each rendering, as a multiple of its duration: all views together use at most a
third of the time."""
AGAIN_S = 1.0
"""After a change, render again: the scheduling pass that it triggers moves planned starts."""
REFRESH_S = 10.0
"""Expected starts change without events."""
TROUBLE_S = 1.0
LATE_S = 4.0
"""While a rendering takes longer than this, its view and all waiting views count as outdated."""
KEPT_S = 0.25
"""For this long, a rendering is reused for others who open the same view."""
MAX_VIEWS = 200
MAX_VIEWS_PER_USER = 40
"""The maximum of views that one user may have open, so that no user takes them all."""
MAX_VIEWERS = 2000


class View(Protocol):
    """Anything that can be rendered the same for everyone; equal values are the same view."""

    def __hash__(self) -> int: ...
    def touched_by(self, event: Event) -> bool: ...


Render = Callable[["View"], Awaitable[Rendered]]


class Live:
    def __init__(
        self, hub: EventHub, clock: Clock, render: Render, on_viewers: Callable[[int], None]
    ) -> None:
        """`on_viewers`: called with the number of viewers."""
        self._hub = hub
        self._clock = clock
        self._render = render
        self._on_viewers = on_viewers
        self._watched: dict[View, Watched] = {}
        self._recent: dict[View, tuple[float, Rendered]] = {}
        self._under_way: dict[View, asyncio.Task[Rendered]] = {}
        self._viewers = 0
        self._served_s: dict[int | None, float] = {}
        """By uid of those who have views open: when one of them was rendered last."""
        self._somebody = asyncio.Event()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Follow events and render until cancelled, or until the hub closes."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(), name="page-events")
            rendering = group.create_task(self._keep_current(), name="page-render")
            await self._hub.closing.wait()
            rendering.cancel()

    async def current(self, view: View) -> Rendered:
        """The view as it is now, or was a moment ago. Raises the errors of rendering."""
        watched = self._watched.get(view)
        if watched is not None and not watched.dirty:
            return watched.rendered
        at_s, rendered = self._recent.get(view, (-KEPT_S, None))
        if rendered is not None and self._clock.monotonic() - at_s < KEPT_S:
            return rendered
        task = self._under_way.get(view)
        if task is None:
            task = asyncio.create_task(self._render_now(view), name="page-render-once")
            self._under_way[view] = task
            task.add_done_callback(lambda _: self._under_way.pop(view, None))
        # A cancelled request does not cancel the rendering for the others.
        return await asyncio.shield(task)

    async def _render_now(self, view: View) -> Rendered:
        rendered = await self._render(view)
        now_s = self._clock.monotonic()
        self._recent = {v: kept for v, kept in self._recent.items() if now_s - kept[0] < KEPT_S}
        self._recent[view] = (now_s, rendered)
        return rendered

    def check_room(self, view: View, by: int | None) -> None:
        """Raises Unavailable if one more viewer is too many."""
        main = {other: one for other, one in self._watched.items() if not one.aside}
        more = view not in main and len(main) >= MAX_VIEWS
        if more or self._viewers >= MAX_VIEWERS:
            raise Unavailable("too many browsers have the page open now", "Try again in a moment.")
        others = (one.viewers for other, one in main.items() if other != view)
        if sum(any(v.by == by for v in viewers) for viewers in others) >= MAX_VIEWS_PER_USER:
            raise Unavailable(
                f"you already have {MAX_VIEWS_PER_USER} pages open", "Close some of them."
            )

    @asynccontextmanager
    async def watch(
        self, view: View, seen: str | None, by: int | None = None, beside: View | None = None
    ) -> AsyncGenerator[Viewer]:
        """seen: the version that the viewer has. beside: a small view on the same page, sent as a
        whole at first. Raises the errors of rendering, or Unavailable."""
        self.check_room(view, by)
        viewer = Viewer(by)
        async with self._joined(view, viewer, seen):
            self._count(1)
            try:
                if beside is None:
                    yield viewer
                else:
                    async with self._joined(beside, Aside(viewer), None):
                        yield viewer
            finally:
                self._count(-1)

    @asynccontextmanager
    async def _joined(
        self, view: View, viewer: Viewer | Aside, seen: str | None
    ) -> AsyncGenerator[None]:
        watched = self._watched.get(view)
        if watched is None:
            rendered = await self.current(view)
            aside = isinstance(viewer, Aside)
            made = Watched(rendered, self._clock.now(), self._clock.monotonic(), aside=aside)
            watched = self._watched.setdefault(view, made)
            # An event may have arrived before the view was watched.
            watched.dirty = True
        watched.viewers.add(viewer)
        self._changed.set()
        if watched.rendered.version != seen:
            viewer.put(watched.rendered.whole)
        if watched.stale:
            viewer.put(watched.age)
        try:
            yield
        finally:
            watched.viewers.discard(viewer)
            if not watched.viewers and self._watched.get(view) is watched:
                del self._watched[view]

    def _count(self, by: int) -> None:
        self._viewers += by
        self._on_viewers(self._viewers)
        self._changed.set()
        if self._viewers:
            self._somebody.set()
        else:
            self._somebody.clear()

    async def _follow(self) -> None:
        while not self._hub.closing.is_set():
            waits = [
                asyncio.ensure_future(self._somebody.wait()),
                asyncio.ensure_future(self._hub.closing.wait()),
            ]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for one in waits:
                one.cancel()
            try:
                await self._follow_events()
            except OdcError as error:
                log.warning("page.unread", extra={"code": error.code, "why": error.message})
                await self._clock.sleep(TROUBLE_S)

    async def _follow_events(self) -> None:
        """Runs until there are no viewers, or this reader fell behind: then every view may have
        changed."""
        for watched in self._watched.values():
            watched.dirty = True
        self._changed.set()
        events = self._hub.stream(None, heartbeat_s=HEARTBEAT_S)
        async with aclosing(events):
            async for event in events:
                if not self._watched:
                    return
                for view, watched in self._watched.items():
                    if not isinstance(event, Event) or view.touched_by(event):
                        watched.dirty = True
                self._changed.set()

    async def _keep_current(self) -> None:
        while True:
            now_s = self._clock.monotonic()
            first = self._first(now_s)
            wait_s = None if first is None else first[1].next_s() - now_s
            if first is not None and wait_s is not None and wait_s <= 0:
                for viewer in first[1].viewers:
                    self._served_s[viewer.by] = now_s
                await self._bring_up(*first)
                took_s = self._clock.monotonic() - now_s
                await self._clock.sleep(min(SHARE * took_s, REFRESH_S))
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            self._changed.clear()

    def _first(self, now_s: float) -> tuple[View, Watched] | None:
        """Of the views that are due, one of the user who was served least recently, and of these
        the one that is due for longest. If none is due, the next one."""
        served = self._served_s
        due = [one for one in self._watched.items() if one[1].next_s() <= now_s]
        if not due:
            return min(self._watched.items(), key=lambda one: one[1].next_s(), default=None)
        if len(served) > 2 * MAX_VIEWERS:
            served.clear()

        def turn(one: tuple[View, Watched]) -> tuple[float, float]:
            last_s = min((served.get(v.by, -math.inf) for v in one[1].viewers), default=-math.inf)
            return last_s, one[1].next_s()

        return min(due, key=turn)

    async def _bring_up(self, view: View, watched: Watched) -> None:
        was_dirty, watched.dirty = watched.dirty, False
        at = self._clock.now()
        late = asyncio.get_running_loop().call_later(LATE_S, self._grow_stale)
        try:
            rendered = await self._render(view)
        except Exception as error:
            # A view that cannot be rendered must not end the daemon.
            if isinstance(error, OdcError):
                log.warning("page.stale", extra={"code": error.code, "why": error.message})
            else:
                log.exception("page.failed")
            watched.grow_stale()
            watched.due_s = self._clock.monotonic() + TROUBLE_S
            if isinstance(error, DatabaseDown):
                self._grow_stale(watched.due_s)
            return
        finally:
            late.cancel()
        now_s = self._clock.monotonic()
        watched.due_s = now_s + GAP_S
        watched.refresh_s = now_s + (AGAIN_S if was_dirty else REFRESH_S)
        update = difference(watched.rendered, rendered)
        if update is None and watched.stale:
            update = Update(version=rendered.version)
        watched.rendered, watched.at, watched.stale = rendered, at, False
        if update is not None:
            watched.put(update)

    def _grow_stale(self, due_s: float = 0.0) -> None:
        """Mark all views as outdated. due_s: the earliest time of the next try."""
        for watched in self._watched.values():
            watched.grow_stale()
            watched.due_s = max(watched.due_s, due_s)
