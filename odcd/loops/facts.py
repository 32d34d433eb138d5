"""Write what the executor observed to the database. Runs on the leader only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from odcd.clock import Clock
from odcd.isolation import Isolation, IsolationWatch, explain, is_at_fault
from odcd.records.dispatch import ENDS, PROGRESS, Fact
from odcd.stores.attempts import AttemptStore

log = logging.getLogger(__name__)

BUSY_RETRY_S = 1.0
MAX_FACTS = 250
"""Facts per transaction: a pass can fill the freed GPUs while the next facts are written."""


class FactWriter:
    """A fact that cannot be recorded is replaced by a plain one, with this daemon's time and
    without the reported texts, so that the job still ends. If the job's rows are at fault instead,
    the fact is set aside and written again later."""

    def __init__(
        self, term: int, store: AttemptStore, clock: Clock, on_end: Callable[[], None],
        watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        """on_end: called when jobs have ended."""
        self._term = term
        self._store = store
        self._clock = clock
        self._on_end = on_end
        self._isolation = Isolation[Fact]("facts", clock, watch, key=_key)

    async def write(self, facts: Sequence[Fact]) -> list[Fact]:
        """Write the facts, and retry while the database is busy. Return those that were recorded:
        only these may be acknowledged."""
        return await self._isolation.together(
            _ends_first(facts), self._record,
            most=MAX_FACTS, busy_s=BUSY_RETRY_S, job_id=lambda fact: fact.job_id,
        )  # fmt: skip

    async def write_again(self) -> list[Fact]:
        """Write the facts that were set aside and whose time has come."""
        return await self.write(self._isolation.due())

    async def _record(self, facts: Sequence[Fact]) -> None:
        try:
            ended = await self._store.record_facts(self._term, facts, self._clock.now())
        except Exception as error:
            if len(facts) > 1 or not is_at_fault(error) or facts[0].kind in PROGRESS:
                raise
            plain = _plain(facts[0], error, self._clock.now())
            ended = await self._store.record_facts(self._term, [plain], self._clock.now())
            self._isolation.report(_key(facts[0]), error, job_id=facts[0].job_id)
        if ended:
            log.info("reconcile.ended", extra={"jobs": len(ended)})
            self._on_end()


def _plain(fact: Fact, error: Exception, now: datetime) -> Fact:
    """A fact that says the same with values that odc made itself."""
    code = fact.exit_code
    return replace(
        fact, at=now, exit_code=None if code is None else min(max(code, 0), 255),
        signal=fact.signal if fact.signal in range(1, 65) else None,
        detail=f"odc could not store the report about it: {explain(error)}",
    )  # fmt: skip


def _ends_first(facts: Sequence[Fact]) -> Sequence[Fact]:
    """Facts about members that ended come first, because other jobs wait for their GPUs; otherwise
    they would wait for the starts of a large pass. The facts of one attempt stay in order."""
    if len(facts) <= MAX_FACTS:
        return facts
    over = {(fact.job_id, fact.attempt) for fact in facts if fact.kind in ENDS}
    return sorted(facts, key=lambda fact: (fact.job_id, fact.attempt) not in over)


def _key(fact: Fact) -> tuple[object, ...]:
    return fact.job_id, fact.attempt, fact.rank, fact.kind
