"""Facts on their way to the database: each is told until it is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from odcd.model import Fact


class Ledger:
    def __init__(self) -> None:
        self._facts: dict[tuple[int, int, int, str], Fact] = {}
        self._told = asyncio.Event()

    def tell(self, fact: Fact) -> None:
        """The first of a kind stays; what ended has ended."""
        self._facts.setdefault((fact.job_id, fact.attempt, fact.rank, fact.kind), fact)
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
            self._facts.pop((fact.job_id, fact.attempt, fact.rank, fact.kind), None)
