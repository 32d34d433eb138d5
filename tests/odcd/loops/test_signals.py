"""The signal before a time limit reaches every member, however often it must be sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from odcd.errors import RunnerDown
from odcd.executor.kubernetes.cluster import ApiRefused, Status
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.signals import send_signal
from odcd.loops.signals import RETRY_S, Sent, Signals
from odcd.records.dispatch import SignalDue
from tests.odcd.executor.kubernetes.test_lost_members import RUNNING, a_pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class World:
    """The database, the executor and the clock. Rank 1 cannot be reached the first times."""

    keeps_time = False
    term = 3

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.due = {0, 1, 2}
        self.tried: list[list[int]] = []
        self.recorded: list[Sent] = []
        self.slept: list[float] = []

    async def list_due_signals(self, term: int, now: datetime) -> list[SignalDue]:
        assert term == self.term
        if not self.due:
            return []
        self.tried.append([])
        ranks = tuple(sorted(self.due))
        return [SignalDue(job_id=7, attempt=1, signal=10, batch_only=False, ranks=ranks)]

    async def record_signals(self, term: int, sent: Sequence[Sent], now: datetime) -> None:
        self.recorded += sent
        self.due -= {rank for _, _, rank, trouble in sent if trouble is None}

    async def signal(self, job_id: int, attempt: int, *, rank: int, **_: object) -> None:
        self.tried[-1].append(rank)
        await asyncio.sleep(0)
        if rank == 1 and self.failures:
            self.failures -= 1
            raise RunnerDown("its node does not answer")

    def now(self) -> datetime:
        return NOW

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


def test_a_signal_is_sent_again_to_the_members_that_did_not_receive_it() -> None:
    async def work() -> World:
        world = cast("Any", World(failures=5))
        signals = Signals(world, world, world, world, 60)
        task = asyncio.create_task(signals.run())
        async with asyncio.timeout(60):
            while world.due:
                await asyncio.sleep(0)
        task.cancel()
        return cast("World", world)

    world = asyncio.run(work())
    assert world.tried == [[0, 1, 2], [1], [1], [1], [1], [1]]
    assert [one for one in world.recorded if one[3]] == [(7, 1, 1, "its node does not answer")]
    assert world.slept == [0.5, 1, 2, 4, RETRY_S[1]]


def test_an_executor_that_keeps_time_limits_sends_signals_itself() -> None:
    world = cast("Any", World(0))
    world.keeps_time = True
    asyncio.run(Signals(world, world, world, world, 60).run())
    assert world.tried == []


class Cluster:
    """Each call waits until all of them have arrived; then the answers are given."""

    def __init__(self, *answers: str | Exception | None) -> None:
        self.answers = list(answers)
        self._all = asyncio.Barrier(len(answers))

    async def execute(self, *_: object) -> str | None:
        answer = self.answers.pop()
        await self._all.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, ""),
        ("exit code 1: kill: no such process", "no such process"),
        (ApiRefused(500, Status(message="error dialing backend"), None), "error dialing backend"),
        (ApiRefused(403, Status(message="forbidden"), None), "forbidden"),
    ],
    ids=["delivered", "failed", "not reached", "refused"],
)
def test_members_are_signalled_at_the_same_time_and_a_failure_is_reported(
    answer: str | Exception | None, says: str
) -> None:
    """Before: the members were signalled one after another up to the first error, and a command
    that failed in the container counted as delivered."""

    async def work() -> str:
        pods: list[Pod] = [a_pod(RUNNING) for _ in range(3)]
        for pod in pods:
            pod.spec.containers = [cast("Any", type("C", (), {"name": "job"}))]
        try:
            async with asyncio.timeout(60):
                cluster = cast("Any", Cluster(None, answer, None))
                await send_signal(cluster, pods, 7, 10, batch_only=False)
        except Exception as error:
            return str(error)
        return ""

    assert says in asyncio.run(work())
    assert bool(says) == bool(asyncio.run(work()))
