"""A refused start is retried, and given up when its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, cast

import msgspec
import pytest

from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cluster import ApiRefused, Status
from odcd.executor.kubernetes.launch import command
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import Key
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.executor.kubernetes.starts import Budgets, Starts
from odcd.records.dev_server import DevServerKeys
from odcd.records.dispatch import Dispatch, Fact
from tests.support.builders.dispatches import a_dispatch_of

NOBODY = cast("Any", None)


async def no_keys(dispatch: Dispatch) -> DevServerKeys | None:
    return None


class Hasty:
    """Time passes only by sleeping, and then at once."""

    def __init__(self) -> None:
        self._slept_s = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._slept_s)

    def monotonic(self) -> float:
        return self._slept_s

    async def sleep(self, seconds: float) -> None:
        self._slept_s += seconds
        await asyncio.sleep(0)


class OverQuota:
    """Refuses every pod with a temporary error; before the refusal, the order is sent again."""

    def __init__(self, clock: Hasty) -> None:
        self._clock = clock
        self.tries: list[float] = []
        self.send = lambda: None

    async def make(self, *_: object) -> None:
        self.tries.append(self._clock.monotonic())
        self.send()
        raise ApiRefused(403, Status(message="exceeded quota: jobs"), None)

    async def find_member(self, key: Key) -> None:
        """The pod was never created."""


async def no_port(dispatch: Dispatch, port: int, addresses: Sequence[str]) -> None: ...


def the_starts(clock: Hasty, ledger: Ledger, maker: OverQuota, background: Background) -> Starts:
    return Starts(
        Members(clock, ledger), NOBODY, {}, cast("PodWriter", maker), background, clock,
        lambda: True, Budgets(schedule_s=60), no_keys, no_port,
    )  # fmt: skip


@pytest.mark.parametrize("sent_again", [False, True])
def test_a_repeated_start_keeps_its_deadline(sent_again: bool) -> None:
    async def work() -> tuple[list[Fact], list[float]]:
        clock, ledger = Hasty(), Ledger()
        maker = OverQuota(clock)
        background = Background(ledger.wake, clock)
        starts = the_starts(clock, ledger, maker, background)
        dispatch, texts = a_dispatch_of()
        starts.order([dispatch], texts)
        if sent_again:
            maker.send = lambda: starts.order([dispatch], texts)
        for name, loop in starts.works().items():
            background.keep(name, loop)
        try:
            async with asyncio.timeout(60):
                return await ledger.take(), maker.tries
        finally:
            await background.close()

    facts, tries = asyncio.run(work())
    assert [(fact.kind, fact.cause) for fact in facts] == [("start_failed", "launch")]
    assert 60 <= tries[-1] <= 70, "the last pause may be as long as 10 s"
    pauses = [after - before for before, after in pairwise(tries)]
    assert pauses[:4] == pytest.approx([0.2, 0.4, 0.8, 1.6])


def test_a_job_whose_output_path_is_too_long_fails_with_the_reason() -> None:
    """Unnoticed, the error would end the worker, and with it the daemon."""

    class Writes(OverQuota):
        async def make(self, *given: object) -> None:
            dispatch = cast("Dispatch", given[0])
            command(dispatch, dispatch.members[0])

    async def work() -> list[Fact]:
        clock, ledger = Hasty(), Ledger()
        background = Background(ledger.wake, clock)
        starts = the_starts(clock, ledger, Writes(clock), background)
        dispatch, texts = a_dispatch_of(stdout="%N" * 1000)
        starts.order([dispatch], texts)
        for name, loop in starts.works().items():
            background.keep(name, loop)
        try:
            async with asyncio.timeout(60):
                return await ledger.take()
        finally:
            await background.close()

    (fact,) = asyncio.run(work())
    assert (fact.kind, fact.cause) == ("start_failed", None)
    assert "more than 4095 bytes" in (fact.detail or "")


def test_why_shows_the_refusal_of_the_pods() -> None:
    """Before: a job whose rights were removed stayed CONFIGURING without a message."""

    async def work() -> list[str]:
        clock, ledger = Hasty(), Ledger()
        maker = OverQuota(clock)
        background = Background(ledger.wake, clock)
        starts = the_starts(clock, ledger, maker, background)
        dispatch, texts = a_dispatch_of()
        starts.order([dispatch], texts)
        assert starts.waits(dispatch.job_id) == []
        for name, loop in starts.works().items():
            background.keep(name, loop)
        try:
            async with asyncio.timeout(60):
                while not maker.tries:
                    await asyncio.sleep(0)
                await asyncio.sleep(0)
            return starts.waits(dispatch.job_id)
        finally:
            await background.close()

    assert asyncio.run(work()) == ["its pods cannot be created yet: exceeded quota: jobs"]


class Condemning:
    def __init__(self) -> None:
        self.why: list[str | None] = []

    def condemn(self, pod: Pod, key: Key, fact: Fact) -> None:
        self.why.append(fact.detail)


def a_dev_server(state: dict[str, Any], node: str = "n1") -> Pod:
    """The pod of a dev server, created ten minutes ago."""
    return msgspec.convert(
        {
            "metadata": {
                "name": "odc-7-1-0", "labels": {"odc.dev/kind": "reservation"},
                "creationTimestamp": "2025-12-31T23:50:00Z",
            },
            "spec": {"nodeName": node},
            "status": {
                "phase": "Pending", "containerStatuses": [{"name": "gpu-dev", "state": state}],
            },
        },
        Pod,
    )  # fmt: skip


PULLING = {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (a_dev_server(PULLING), None),
        (a_dev_server(PULLING, node=""), "within 60 s"),
        (a_dev_server({"running": {"startedAt": "2025-12-31T23:59:30Z"}}), None),
        (
            a_dev_server({"running": {"startedAt": "2025-12-31T23:57:00Z"}}),
            "SSH server does not answer",
        ),
    ],
    ids=["pulls-for-long", "no-node", "runs-since-now", "ssh-is-dead"],
)
def test_each_phase_of_a_start_has_its_own_time_limit(pod: Pod, why: str | None) -> None:
    """BUG-25, BUG-36, LIF-17: a long pull does not shorten the time for SSH."""
    members, ends = Members(Hasty(), Ledger()), Condemning()
    members.knows = True
    members.see(pod, (7, 1, 0))
    Starts(
        members, cast("Any", ends), {}, NOBODY, NOBODY, Hasty(), lambda: True,
        Budgets(schedule_s=60, start_s=1800, ready_s=120), no_keys, no_port,
    ).judge()  # fmt: skip
    assert [why in str(reason) for reason in ends.why] == ([] if why is None else [True]), ends.why


@pytest.mark.parametrize(("claim", "budget_s"), [("odc-volume-12", 660), ("data", 60)])
def test_a_pod_waits_longer_for_its_node_while_its_disk_is_made(claim: str, budget_s: int) -> None:
    """The volume is created while the pod exists: a slow cloud does not make a start fail."""
    clock, ledger, ends = Hasty(), Ledger(), Condemning()
    members = Members(clock, ledger)
    starts = Starts(
        members, cast("Any", ends), {}, NOBODY, Background(ledger.wake, clock), clock, lambda: True,
        Budgets(schedule_s=60, disk_s=600), no_keys, no_port,
    )  # fmt: skip
    pod = {
        "metadata": {
            "name": "odc-1-1-0", "namespace": "gpu-dev", "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app.kubernetes.io/managed-by": "odcd"},
        },
        "spec": {"volumes": [{"persistentVolumeClaim": {"claimName": claim}}]},
        "status": {"phase": "Pending"},
    }  # fmt: skip
    members.see(msgspec.convert(pod, Pod), (1, 1, 0))
    asyncio.run(clock.sleep(budget_s))
    starts.judge()
    assert ends.why == []
    asyncio.run(clock.sleep(1))
    starts.judge()
    assert len(ends.why) == 1
