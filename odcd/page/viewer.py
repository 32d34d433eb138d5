"""One browser that follows a view."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from odcd.page.fragments import Update

HEARTBEAT_S = 15.0


class Viewer:
    """One browser's connection, with at most one pending update. by: the uid of its user."""

    def __init__(self, by: int | None) -> None:
        self.by = by
        self._update: Update | None = None
        self._news = asyncio.Event()

    def put(self, update: Update) -> None:
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
