"""The journal of a step as srun's output, and what a client cannot make of it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from odcctl.remote.program import frames
from odcd.api.slurm.step_output import (
    MAX_PARTIAL_BYTES,
    MAX_PARTIALS_BYTES,
    StepOutput,
)
from odcd.errors import WrongState
from odcd.records.fields import PRINTABLE
from odcd.records.step import StepEnd
from odcd.runner.steps.journal import HEAD, OUT, OVER

END = {"e": "ended", "state": "FAILED", "code": 7, "statuses": {"1792": "0,2-5", "0": "1"},
       "started_at": 1.5, "at": 2.5, "size": 99}  # fmt: skip


def texts(parts: bytes, kind: bytes = b"o") -> bytes:
    return b"".join(content for one, content in frames(iter([parts])) if one == kind)


def test_an_end_is_read_as_the_supervisor_wrote_it() -> None:
    _, end = StepOutput(1, label=False).convert([(OVER, 0, json.dumps(END).encode())])
    assert end is not None
    assert StepEnd.of((7, 1, 0), end) == StepEnd.of((7, 1, 0), END)


@pytest.mark.parametrize(
    "change",
    [
        {"state": "RUNNING"}, {"state": "x"}, {"code": "7"}, {"code": 1000}, {"e": "lost"},
        {"statuses": {"x": "0"}}, {"statuses": {"0": "\x1b[2J"}}, {"statuses": [1]},
        {"at": 1e300}, {"started_at": "x"},
    ],
)  # fmt: skip
def test_an_end_that_a_task_has_printed_is_refused(change: dict[str, Any]) -> None:
    """Before: it was recorded, and with such statuses sacct failed for all users."""
    for data in (json.dumps(END | change).encode(), b"[" * 100_000, b"1"):
        with pytest.raises(WrongState):
            StepOutput(1, label=False).convert([(OVER, 0, data)])


@pytest.mark.parametrize(
    "position",
    [
        "", "x", "[]", "{}", '{"at":-1}', '{"at":1e30}', '{"at":Infinity}', '{"at":"1"}',
        '{"at":0,"partial":{"x":"y"}}', '{"at":0,"partial":{"o0":1}}', "[" * 100_000,
        '{"at":0,"partial":{"o0":"\u20ac"}}',
    ],
)  # fmt: skip
def test_a_position_that_no_step_had_is_refused(position: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (of msgspec, too)
        StepOutput(1, label=True, position=position)


def test_a_position_continues_within_a_line() -> None:
    half = bytes(set(range(256)) - {10})
    first = StepOutput(2, label=True)
    first.convert([(OUT, 1, b"one\n" + half)])
    assert first.offset == HEAD.size + 4 + len(half)
    assert re.fullmatch(PRINTABLE, first.position), "the client could not send it back"
    second = StepOutput(2, label=True, position=first.position)
    assert texts(second.convert([(OUT, 1, b" a line\n")])[0]) == b"1: " + half + b" a line\n"


def test_lines_without_an_end_stay_small_in_every_position() -> None:
    output = StepOutput(20, label=True)
    printed = b""
    for task in range(20):
        parts, _ = output.convert([(OUT, task, b"\xff" * (MAX_PARTIAL_BYTES - 1))])
        printed += texts(parts)
        assert len(output.position) < 1024 * 1024, "the client could not send it back"
    assert len(printed) > 20 * MAX_PARTIAL_BYTES - MAX_PARTIALS_BYTES - 20 * 10
