"""Starts that take too long: whose fault it is, and what follows for the node."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cooldowns import Cooldowns
from odcd.executor.kubernetes.image_pulls import Denials
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import Key
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.starts import Budgets, Starts
from odcd.records.dispatch import Fact
from tests.odcd.executor.kubernetes.test_starts import NOBODY, Hasty, no_keys, no_port

KEY = (7, 1, 0)
FULL = "0/5 nodes are available: 1 Insufficient cpu"


class Ends:
    def __init__(self, members: Members) -> None:
        self._members = members
        self.condemned: list[Fact] = []

    def look(self, pod: Pod, key: Key) -> None:
        hopeless = self._members.see(pod, key)
        if hopeless is not None:
            self.condemn(pod, key, hopeless)

    def condemn(self, pod: Pod, key: Key, fact: Fact) -> None:
        self.condemned.append(fact)


class Stage:
    def __init__(self) -> None:
        self.clock = Hasty()
        ledger = Ledger()
        self.members = Members(self.clock, ledger, Denials(30))
        self.ends = Ends(self.members)
        self.cooldowns = Cooldowns(self.clock)
        self.starts = Starts(
            self.members, cast("Any", self.ends), {}, NOBODY,
            Background(ledger.wake, self.clock), self.clock, lambda: True,
            Budgets(schedule_s=60, start_s=1800), no_keys, no_port, self.cooldowns,
        )  # fmt: skip

    def wait(self, seconds: float) -> None:
        asyncio.run(self.clock.sleep(seconds))
        self.starts.judge()


def a_pod(
    message: str | None, *, gated: bool = False, waiting: dict[str, str] | None = None
) -> Pod:  # fmt: skip
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                 "message": message}  # fmt: skip
    return msgspec.convert(
        {
            "metadata": {
                "name": "odc-7-1-0", "namespace": "gpu-batch", "uid": "u",
                "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {"odc.dev/node": "n1"},
            },
            "spec": {
                "nodeName": "n1" if waiting else "",
                "containers": [{"name": "job", "image": "x:1"}],
                "schedulingGates": [{"name": "odc.dev/gang"}] if gated else [],
            },
            "status": {
                "phase": "Pending", "conditions": [scheduled] if message else [],
                "containerStatuses": [{"name": "job", "state": {"waiting": waiting}}]
                if waiting else [],
            },
        },
        Pod,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("message", "gated", "cause", "cools"),
    [
        (FULL, False, "unscheduled", True),
        (None, False, "unscheduled", False),
        ('persistentvolumeclaim "data" not found', False, "launch", False),
        ("Scheduling is blocked due to non-empty scheduling gates", True, "launch", False),
    ],
    ids=["full", "no scheduler", "no volume", "gated"],
)
def test_a_node_cools_down_when_the_scheduler_refuses_it(
    message: str | None, gated: bool, cause: str, cools: bool
) -> None:
    stage = Stage()
    stage.members.see(a_pod(message, gated=gated), KEY)
    stage.wait(60)
    assert stage.ends.condemned == []
    stage.wait(1)
    [fact] = stage.ends.condemned
    assert (fact.cause, fact.suspect) == (cause, cools)
    assert (FULL in (stage.cooldowns.reason("n1") or "")) == cools


def test_a_denied_image_is_given_up_though_its_pod_does_not_change() -> None:
    """While kubelet waits for its next try, the pod's status stays as it is."""
    stage = Stage()
    waiting = {"reason": "ErrImagePull", "message": "403 Forbidden"}
    stage.members.see(a_pod(None, waiting=waiting), KEY)
    stage.wait(29)
    assert stage.ends.condemned == []
    stage.wait(1)
    [fact] = stage.ends.condemned
    assert (fact.kind, fact.cause) == ("start_failed", None)
    assert "403 Forbidden" in (fact.detail or "")
