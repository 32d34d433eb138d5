"""Errors about ranges of tasks name the range once."""

from __future__ import annotations

import pytest

from odcd.errors import BadRequest
from odcd.slurm.lists import parse_array


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5-1", 'array "5-1" ends before it begins'),
        ("0,5-1", '"5-1" in array "0,5-1" ends before it begins'),
        ("x", 'array "x" is not a task or a range of tasks'),
    ],
)
def test_a_wrong_range_is_named_once(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_array(text)
    assert refused.value.message == message
