"""Members that their nodes or other software end are lost; they have not failed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from odcd.clock import Clock
from odcd.executor.kubernetes.api_retries import insist
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cluster import ApiRefused, Status
from odcd.executor.kubernetes.ends import Ends
from odcd.executor.kubernetes.fence import Fence
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.objects import Node, Pod
from odcd.records.dispatch import Fact
from tests.support.fakes.followers import NotFollowed

KEY = (7, 1, 1)
NOBODY = cast("Any", None)
BEGAN, ENDED = "2026-01-01T12:00:00Z", "2026-01-01T12:00:40Z"
RUNNING = {"running": {"startedAt": BEGAN}}
DRAINED = {
    "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}  # fmt: skip


class Watch:
    """Time passes only by sleeping, and then at once."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, 12, 1, tzinfo=UTC)
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += timedelta(seconds=seconds)
        await asyncio.sleep(0)


class Cluster:
    """Refuses to remove pods for now."""

    def __init__(self) -> None:
        self.tries = 0

    async def remove(self, *_: object, **__: object) -> None:
        self.tries += 1
        raise ApiRefused(429, Status(message="too many requests"), 7)


def a_pod(
    state: dict[str, Any], phase: str = "Running", *, deleted: bool = False, members: int = 2,
    conditions: tuple[dict[str, Any], ...] = (),
) -> Pod:  # fmt: skip
    gone = {"deletionTimestamp": "2026-01-01T12:01:00Z", "deletionGracePeriodSeconds": 30}
    return msgspec.convert(
        {
            "metadata": {
                "name": "odc-7-1-1", "namespace": "gpu-batch", "uid": "u1",
                "annotations": {"odc.dev/members": str(members)}, **(gone if deleted else {}),
            },
            "spec": {"nodeName": "n1"},
            "status": {
                "phase": phase, "conditions": conditions,
                "containerStatuses": [{"name": "job", "state": state}],
            },
        },
        Pod,
    )  # fmt: skip


def ended(exit_code: int) -> dict[str, Any]:
    return {
        "terminated": {
            "exitCode": exit_code, "reason": "Error", "startedAt": BEGAN, "finishedAt": ENDED
        }
    }  # fmt: skip


def a_node(ready: str) -> Node:
    conditions = [{"type": "Ready", "status": ready}]
    return msgspec.convert({"metadata": {"name": "n1"}, "status": {"conditions": conditions}}, Node)


def known() -> tuple[Members, Ledger]:
    ledger = Ledger()
    members = Members(cast("Clock", Watch()), ledger)
    members.see(a_pod(RUNNING), KEY)
    return members, ledger


def facts(ledger: Ledger) -> list[Fact]:
    return [fact for fact in asyncio.run(ledger.take()) if fact.kind != "started"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"deleted": True}, "deleted by something other than odc"),
        ({"conditions": (DRAINED,)}, "EvictionByEvictionAPI"),
    ],
    ids=["deleted", "disrupted"],
)
def test_a_member_of_a_gang_that_something_else_ends_is_doomed_at_once(
    change: dict[str, Any], says: str
) -> None:
    members, ledger = known()
    members.see(a_pod(RUNNING, **change), KEY)
    [fact] = facts(ledger)
    assert fact.kind == "doomed"
    assert says in (fact.detail or "")


@pytest.mark.parametrize("why", ["alone", "ours", "condemned"])
def test_a_member_is_not_doomed_if_odc_ends_it_or_it_is_the_only_one(why: str) -> None:
    members, ledger = known()
    if why == "ours":
        members.stops[KEY[:2]] = 30
    if why == "condemned":
        members.removing.add("u1")
    members.see(a_pod(RUNNING, deleted=True, members=1 if why == "alone" else 2), KEY)
    members.see(a_pod(RUNNING), (7, 1, 0))
    assert [fact.kind for fact in facts(ledger)] == []


def test_a_doomed_member_is_lost_even_if_its_gang_was_stopped_meanwhile() -> None:
    """Rank 0 failed because of it, so odc ends the gang before this member reports its end."""
    members, ledger = known()
    members.see(a_pod(RUNNING, deleted=True), KEY)
    members.stops[KEY[:2]] = 30
    members.see(a_pod(ended(143), "Failed", deleted=True), KEY)
    assert [fact.kind for fact in facts(ledger)] == ["doomed", "lost"]


@pytest.mark.parametrize(
    ("forced", "conditions", "kind"),
    [(True, (), "lost"), (False, (DRAINED,), "lost"), (False, (), "exited")],
    ids=["node silent", "node removed", "node answers"],
)
def test_a_stopped_member_whose_node_never_confirmed_its_end_is_lost(
    forced: bool, conditions: tuple[dict[str, Any], ...], kind: str
) -> None:
    """Before: it counted as ended by the stop, so a gang that lost a node had failed."""
    members, ledger = known()
    members.stops[KEY[:2]] = 30
    members.removing.add("u1")
    if forced:
        members.forced.add("u1")
    members.forget(a_pod(RUNNING, deleted=True, conditions=conditions), KEY)
    [fact] = facts(ledger)
    assert fact.kind == kind


def the_ends(members: Members, nodes: dict[str, Node], cluster: Cluster, clock: Watch) -> Ends:
    fake = cast("Any", cluster)
    background = Background(lambda: None, cast("Clock", clock))
    time = cast("Clock", clock)
    fence = Fence(nodes, time, None, timedelta())
    return Ends(members, nodes, fake, NOBODY, background, time, 1.0, NOBODY, fence, NotFollowed())


@pytest.mark.parametrize("after", [a_node("Unknown"), None], ids=["silent", "removed"])
def test_the_members_on_a_node_that_stops_answering_are_doomed(after: Node | None) -> None:
    members, ledger = known()
    ends = the_ends(members, {}, Cluster(), Watch())
    ends.on_node(a_node("True"), a_node("True"))
    ends.on_node(a_node("True"), after)
    [fact] = facts(ledger)
    assert (fact.kind, fact.rank) == ("doomed", 1)
    assert "n1" in (fact.detail or "")


def test_a_pod_is_removed_by_force_by_one_task_however_long_it_takes() -> None:
    """Before: each second added a task, and each of them asked the API server that refuses."""

    async def work() -> int:
        clock, cluster = Watch(), Cluster()
        members = Members(cast("Clock", clock), Ledger())
        members.see(a_pod(RUNNING, deleted=True), KEY)
        ends = the_ends(members, {"n1": a_node("Unknown")}, cluster, clock)
        clock.at += timedelta(seconds=60)
        before = len(asyncio.all_tasks())
        for _ in range(20):
            ends.force()
        return len(asyncio.all_tasks()) - before

    assert asyncio.run(work()) == 1


def test_retries_wait_as_long_as_the_api_server_asks_for() -> None:
    async def work() -> list[float]:
        clock, cluster = Watch(), Cluster()
        task = asyncio.create_task(insist(cast("Clock", clock), cluster.remove))
        while cluster.tries < 3:
            await asyncio.sleep(0)
        task.cancel()
        return clock.slept

    assert asyncio.run(work())[:2] == [7, 7]
