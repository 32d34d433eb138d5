"""The base of the leader's loops that deliver notices to users of dev servers.

The database lists the notices that are due. A notice stays due until it is delivered.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from odcd.clock import Clock
from odcd.errors import OdcError, RunnerDown
from odcd.executor.base import DevServers
from odcd.isolation import Isolation
from odcd.loops.rounds import RoundMetrics, Rounds
from odcd.records.dispatch import Notice
from odcd.stores.dev_servers import DevServerStore

RETRY_S = 5.0


class Due(Protocol):
    @property
    def job_id(self) -> int: ...
    @property
    def attempt(self) -> int: ...


D = TypeVar("D", bound=Due)


class Notices(Rounds, Generic[D]):
    """A subclass lists what is due, writes its notices and records what became of them."""

    def __init__(
        self, term: int, store: DevServerStore, servers: DevServers, clock: Clock, every: timedelta,
        metrics: RoundMetrics | None = None,
    ) -> None:  # fmt: skip
        super().__init__(clock, every, metrics)
        self._term = term
        self._store = store
        self._servers = servers
        self._isolation = Isolation[D](self.name, clock, metrics, key=self._key)

    @abstractmethod
    def _key(self, due: D) -> object:
        """Equal for the same notice in the next round."""

    @abstractmethod
    async def _list(self, now: datetime) -> Sequence[D]: ...

    @abstractmethod
    def _notice(self, due: D, now: datetime) -> Notice: ...

    @abstractmethod
    async def _record(self, due: D, trouble: str | None, now: datetime) -> None:
        """trouble: why it was not delivered."""

    async def run_once(self) -> float | None:
        """Deliver the notices that are due; return the seconds until the next check."""
        due = await self._list(self._clock.now())
        self._isolation.keep_only(due)
        ready = self._isolation.ready(due)
        delivered = await asyncio.gather(*map(self._deliver_apart, ready))
        return await self._next_s() if all(delivered) else RETRY_S

    async def _next_s(self) -> float | None:
        """See run_once, when nothing has to be tried again."""
        return None

    async def _deliver_apart(self, due: D) -> bool:
        """Return whether no retry is needed soon."""
        delivered = True

        async def deliver() -> None:
            nonlocal delivered
            delivered = await self._deliver(due)

        await self._isolation.one(due, deliver(), job_id=due.job_id)
        return delivered

    async def _deliver(self, due: D) -> bool:
        trouble = None
        try:
            notice = self._notice(due, self._clock.now())
            await self.reach(due.job_id, self._servers.notify(due.job_id, due.attempt, notice))
        except RunnerDown:
            return False
        except OdcError as error:
            trouble = error.message
        await self._record(due, trouble, self._clock.now())
        return True
