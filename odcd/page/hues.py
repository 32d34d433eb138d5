"""Each user's colour, the same in all views, and the names in the filters' menus."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from odcd.clock import Clock
from odcd.stores.page import PageStore

HUES = 12
FRESH_S = 10.0
"""For this long, the names are not read again, unless an unknown user appears."""


class Hues:
    """The first HUES users have different colours. Users keep their colour unless an earlier one
    with the same preference appears."""

    def __init__(self, store: PageStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._read_s = -FRESH_S
        self._by_user: dict[str, int] = {}
        self._strangers: set[str] = set()
        """Users with jobs that were not among the names when they were last read."""
        self._unread = False
        self.users: Sequence[str] = ()
        self.partitions: Sequence[str] = ()
        self.version = 0
        """Changes with the colours: a key for kept drawings."""

    async def refresh(self) -> None:
        """Read the names, at most one query for a rendering. Raises DatabaseDown."""
        now_s = self._clock.monotonic()
        if not self._unread and now_s - self._read_s < FRESH_S:
            return
        users, self.partitions = await self._store.list_choices()
        self._read_s, self._unread = now_s, False
        if users != self.users:
            self.users = users
            self._by_user = assign(users)
            self._strangers.clear()
            self.version += 1

    def of(self, user: str | None) -> int:
        found = self._by_user.get(user or "")
        if found is not None:
            return found
        if user and user not in self._strangers:
            self._strangers.add(user)
            self._unread = True
        return preferred(user or "")


def preferred(user: str) -> int:
    return zlib.crc32(user.encode()) % HUES


def assign(users: Sequence[str]) -> dict[str, int]:
    """Each user's preferred colour, or the next one while any is free."""
    given: dict[str, int] = {}
    free = set(range(HUES))
    for user in users:
        wanted = preferred(user)
        if free:
            wanted = next(h % HUES for h in range(wanted, wanted + HUES) if h % HUES in free)
            free.discard(wanted)
        given[user] = wanted
    return given
