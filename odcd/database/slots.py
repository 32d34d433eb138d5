"""Share database connections among requests, so that no user or endpoint can use all of them.

A slot is taken for one statement. A long poll or an event stream that waits for events takes none.
Slow statements share half of the CPUs: passes run in the same PostgreSQL.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext
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
SLOW_S = 0.25
"""A statement that takes longer makes the next ones of its user at its endpoint count as slow."""
SLOW_FOR_S = 60.0
"""For so long after the last such statement."""
MAX_KNOWN = 10_000
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


def half_of_cpus() -> int:
    """Passes, ends and quick requests have the other half of this machine's CPUs."""
    return max(1, len(os.sched_getaffinity(0)) // 2)


class _Pace:
    """Which users get slow answers from which endpoints. Another user's statements at the same
    endpoint may be quick, and must not wait for the slow ones."""

    def __init__(self) -> None:
        self._running: dict[Asker, list[float]] = {}
        self._slow_at: OrderedDict[Asker, float] = OrderedDict()

    def is_slow(self, asker: Asker, now_s: float) -> bool:
        if any(now_s - begun_s > SLOW_S for begun_s in self._running.get(asker, ())):
            return True
        slow_at = self._slow_at.get(asker)
        return slow_at is not None and now_s - slow_at < SLOW_FOR_S

    def begin(self, asker: Asker, now_s: float) -> None:
        self._running.setdefault(asker, []).append(now_s)

    def end(self, asker: Asker, begun_s: float, now_s: float) -> None:
        running = self._running[asker]
        running.remove(begun_s)
        if not running:
            del self._running[asker]
        if now_s - begun_s > SLOW_S:
            self._slow_at[asker] = now_s
            self._slow_at.move_to_end(asker)
            if len(self._slow_at) > MAX_KNOWN:
                self._slow_at.popitem(last=False)


class Slots:
    def __init__(
        self, *, at_once: int = AT_ONCE, per_user: int = PER_USER,
        per_endpoint: int = PER_ENDPOINT, waiting: int = MAX_WAITING,
        patience_s: float = PATIENCE_S, slow: int | None = None,
    ) -> None:  # fmt: skip
        """slow: slow statements that may run at once; None: at_once."""
        self._slow = asyncio.Semaphore(at_once if slow is None else min(slow, at_once))
        self._pace = _Pace()
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
            # The user's slots first: a statement that waits for them delays no other user. Then
            # those of slow statements, so that none of these waits in an endpoint's slot.
            async with self._taken(user.slots, _too_many(asker)):
                slow = self._pace.is_slow(asker, _now_s())
                async with (
                    self._taken(self._slow, _busy(asker)) if slow else nullcontext(),
                    self._taken(endpoint.slots, _busy(asker)),
                    self._taken(self._all, _busy(asker)),
                ):
                    begun_s = _now_s()
                    self._pace.begin(asker, begun_s)
                    try:
                        yield
                    finally:
                        self._pace.end(asker, begun_s, _now_s())

    @asynccontextmanager
    async def _taken(self, slots: asyncio.Semaphore, refusal: Exception) -> AsyncGenerator[None]:
        await self._take(slots, refusal)
        try:
            yield
        finally:
            slots.release()

    async def _take(self, slots: asyncio.Semaphore, refusal: Exception) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await slots.acquire()
        except TimeoutError:
            raise refusal from None


def _now_s() -> float:
    return asyncio.get_running_loop().time()


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
