"""Outputs that are followed side by side: those of an array's tasks, or of a gang's members.

Each has an open file, or a connection to the cluster, and a piece in memory.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

PER_USER = 1000
SHARE = 16
"""A user has at most this part of the daemon's open files."""


@dataclass(slots=True)
class _User:
    places: asyncio.Semaphore
    count: int = 0
    """Outputs that have a place or wait for one."""


@dataclass(slots=True)
class Outputs:
    _users: dict[int, _User] = field(default_factory=dict[int, _User])

    @asynccontextmanager
    async def place(self, uid: int) -> AsyncGenerator[None]:
        """Use around one output. Waits while the user follows as many as one user may."""
        user = self._users.get(uid)
        if user is None:
            user = self._users[uid] = _User(asyncio.Semaphore(_most()))
        user.count += 1
        try:
            async with user.places:
                yield
        finally:
            user.count -= 1
            if not user.count:
                del self._users[uid]


def _most() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return PER_USER if soft == resource.RLIM_INFINITY else min(PER_USER, max(8, soft // SHARE))
