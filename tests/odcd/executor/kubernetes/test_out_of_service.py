"""A fenced node is tainted as out of service, so its volumes are released, until it is back."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest

from odcd.clock import Clock
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster, Status
from odcd.executor.kubernetes.fence import Fence
from odcd.executor.kubernetes.objects import Node
from odcd.executor.kubernetes.out_of_service import TAINT, TRIES, OutOfService
from tests.odcd.executor.kubernetes.test_lost_members import Watch

OTHER = {"key": "site", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
BY_HAND = {"key": TAINT["key"], "value": "nodeshutdown", "effect": "NoExecute"}


def a_node(ready: str, *taints: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": "n1", "resourceVersion": "7"}, "spec": {"taints": list(taints)},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }  # fmt: skip


class Api:
    def __init__(self, node: dict[str, Any], *refusals: int) -> None:
        self.node = node
        self.patches: list[dict[str, Any]] = []
        self.tries = 0
        self._refusals = list(refusals)

    async def get(self, path: str) -> bytes:
        assert path == "/api/v1/nodes/n1"
        return json.dumps(self.node).encode()

    async def patch(self, path: str, body: dict[str, Any]) -> bytes:
        self.tries += 1
        if self._refusals:
            raise ApiRefused(self._refusals.pop(0), Status(message="no"), None)
        self.patches.append(body)
        self.node["spec"] |= body["spec"]
        return b""


def change(api: Api, *, back: bool) -> None:
    marks = OutOfService(cast("Cluster", api), cast("Clock", Watch()))
    asyncio.run(marks.untaint("n1") if back else marks.taint("n1"))


def test_a_node_that_is_off_is_tainted_and_keeps_its_other_taints() -> None:
    api = Api(a_node("Unknown", OTHER))
    change(api, back=False)
    assert api.node["spec"]["taints"] == [OTHER, TAINT]
    assert api.patches[0]["metadata"] == {"resourceVersion": "7"}
    change(api, back=False)
    assert len(api.patches) == 1, "it is tainted already"


def test_a_node_that_answers_again_is_never_tainted() -> None:
    api = Api(a_node("True"))
    change(api, back=False)
    assert not api.patches


def test_the_taint_of_a_node_that_is_back_is_removed_but_not_one_of_a_person() -> None:
    api = Api(a_node("True", OTHER, TAINT))
    change(api, back=True)
    assert api.node["spec"]["taints"] == [OTHER]
    api = Api(a_node("True", BY_HAND))
    change(api, back=True)
    assert not api.patches


def test_a_conflict_is_tried_again_and_a_refusal_is_not() -> None:
    api = Api(a_node("Unknown"), 409, 500)
    change(api, back=False)
    assert len(api.patches) == 1
    for refusals, tries in (((403,), 1), ((500,) * 9, TRIES)):
        api = Api(a_node("Unknown"), *refusals)
        change(api, back=False)
        assert (len(api.patches), api.tries) == (0, tries)


@pytest.mark.parametrize(
    ("ready", "taints", "expected"),
    [("True", (TAINT,), True), ("Unknown", (TAINT,), False), ("True", (BY_HAND,), False)],
    ids=["back", "off", "by-hand"],
)
def test_a_fenced_node_is_reopened_when_it_answers(
    ready: str, taints: tuple[dict[str, str], ...], expected: bool
) -> None:
    node = msgspec.convert(a_node(ready, *taints), Node)
    fence = Fence({}, cast("Clock", Watch()), None, timedelta(), cast("Any", Watch()))
    assert fence.must_reopen(node) is expected
