"""Long lists: made in turns with other requests, bounded, and few at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from odcd.clock import Turns
from odcd.slurm.usage import fail

MAX_CHARS = 64 * 1024 * 1024
"""Of an answer: a format has hundreds of columns, and a list 250,000 lines."""
AT_ONCE = 3
"""Large lists of all users. Each takes hundreds of megabytes while it is made."""


class Place:
    """The place of one request among the large lists, which it takes if its list becomes large."""

    def __init__(self, of_user: asyncio.Lock, of_all: asyncio.Semaphore) -> None:
        self._of_user = of_user
        self._of_all = of_all
        self._held = AsyncExitStack()
        self._taken = False

    async def take(self) -> None:
        """Wait until this user has no other large list, and there are few. Once is enough."""
        if not self._taken:
            self._taken = True
            await self._held.enter_async_context(self._of_user)
            await self._held.enter_async_context(self._of_all)

    async def leave(self) -> None:
        await self._held.aclose()


class LargeLists:
    def __init__(self) -> None:
        self._of_users: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._of_all = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def place(self, uid: int) -> AsyncGenerator[Place]:
        of_user = self._of_users.setdefault(uid, asyncio.Lock())
        place = Place(of_user, self._of_all)
        try:
            yield place
        finally:
            await place.leave()


async def bounded(name: str, turns: Turns, texts: Iterable[str]) -> list[str]:
    """The texts, as long as they are short enough together. Raises Usage."""
    found, room = list[str](), MAX_CHARS
    for text in texts:
        room -= len(text) + 1
        if room < 0:
            raise fail(
                name,
                f"the list has more than {MAX_CHARS} characters: name jobs or users, or fewer "
                "columns",
            )
        found.append(text)
        if turns.are_due():
            await turns.take()
    return found
