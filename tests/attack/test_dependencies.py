"""No dependency holds the turn for long, which all starts, ends and changes of jobs wait for."""

from __future__ import annotations

import pytest

from odcd.errors import TooLarge
from odcd.slurm.dependencies import MAX_TERMS, parse_dependency


@pytest.mark.parametrize("condition", ["singleton", "afterok:1", "SINGLETON "])
@pytest.mark.parametrize("between", [",", "?"])
def test_each_condition_counts(condition: str, between: str) -> None:
    """Before: singleton did not. One update that gave 20 tasks of an array 20,000 of them each kept
    all other users from submitting and changing jobs for 25 seconds."""
    assert len(parse_dependency(between.join([condition] * MAX_TERMS)).terms) == MAX_TERMS
    with pytest.raises(TooLarge, match=f"more than {MAX_TERMS} conditions"):
        parse_dependency(between.join([condition] * (MAX_TERMS + 1)))
