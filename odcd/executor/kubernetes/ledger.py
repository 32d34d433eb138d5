"""Facts on their way to the database: each is repeated until it is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from odcd.executor.kubernetes.pod_texts import plain
from odcd.records.dispatch import PROGRESS, Fact


class Ledger:
    def __init__(self) -> None:
        self._facts: dict[tuple[object, ...], Fact] = {}
        self._changed = asyncio.Event()

    def report(self, fact: Fact) -> None:
        """Report a fact. The first fact of a kind is kept, because an end is final; of progress the
        last one is kept. A detail may be a pod's own text. One that the database cannot store would
        be sent again forever, by every leader."""
        if fact.detail is not None:
            fact = replace(fact, detail=plain(fact.detail))
        key = _key(fact)
        if fact.kind in PROGRESS:
            self._facts[key] = fact
        else:
            self._facts.setdefault(key, fact)
        self._changed.set()

    def wake(self) -> None:
        self._changed.set()

    async def take(self) -> list[Fact]:
        """Wait for a new fact, then return all unacknowledged ones."""
        await self._changed.wait()
        self._changed.clear()
        return list(self._facts.values())

    def acknowledge(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            key = _key(fact)
            # The phase may have been reported again in the meantime.
            if fact.kind not in PROGRESS or self._facts.get(key) == fact:
                self._facts.pop(key, None)


def _key(fact: Fact) -> tuple[object, ...]:
    once = fact.at if fact.kind in ("restart", "oom") else None
    return (fact.job_id, fact.attempt, fact.rank, fact.kind, once)
