"""The output of steps waits on the disk of odc's home, which is often the database's."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any, cast

import pytest

from odcd.api.slurm.step_output import StepOutput
from odcd.executor.local_steps import MAX_FRAMES, LocalStepStream
from odcd.runner.protocol import ProtocolError
from odcd.runner.record import Key
from odcd.runner.steps import journal, keeping
from odcd.runner.steps.book import Steps
from odcd.runner.steps.journal import HEAD, OUT, Journal, behind_bytes
from odcd.runner.steps.requests import MAX_LIVE, STEP_BYTES, StepRequests, most_live
from odcd.runner.steps.step import Step

MIB = 1024 * 1024
NOTHING = cast("Any", None)


def test_the_unread_output_of_all_steps_of_a_user_is_bounded() -> None:
    """Before: 16 MiB for each of 1,000 steps of each job, beside all limits on kept output."""
    assert behind_bytes(1) == 16 * MIB
    assert sum(behind_bytes(count) for count in range(1, MAX_LIVE + 1)) < 6 * 1024 * MIB


def test_the_running_steps_of_a_user_are_limited(tmp_path: Path) -> None:
    """Before: each of a user's jobs had 1,000, each a process of root."""
    steps = Steps(tmp_path, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
    for number in range(MAX_LIVE):
        steps.add(Step(Key(7, 1, number), 1001, "mark", []))

    class Allowed:
        def refusal(self, uid: int) -> None: ...

    requests = StepRequests(steps, cast("Any", Allowed()), memory_bytes=1024 * 1024 * MIB)
    order = {"job": 8, "attempt": 1, "step": 0, "uid": 1001}
    with pytest.raises(ProtocolError, match="2000 running steps"):
        requests.start(order, 1001)
    for other in ({"uid": 1002}, {"job": 7}):
        with pytest.raises(KeyError, match="name"):  # the next check
            requests.start({**order, **other}, int({**order, **other}["uid"]))


def test_the_processes_that_watch_steps_take_a_quarter_of_the_memory() -> None:
    """Before: 2,000 on every machine, 10 GB."""
    assert most_live(16 * 1024 * MIB) * STEP_BYTES == 4 * 1024 * MIB
    assert most_live(1024 * 1024 * MIB) == MAX_LIVE


def test_a_step_keeps_little_while_the_disk_is_almost_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: steps wrote until the disk was full, and PostgreSQL stopped."""
    scarce = [True]

    def seems_full(_folder: str) -> bool:
        return scarce[0]

    monkeypatch.setattr(journal, "lacks_space", seems_full)
    kept = Journal(str(tmp_path / "journal"))
    for _ in range(3):
        kept.add(OUT, 0, b"x" * MIB)
    assert kept.is_full
    kept.acknowledge(kept.size)
    assert not kept.is_full, "a client that reads gets all of it"
    scarce[0] = False
    for _ in range(3):
        kept.add(OUT, 0, b"x" * MIB)
    assert not kept.is_full


def test_a_read_of_many_small_frames_is_short(tmp_path: Path) -> None:
    """Before: with 30,000 frames that a task had printed into the journal, each read took 20 ms of
    the event loop, for each of a user's 500 streams."""
    path = tmp_path / "journal"
    path.write_bytes(HEAD.pack(OUT, 0, 0) * 10_000)
    stream = LocalStepStream(os.open(path, os.O_RDONLY), None)
    try:
        assert len(asyncio.run(stream.read(0, {}))) == MAX_FRAMES
    finally:
        stream.close()


@pytest.mark.parametrize(
    "position",
    [
        {"at": 0, "partial": {f"o{task}": "" for task in range(5)}},
        {"at": 0, "partial": {"o0": "x" * 200_000}},
        {"at": 0, "marks": {f"o{task}": 0 for task in range(9)}},
    ],
)
def test_a_position_has_no_more_lines_than_the_step_has_tasks(position: dict[str, object]) -> None:
    """Before: half a million of them were counted again for every piece of output."""
    with pytest.raises(ValueError, match=r"than the step has|no step keeps"):
        StepOutput(2, label=True, position=json.dumps(position))


def test_the_kept_output_of_one_user_displaces_that_users_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before: the oldest went first, so one user's steps displaced what others had not read yet."""
    monkeypatch.setattr(keeping, "MAX_KEPT_BYTES", 100)

    def ended(number: int, uid: int) -> Step:
        step = Step(Key(7, 1, number), uid, "mark", [], end={"e": "ended"}, acknowledged=True)
        step.ended_at, step.kept_bytes = float(number), 30
        return step

    honest, *many = ended(0, 1001), *(ended(number, 1002) for number in range(1, 5))
    found = keeping.surplus([honest, *many], now=10.0)
    assert found.journals == many[:2]
    assert found.steps == []
