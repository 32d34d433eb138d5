"""Send jobs their signals before the time limit, for executors that do not keep time limits
themselves. Runs on the leader only.

Each member must acknowledge the signal. It is sent until then, or until the job is ended at its
limit; a new leader continues with the members that have not acknowledged it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from odcd.clock import Clock
from odcd.errors import DatabaseBusy, OdcError
from odcd.executor.base import Executor
from odcd.isolation import explain, is_at_fault
from odcd.records.dispatch import SignalDue
from odcd.stores.attempts import AttemptStore

log = logging.getLogger(__name__)

AT_ONCE = 64
"""Members that are signalled at the same time."""
RETRY_S = (0.5, 5.0)
"""The first and the longest pause until members are tried again; each is twice the previous one."""

Sent = tuple[int, int, int, str | None]
"""Job, attempt, rank, and why the signal was not delivered."""


class Term(Protocol):
    @property
    def term(self) -> int: ...


class Signals:
    def __init__(
        self, lead: Term, store: AttemptStore, executor: Executor, clock: Clock, every_s: float
    ) -> None:
        """every_s: how often to check for signals that are due without being woken."""
        self._lead = lead
        self._store = store
        self._executor = executor
        self._clock = clock
        self._every_s = every_s
        self._due = asyncio.Event()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._reported: set[tuple[int, int, int]] = set()
        """Members whose failed delivery is recorded: once is enough."""

    def wake(self) -> None:
        self._due.set()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        if self._executor.keeps_time:
            return
        pause_s = RETRY_S[0]
        while True:
            self._due.clear()
            try:
                missing = await self.send_once()
            except DatabaseBusy as error:
                log.warning("signals.busy", extra={"why": error.message})
                missing = 1
            if missing:
                await self._clock.sleep(pause_s)
                pause_s = min(2 * pause_s, RETRY_S[1])
                continue
            pause_s = RETRY_S[0]
            try:
                async with asyncio.timeout(self._every_s):
                    await self._due.wait()
            except TimeoutError:
                continue

    async def send_once(self) -> int:
        """Send the signals that are due; return how many members have not received theirs."""
        due = await self._store.list_due_signals(self._lead.term, self._clock.now())
        if not due:
            self._reported.clear()
            return 0
        sent = await asyncio.gather(*(self._send(one, rank) for one in due for rank in one.ranks))
        news = [one for one in sent if one[3] is None or one[:3] not in self._reported]
        if news:
            await self._store.record_signals(self._lead.term, news, self._clock.now())
            self._reported |= {one[:3] for one in news if one[3] is not None}
        return sum(one[3] is not None for one in sent)

    async def _send(self, due: SignalDue, rank: int) -> Sent:
        trouble: str | None = None
        async with self._turns:
            try:
                await self._executor.signal(
                    due.job_id, due.attempt, signal=due.signal, batch_only=due.batch_only, rank=rank
                )
            except OdcError as error:
                trouble = error.message
            except Exception as error:
                # One that cannot be signalled keeps the signal from no other.
                if not is_at_fault(error):
                    raise
                trouble = explain(error)
        if trouble is not None:
            log.warning(
                "signals.not_delivered", extra={"job_id": due.job_id, "rank": rank, "why": trouble}
            )
        return due.job_id, due.attempt, rank, trouble
