"""Share database connections among requests, so that no user or endpoint can use all of them.

A slot is taken for one statement. A long poll or an event stream that waits for events takes none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from odcd.errors import DatabaseBusy, TooManyRequests

AT_ONCE = 8
"""Statements of requests that may run at once; the pool has a few more connections."""
PER_USER = 4
PER_ENDPOINT = 6
MAX_WAITING = 100
"""Statements of one user that may wait for a slot; the next one is rejected at once."""
PATIENCE_S = 10.0
IDENTIFY = "identification"
"""Stands for the endpoint until the caller is known."""
TRY_AGAIN = "Nothing was changed. Try again in a moment."


@dataclass(frozen=True, slots=True)
class Asker:
    """known: the user of an identified request; otherwise a client, whose statements wait without a
    limit on their number: its connections are limited."""

    user: str
    endpoint: str
    known: bool = True


_asker: ContextVar[Asker | None] = ContextVar("asker", default=None)


def ask_as(user: str, endpoint: str) -> None:
    """Count the statements of this task and its child tasks for this user and endpoint."""
    _asker.set(Asker(user, endpoint))


def ask_unknown(client: str) -> None:
    """Count the statements of this task for a client that is not identified yet."""
    _asker.set(Asker(client, IDENTIFY, known=False))


@dataclass(slots=True)
class _Share:
    """The slots of one user or one endpoint."""

    slots: asyncio.Semaphore
    using: int = field(default=0)


class Slots:
    def __init__(
        self, *, at_once: int = AT_ONCE, per_user: int = PER_USER,
        per_endpoint: int = PER_ENDPOINT, waiting: int = MAX_WAITING,
        patience_s: float = PATIENCE_S,
    ) -> None:  # fmt: skip
        self._all = asyncio.Semaphore(at_once)
        self._per_user = per_user
        self._per_endpoint = per_endpoint
        self._waiting = waiting
        self._patience_s = patience_s
        self._users: dict[str, _Share] = {}
        self._endpoints: dict[str, _Share] = {}

    @asynccontextmanager
    async def hold(self) -> AsyncGenerator[None]:
        """Take a slot for one statement of a request; the daemon's own statements need none.

        Raises TooManyRequests when the user has too many statements in progress, DatabaseBusy when
        the endpoint or the pool has.
        """
        asker = _asker.get()
        if asker is None:
            yield
            return
        with (
            _share(self._users, asker.user, self._per_user) as user,
            _share(self._endpoints, asker.endpoint, self._per_endpoint) as endpoint,
        ):
            if asker.known and user.using > self._per_user + self._waiting:
                raise _too_many(asker)
            # The user's slots first: a statement that waits for them delays no other user.
            await self._take(user.slots, _too_many(asker))
            try:
                await self._take(endpoint.slots, _busy(asker))
                try:
                    await self._take(self._all, _busy(asker))
                    try:
                        yield
                    finally:
                        self._all.release()
                finally:
                    endpoint.slots.release()
            finally:
                user.slots.release()

    async def _take(self, slots: asyncio.Semaphore, refusal: Exception) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await slots.acquire()
        except TimeoutError:
            raise refusal from None


@contextmanager
def _share(shares: dict[str, _Share], key: str, size: int) -> Generator[_Share]:
    share = shares.get(key)
    if share is None:
        share = shares[key] = _Share(asyncio.Semaphore(size))
    share.using += 1
    try:
        yield share
    finally:
        share.using -= 1
        if not share.using:
            del shares[key]


def _too_many(asker: Asker) -> TooManyRequests:
    return TooManyRequests(f"user {asker.user} has too many requests in progress", TRY_AGAIN)


def _busy(asker: Asker) -> DatabaseBusy:
    return DatabaseBusy(f"too many requests are in progress at {asker.endpoint}", TRY_AGAIN)
