"""Canaries are created and removed on request, and their result follows the state of the pod."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from odcd.clock import Clock
from odcd.executor.kubernetes.canaries import DOCTOR_LIMIT, OF_DOCTOR, Canaries, dispatch_of
from odcd.executor.kubernetes.cluster import ApiRefused, Status
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.naming import STARTED_AT
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.executor.kubernetes.pods import PodSettings, namespace_of, pod_of
from odcd.records.dispatch import Dispatch
from odcd.records.node import Canary, CanaryEnd

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CANARY = Canary(
    number=3, node="n1", gpu_type="h100", gpus=8, cpus=64, mem_mib=64_000,
    until=NOW + timedelta(minutes=5),
)  # fmt: skip
BEGAN, OVER = "2026-01-01T12:00:00Z", "2026-01-01T12:00:01Z"


class Cluster:
    """Records created and removed pods, and is the clock."""

    def __init__(self, refuses: bool = False) -> None:
        self._at = NOW
        self.made: list[Dispatch] = []
        self.removed: list[str] = []
        self._refuses = refuses
        self.canaries = Canaries(cast("PodWriter", self), cast("Clock", self), {})

    def now(self) -> datetime:
        return self._at

    async def make(
        self, dispatch: Dispatch, texts: Mapping[str, str], offers: Mapping[str, NodeOffer]
    ) -> None:
        assert {dispatch.script_digest, dispatch.environment_digest} <= texts.keys()
        if self._refuses:
            raise ApiRefused(403, Status(message="exceeded quota"), None)
        self.made.append(dispatch)

    async def remove(self, pod: Pod, grace_s: float) -> None:
        self.removed.append(pod.metadata.name)

    def set_pod(self, pod: Pod | None, number: int = 3) -> None:
        self.canaries.note((0, number, 0), pod)

    def attend(self, *requested: Canary, after_s: float = 0) -> list[CanaryEnd]:
        self._at = NOW + timedelta(seconds=after_s)
        return asyncio.run(self.canaries.attend(requested, 1))


def a_pod(state: dict[str, Any], phase: str = "Running", *, until: datetime = CANARY.until) -> Pod:
    return msgspec.convert(
        {
            "metadata": {"name": "odc-0-3-0", "namespace": "gpu-batch", "uid": "u",
                         "annotations": {STARTED_AT: until.isoformat()}},
            "spec": {"nodeName": "n1"},
            "status": {"phase": phase, "containerStatuses": [{"name": "job", "state": state}]},
        },
        Pod,
    )  # fmt: skip


def ended(code: int, message: str = "", **more: Any) -> Pod:
    state = {"exitCode": code, "message": message, "startedAt": BEGAN, "finishedAt": OVER, **more}
    return a_pod({"terminated": state}, "Succeeded" if code == 0 else "Failed")


def test_a_canary_is_created_once_and_removed_when_no_longer_wanted() -> None:
    cluster = Cluster()
    assert cluster.attend(CANARY) == []
    assert [made.key for made in cluster.made] == [(0, 3)]
    cluster.set_pod(a_pod({"running": {"startedAt": BEGAN}}))
    assert cluster.attend(CANARY) == []
    assert (len(cluster.made), cluster.removed) == (1, [])
    cluster.attend()
    assert cluster.removed == ["odc-0-3-0"]


@pytest.mark.parametrize(
    ("pod", "passed", "expected"),
    [
        (ended(0), True, "it ended with exit code 0"),
        (ended(6, "No devices were found"), False, "exit code 6: No devices were found"),
        (ended(137, reason="Error"), False, "signal 9: it printed nothing"),
        (a_pod({"waiting": {"reason": "ErrImagePull", "message": "manifest unknown"}}, "Pending"),
         False, "ErrImagePull: manifest unknown"),
    ],
    ids=["well", "badly", "killed", "hopeless"],
)  # fmt: skip
def test_the_result_of_a_canary_has_its_output(pod: Pod, passed: bool, expected: str) -> None:
    cluster = Cluster()
    cluster.set_pod(pod)
    [end] = cluster.attend(CANARY)
    assert (end.number, end.passed) == (3, passed)
    assert end.output.startswith(expected)


def test_a_late_canary_fails_but_one_that_ended_unobserved_does_not() -> None:
    waiting = a_pod(
        {"waiting": {"reason": "ContainerCreating", "message": "no sandbox"}}, "Pending"
    )
    cluster = Cluster()
    cluster.set_pod(waiting)
    assert cluster.attend(CANARY, after_s=299) == []
    [end] = cluster.attend(CANARY, after_s=300)
    assert (end.passed, end.output) == (
        False, "it did not finish in time: ContainerCreating: no sandbox",
    )  # fmt: skip
    cluster.set_pod(ended(0))
    assert cluster.attend(CANARY, after_s=900)[0].passed


def test_a_refused_canary_is_retried_until_its_deadline() -> None:
    cluster = Cluster(refuses=True)
    assert cluster.attend(CANARY) == []
    [end] = cluster.attend(CANARY, after_s=300)
    assert not end.passed
    assert "exceeded quota" in end.output


def test_a_canary_of_another_database_with_the_same_number_is_ignored() -> None:
    cluster = Cluster()
    cluster.set_pod(a_pod({"running": {"startedAt": BEGAN}}, until=NOW - timedelta(days=1)))
    assert cluster.attend(CANARY) == []
    assert (cluster.made, cluster.removed) == ([], ["odc-0-3-0"])
    cluster.set_pod(None)
    cluster.attend(CANARY)
    assert len(cluster.made) == 1


@pytest.mark.parametrize(("gpus", "asks"), [(8, "1"), (1, "1"), (0, None)])
def test_a_canary_takes_one_gpu_and_no_efa(gpus: int, asks: str | None) -> None:
    canary = replace(CANARY, gpus=gpus, cpus=4, mem_mib=512)
    dispatch = dispatch_of(canary, 1)
    offers = {"n1": NodeOffer(gpus=gpus, efa=0, hugepages_mib=0)}
    pod = pod_of(dispatch, dispatch.members[0], {}, offers, PodSettings(image="x:1"))
    assert namespace_of(dispatch, offers, PodSettings().namespaces) == "gpu-batch"
    assert pod["spec"]["containers"][0]["resources"]["limits"].get("nvidia.com/gpu") == asks
    assert pod["spec"]["containers"][0]["resources"]["requests"]["memory"] == "512Mi"


def test_the_pods_of_a_doctor_are_left_alone_until_it_must_have_ended() -> None:
    """`odcd doctor --canaries` removes its own pods. The leader removes those of one that was
    killed."""
    cluster = Cluster()
    for rank in range(2):
        name = f"odc-0-{OF_DOCTOR}-{rank}"
        pod = msgspec.convert(
            {"metadata": {"name": name, "namespace": "gpu-batch", "creationTimestamp": BEGAN}}, Pod
        )
        cluster.canaries.note((0, OF_DOCTOR, rank), pod)
    cluster.attend(after_s=DOCTOR_LIMIT.total_seconds())
    assert cluster.removed == []
    cluster.attend(after_s=DOCTOR_LIMIT.total_seconds() + 1)
    assert cluster.removed == [f"odc-0-{OF_DOCTOR}-0", f"odc-0-{OF_DOCTOR}-1"]
    cluster.canaries.note((0, OF_DOCTOR, 0), None)
    cluster.canaries.note((0, OF_DOCTOR, 1), None)
    cluster.attend(after_s=10_000)
    assert len(cluster.removed) == 2
