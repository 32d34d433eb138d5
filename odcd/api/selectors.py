"""Read the selectors of a request, and serve other requests in between."""

from __future__ import annotations

from collections.abc import Iterable

from odcd.clock import Turns
from odcd.records.job import Selector
from odcd.slurm.lists import RangeBudget, parse_selector


async def read_selectors(texts: Iterable[str], turns: Turns) -> list[Selector]:
    """turns: of the request. Raises BadRequest; TooLarge above MAX_REQUEST_RANGES in total."""
    budget = RangeBudget()
    selectors: list[Selector] = []
    for text in texts:
        selectors.append(parse_selector(text, budget))
        if turns.are_due():
            await turns.take()
    return selectors
