"""What the runner keeps of steps, and what it takes from their clients."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from odcd.runner.record import Key
from odcd.runner.steps import keeping
from odcd.runner.steps.book import Steps
from odcd.runner.steps.input import MAX_INPUT_BYTES, Input, Task
from odcd.runner.steps.step import Step


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    (tmp_path / "steps").mkdir()
    nothing = cast("Any", None)
    return Steps(tmp_path, nothing, nothing, nothing, nothing, nothing)


def ended(steps: Steps, number: int, *, ago_s: float = 0.0, acknowledged: bool = True) -> Step:
    step = Step(Key(7, 1, number), 1000, "mark", [])
    steps.add(step)
    steps.path_of(step.key).write_bytes(b"record")
    steps.settle(step, {"e": "ended", "code": number})
    step.ended_at -= ago_s
    step.acknowledged = acknowledged
    return step


def files(steps: Steps) -> set[str]:
    return {path.name for path in steps.folder.iterdir()}


def test_a_list_has_the_named_steps_and_all_ends_that_were_not_acknowledged(steps: Steps) -> None:
    for number in range(3):
        ended(steps, number, acknowledged=number != 2)
    steps.add(Step(Key(7, 1, 9), 1000, "mark", []))
    found = {fact["step"]: fact["end"] for fact in steps.list([Key(7, 1, 0), Key(8, 1, 0)])}
    assert found == {0: {"e": "ended", "code": 0}, 2: {"e": "ended", "code": 2}}
    assert [fact["step"] for fact in steps.list([Key(7, 1, 9)])] == [2, 9]
    steps.acknowledge(Key(7, 1, 2), forget=False)
    assert steps.list([]) == []


def test_ended_steps_are_removed_after_a_time(steps: Steps) -> None:
    ended(steps, 0, ago_s=keeping.KEPT_S + 1)
    ended(steps, 1, ago_s=keeping.KEPT_S + 1, acknowledged=False)
    ended(steps, 2)
    steps.look_after()
    assert files(steps) == {"7-1-1", "7-1-2"}, "an end is kept until it is recorded"


def test_too_many_ended_steps_are_removed_earlier(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "MAX_KEPT", 2)
    for number, ago_s in enumerate((400, 300, 200, 100)):
        ended(steps, number, ago_s=ago_s)
    steps.look_after()
    assert files(steps) == {"7-1-2", "7-1-3"}
    for number in range(4, 9):
        ended(steps, number)
    steps.look_after()
    assert files(steps) == {f"7-1-{number}" for number in range(4, 9)}, "a new one was removed"


def test_too_much_output_of_ended_steps_is_removed_earlier(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "MAX_KEPT_BYTES", 100_000)
    for number in range(3):
        (steps.folder / f"7-1-{number}.journal").write_bytes(b"output")
        ended(steps, number, ago_s=3 - number).kept_bytes = 60_000
    for _ in range(2):
        steps.look_after()
        assert files(steps) == {"7-1-0", "7-1-1", "7-1-2", "7-1-2.journal"}
    found = steps.find(Key(7, 1, 0))
    assert found is not None, "a repeated order would start it again"


class Pipes:
    """Tasks that read their input from pipes."""

    def __init__(self, count: int) -> None:
        self.selector = selectors.DefaultSelector()
        self.tasks = [Task(number, {}) for number in range(count)]
        self.ends: list[int] = []
        for task in self.tasks:
            end, task.stdin = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            task.takes_input = True
            self.ends.append(end)
        self.input = Input(self.tasks, self.selector)

    def read(self, number: int) -> bytes:
        """All that the task can read now, as the supervisor goes on writing."""
        found = b""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                data = os.read(self.ends[number], 65536)
            except BlockingIOError:
                data = b""
                if not self.selector.get_map():
                    return found
            if not data and self.tasks[number].stdin is None:
                return found
            found += data
            for key, _ in self.selector.select(0):
                key.data()
            if not data and self.tasks[number].position == self.input.received:
                return found
        raise AssertionError("it never got everything")

    def close(self) -> None:
        for end in self.ends:
            os.close(end)
        for task in self.tasks:
            if task.stdin is not None:
                self.input.close(task)
        self.selector.close()


@pytest.fixture
def two() -> Iterator[Pipes]:
    pipes = Pipes(2)
    yield pipes
    pipes.close()


def test_input_beyond_the_limit_is_not_kept(two: Pipes) -> None:
    """A client that ignores the answers could fill the memory of a process of root's."""
    piece = os.urandom(65536)
    for _ in range(100):
        two.input.give(two.input.received, piece)
    received = two.input.received
    assert MAX_INPUT_BYTES <= received <= MAX_INPUT_BYTES + len(piece) + 65536
    assert not two.input.accepts
    expected = (piece * 100)[:received]
    assert two.read(0) == expected
    assert not two.input.accepts, "the other task has read nothing"
    assert two.read(1) == expected
    assert two.input.accepts


def test_refused_input_arrives_when_it_is_sent_again(two: Pipes) -> None:
    pieces = [os.urandom(65536) for _ in range(20)]
    got = [b"", b""]
    for number, piece in enumerate(pieces):
        offset = number * len(piece)
        while two.input.received < offset + len(piece):
            two.input.give(offset, piece)
            if two.input.received < offset + len(piece):
                got = [got[task] + two.read(task) for task in range(2)]
    two.input.give(two.input.received, b"")
    got = [got[task] + two.read(task) for task in range(2)]
    assert got == [b"".join(pieces)] * 2
    assert [task.stdin for task in two.tasks] == [None, None], "its end did not arrive"


def test_a_task_that_closed_its_input_holds_up_no_other(two: Pipes) -> None:
    two.input.close(two.tasks[0])
    piece = bytes(65536)
    for _ in range(20):
        two.input.give(two.input.received, piece)
        two.read(1)
    assert two.input.received == 20 * len(piece)
