"""Share database connections among requests, so that no user or endpoint can use all of them.

A slot is taken for one statement. A long poll or an event stream that waits for events takes none.
Slow statements share half of the CPUs: passes run in the same PostgreSQL. Long ones share a quarter
besides, so that a list of 0.3 s does not wait for a replay of 30 s. Users take turns in both.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from odcd.database.fair_slots import FairSlots
from odcd.database.pace import LONG_S, Asker, Pace, Speed, half_of_cpus
from odcd.errors import DatabaseBusy, TooManyRequests

__all__ = ["Asker", "Slots", "ask_as", "ask_unknown", "half_of_cpus"]

AT_ONCE = 8
"""Statements of requests that may run at once; the pool has a few more connections."""
PER_USER = 4
PER_ENDPOINT = 6
MAX_WAITING = 100
"""Statements of one user that may wait for a slot; the next one is rejected at once."""
PATIENCE_S = 10.0
LONG_PATIENCE = 4
"""A long statement waits this many times longer: another one may take up to the statement timeout
of 30 s."""
IDENTIFY = "identification"
"""Stands for the endpoint until the caller is known."""
TRY_AGAIN = "Nothing was changed. Try again in a moment."

_asker: ContextVar[Asker | None] = ContextVar("asker", default=None)


def ask_as(user: str, endpoint: str, *, operator: bool = False) -> None:
    """Count the statements of this task and its child tasks for this user and endpoint."""
    _asker.set(Asker(user, endpoint, operator=operator))


def ask_unknown(client: str) -> None:
    """Count the statements of this task for a client that is not identified yet."""
    _asker.set(Asker(client, IDENTIFY, known=False))


@dataclass(slots=True)
class _Share:
    """The slots of one user or one endpoint."""

    slots: asyncio.Semaphore
    using: int = field(default=0)


class _Lane:
    """The slow or long slot of one statement."""

    def __init__(self) -> None:
        self.held: FairSlots | None = None

    def move_to(self, slots: FairSlots, user: str) -> None:
        """The statement runs already, so it waits for no slot there."""
        if self.held is not slots:
            self.release()
            self.held = slots if slots.take(user) else None

    def release(self) -> None:
        held, self.held = self.held, None
        if held is not None:
            held.release()


class Slots:
    def __init__(
        self, *, at_once: int = AT_ONCE, per_user: int = PER_USER,
        per_endpoint: int = PER_ENDPOINT, waiting: int = MAX_WAITING,
        patience_s: float = PATIENCE_S, slow: int | None = None,
    ) -> None:  # fmt: skip
        """slow: slow statements that may run at once; None: at_once."""
        slow = at_once if slow is None else min(slow, at_once)
        self._shared = {Speed.SLOW: FairSlots(slow), Speed.LONG: FairSlots(max(1, slow // 2))}
        self._pace = Pace()
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
            async with self._taken(user.slots, _too_many(asker)), AsyncExitStack() as stack:
                lane = await self._enter(stack, asker, endpoint.slots)
                begun_s = _now_s()
                self._pace.begin(asker, begun_s)
                # Slow statements must not wait for one that turns out to be long.
                late = asyncio.get_running_loop().call_later(
                    LONG_S, lane.move_to, self._shared[Speed.LONG], asker.user
                )
                try:
                    yield
                finally:
                    late.cancel()
                    self._pace.end(asker, begun_s, _now_s())

    async def _enter(
        self, stack: AsyncExitStack, asker: Asker, endpoint: asyncio.Semaphore
    ) -> _Lane:
        """Take the slots besides the user's. Those of slow statements come first, so that none of
        these waits in an endpoint's slot."""
        speed = self._pace.speed(asker, _now_s())
        while True:
            async with AsyncExitStack() as taken:
                lane = _Lane()
                taken.callback(lane.release)
                if speed is not Speed.QUICK:
                    shared = self._shared[speed]
                    patience = LONG_PATIENCE if speed is Speed.LONG else 1
                    await self._wait(shared.acquire(asker.user), _busy(asker), patience)
                    lane.held = shared
                for slots in (endpoint, self._all):
                    await taken.enter_async_context(self._taken(slots, _busy(asker)))
                # While it waited, another one of its user may have turned out to be slow.
                now = self._pace.speed(asker, _now_s())
                if now <= speed:
                    stack.push_async_callback(taken.pop_all().aclose)
                    return lane
            speed = now

    @asynccontextmanager
    async def _taken(self, slots: asyncio.Semaphore, refusal: Exception) -> AsyncGenerator[None]:
        await self._wait(slots.acquire(), refusal)
        try:
            yield
        finally:
            slots.release()

    async def _wait(self, turn: Awaitable[object], refusal: Exception, patience: int = 1) -> None:
        try:
            async with asyncio.timeout(self._patience_s * patience):
                await turn
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
