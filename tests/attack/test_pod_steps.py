"""Steps in pods: the shell that answers odcd is that of the user's image, and may say anything."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from odcd.clock import SystemClock
from odcd.errors import OdcError, RunnerDown, WrongState
from odcd.executor.kubernetes.steps import shell as shell_module
from odcd.executor.kubernetes.steps.calls import MAX_CALLS, Calls, Listeners, PodCall
from odcd.executor.kubernetes.steps.looks import Looks
from odcd.executor.kubernetes.steps.outcome import read_look
from odcd.executor.kubernetes.steps.shell import Lines, PodShell
from odcd.records.step import StepKey

NOTHING = cast("Any", None)
GOOD = ["known 0", "t 0", "x 0 0 1700000000", "z 1700000000 1700000001"]


@pytest.mark.parametrize(
    "lines",
    [
        ["known x"],
        ["known 0 99999999999"],
        ["known 0", "x 0 99999999999999 1", "z 1 2"],
        ["known 0", "x -1 0 1", "z 1 2"],
        ["known 0", "x 0 0 1", "z nan inf"],
        ["known 0", "x 0 0 1", "z 1 1e300"],
    ],
)
def test_an_answer_that_no_step_gives_is_refused(lines: list[str]) -> None:
    """Before: the error ended the leader's term, and that of the next leader."""
    with pytest.raises(ValueError, match=r"not|invalid"):
        read_look({0: lines})


def test_a_pod_that_answers_nonsense_does_not_hide_the_ends_of_other_steps() -> None:
    bad, good = (1, 1, 0), (2, 1, 0)
    asked: list[StepKey] = []

    async def ask(key: StepKey) -> dict[int, list[str]]:
        asked.append(key)
        if key == bad:
            return {0: ["known nonsense"]}
        return {0: GOOD}

    async def work() -> None:
        looks = Looks(NOTHING, NOTHING, SystemClock())
        looks._ask = ask  # pyright: ignore[reportPrivateUsage]
        for _ in range(2):
            found = await looks.look_at([bad, good])
            assert found[bad] == (True, None)
            assert found[good][1] is not None
        assert asked == [bad, good], "it is looked at less often"

    asyncio.run(work())


class Endless:
    """A stream of a shell that never stops printing, or never answers."""

    def __init__(self, *, silent: bool) -> None:
        self.errors = bytearray()
        self.closed = False
        self._silent = silent

    async def read(self) -> bytes:
        if self._silent:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return b"x\n" * 1000

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("silent", "error"), [(True, RunnerDown), (False, WrongState)])
def test_a_shell_that_does_not_end_is_left(
    silent: bool, error: type[OdcError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: odcd kept all that it printed, or waited forever."""
    monkeypatch.setattr(shell_module, "MAX_ANSWER_BYTES", 500_000)
    stream = Endless(silent=silent)

    async def opened(*_: object) -> Lines:
        return Lines(cast("Any", stream))

    class Meta:
        name = "odc-1-1-0"

    class FakePod:
        metadata = Meta()

    async def work() -> None:
        shell = PodShell(NOTHING)
        monkeypatch.setattr(shell, "open", opened)
        with pytest.raises(error):
            await shell.ask(cast("Any", FakePod()), (), "", 0.001 if silent else 60.0)

    asyncio.run(work())
    assert stream.closed


def test_the_calls_of_one_job_at_a_time_are_limited() -> None:
    """Before: a line in the pod's file was a task of the daemon, however many there were."""

    def call(number: int) -> PodCall:
        return PodCall(
            job_id=1, attempt=1, number=str(number), name="squeue", key=f"k{number}", argv=[],
            environment={}, work_dir="/", umask=0o022, no_input=True, token=None, next=0,
            link=NOTHING, clock=SystemClock(),
        )  # fmt: skip

    async def work() -> None:
        over = asyncio.Event()

        async def answer(_: PodCall) -> None:
            await over.wait()

        listeners = Listeners(NOTHING, SystemClock())
        listeners.on_call = answer
        calls: Calls = {}
        for number in range(MAX_CALLS):
            listeners._add(calls, call(number))  # pyright: ignore[reportPrivateUsage]
            listeners._add(calls, call(number))  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(ValueError, match="has 200 calls"):
            listeners._add(calls, call(MAX_CALLS))  # pyright: ignore[reportPrivateUsage]
        over.set()
        await asyncio.gather(*(task for _, task in calls.values()))
        listeners._add(calls, call(MAX_CALLS))  # pyright: ignore[reportPrivateUsage]
        assert list(calls) == [str(MAX_CALLS)]
        await calls[str(MAX_CALLS)][1]

    asyncio.run(work())
