"""A node that does not accept pods is left out for a while, and longer each time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

from odcd.clock import Clock
from odcd.executor.kubernetes.cooldowns import Cooldowns
from odcd.records.node import NodeReport

WHY = "Unschedulable: 0/5 nodes are available: 1 Insufficient cpu"


class Watch:
    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


def test_a_cooldown_shows_the_message_of_the_scheduler_and_ends() -> None:
    clock = Watch()
    cooldowns = Cooldowns(cast("Clock", clock))
    assert not cooldowns.changed()
    cooldowns.begin("n1", WHY)
    assert cooldowns.changed()
    assert cooldowns.reason("n1") == (
        f"until 12:02 UTC, because Kubernetes did not schedule a pod there: {WHY}"
    )
    assert cooldowns.reason("n2") is None
    clock.at += timedelta(seconds=119)
    assert not cooldowns.changed()
    clock.at += timedelta(seconds=1)
    assert cooldowns.changed()
    assert cooldowns.reason("n1") is None


def test_repeated_cooldowns_become_longer_until_a_pod_starts_there() -> None:
    clock = Watch()
    cooldowns = Cooldowns(cast("Clock", clock))

    def lasts_s() -> float:
        cooldowns.begin("n1", WHY)
        cooldowns.begin("n1", "a second pod of the same time")
        since = clock.at
        while cooldowns.reason("n1") is not None:
            clock.at += timedelta(seconds=60)
            cooldowns.changed()
        return (clock.at - since).total_seconds()

    assert [lasts_s() for _ in range(6)] == [120, 240, 480, 960, 1800, 1800]
    cooldowns.end("n1")
    assert lasts_s() == 120


def test_a_cooldown_ends_when_pods_of_others_leave_the_node() -> None:
    """Before: a job waited two minutes more for GPUs that had become free."""
    cooldowns = Cooldowns(cast("Clock", Watch()))
    cooldowns.begin("n1", WHY)
    node = NodeReport(
        name="n1", gpu_type="h100", gpus=8, cpus=64, mem_mib=1 << 20, foreign_cpus=8
    )  # fmt: skip
    states = [cooldowns.apply(replace(node, foreign_gpus=gpus)).state for gpus in (0, 5, 5, 0)]
    assert states == ["DRAIN", "DRAIN", "DRAIN", "UP"]
