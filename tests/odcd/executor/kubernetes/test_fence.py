"""A job does not run elsewhere before its silent node is certain to be off."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.contents import Contents
from odcd.executor.kubernetes.ends import Ends
from odcd.executor.kubernetes.fence import RETRY_S, Fence
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.objects import Node
from tests.odcd.executor.kubernetes.test_lost_members import KEY, RUNNING, a_pod
from tests.support.fakes.followers import NotFollowed

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
MACHINE = "aws:///us-east-2a/i-0123456789abcdef0"
GRACE = timedelta(seconds=120)


def a_node(ready: str) -> Node:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return msgspec.convert(
        {
            "metadata": {"name": "n1"}, "spec": {"providerID": MACHINE},
            "status": {"conditions": [condition]},
        },
        Node,
    )  # fmt: skip


class World:
    """The clock, the cloud and the API server; done: what happened, with the seconds since the node
    fell silent. After returns_s, the node answers again."""

    def __init__(self, refusals: int = 0, returns_s: float | None = None) -> None:
        self.at_s = 0.0
        self.done: list[tuple[float, str]] = []
        self.nodes = {"n1": a_node("Unknown")}
        self._refusals = refusals
        self._returns_s = returns_s

    def now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.at_s)

    def monotonic(self) -> float:
        return self.at_s

    async def sleep(self, seconds: float) -> None:
        self.at_s += seconds
        if self._returns_s is not None and self.at_s >= self._returns_s:
            self.nodes["n1"] = a_node("True")
        await asyncio.sleep(0)

    async def fence(self, machine: str) -> None:
        assert machine == MACHINE
        self.done.append((self.at_s, "fence"))
        if self._refusals:
            self._refusals -= 1
            raise RunnerDown("AWS does not answer")

    async def taint(self, node_name: str) -> None:
        self.done.append((self.at_s, f"taint {node_name}"))

    async def untaint(self, node_name: str) -> None:
        self.done.append((self.at_s, f"untaint {node_name}"))

    async def remove(self, pod: object, grace_s: float, **_: object) -> None:
        self.done.append((self.at_s, f"remove with grace {grace_s:g}"))

    async def keep(self, *_: object, **more: Any) -> None:
        if "on_open" in more:
            more["on_open"]()


def happens(world: World, *, again: bool, configured: bool = True) -> list[tuple[float, str]]:
    """When the attempt of a pod on a silent node must end."""

    async def work() -> list[tuple[float, str]]:
        clock, fake, ledger = cast("Clock", world), cast("Any", world), Ledger()
        members, background = Members(clock, ledger), Background(ledger.wake, clock)
        members.see(a_pod(RUNNING), KEY)
        fence = Fence(world.nodes, clock, fake if configured else None, GRACE, fake)
        contents = cast("Contents", fake)
        ends = Ends(
            members, world.nodes, fake, fake, background, clock, 1.0, contents, fence, NotFollowed()
        )
        members.expect_live([KEY])
        ends.stop(KEY[:2], 30, again=again)
        async with asyncio.timeout(60):
            while not any(what.startswith("remove") for _, what in world.done):
                await asyncio.sleep(0)
        await background.close()
        return world.done

    return asyncio.run(work())


def test_a_silent_node_is_fenced_after_its_grace_and_before_its_pods_are_removed() -> None:
    found = happens(World(), again=True)
    assert found == [(120, "fence"), (120, "taint n1"), (120, "remove with grace 0")]


def test_nothing_is_removed_until_the_fence_is_certain() -> None:
    found = happens(World(refusals=2), again=True)
    at = [120, 120 + RETRY_S, 120 + 2 * RETRY_S]
    done = [(at[-1], "taint n1"), (at[-1], "remove with grace 0")]
    assert found == [*((s, "fence") for s in at), *done]


def test_a_node_that_comes_back_is_not_fenced_and_ends_its_pods_itself() -> None:
    assert happens(World(returns_s=60), again=True) == [(60, "remove with grace 30")]


@pytest.mark.parametrize(("again", "configured"), [(False, True), (True, False)], ids=str)
def test_a_node_is_fenced_only_for_jobs_that_may_run_again_and_if_configured(
    again: bool, configured: bool
) -> None:
    found = happens(World(), again=again, configured=configured)
    assert found == [(0, "remove with grace 0")]
