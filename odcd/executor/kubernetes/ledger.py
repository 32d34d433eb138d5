"""Facts on their way to the database: each is told until it is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from odcd.records.dispatch import PROGRESS, Fact


class Ledger:
    def __init__(self) -> None:
        self._facts: dict[tuple[object, ...], Fact] = {}
        self._told = asyncio.Event()

    def tell(self, fact: Fact) -> None:
        """The first of a kind stays; what ended has ended. Of progress the last."""
        key = _key(fact)
        if fact.kind in PROGRESS:
            self._facts[key] = fact
        else:
            self._facts.setdefault(key, fact)
        self._told.set()

    def wake(self) -> None:
        self._told.set()

    async def take(self) -> list[Fact]:
        """All that is not acknowledged; waits for something new."""
        await self._told.wait()
        self._told.clear()
        return list(self._facts.values())

    def acknowledge(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            key = _key(fact)
            # Of a phase more may have been told meanwhile.
            if fact.kind not in PROGRESS or self._facts.get(key) == fact:
                self._facts.pop(key, None)


def _key(fact: Fact) -> tuple[object, ...]:
    once = fact.at if fact.kind in ("restart", "oom") else None
    return (fact.job_id, fact.attempt, fact.rank, fact.kind, once)
