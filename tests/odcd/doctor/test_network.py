"""The canaries of `odcd doctor`: what they report for a cluster that is closed, and one that is
not."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from odcd.builds.settings import BuildSettings
from odcd.doctor.canary import LISTENS, PROBED
from odcd.doctor.examination import Examination, Templates
from odcd.doctor.host import Finding
from odcd.doctor.network import PEER, examine_network
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster, Status
from odcd.executor.kubernetes.inventory import take_inventory
from odcd.executor.kubernetes.objects import Node
from odcd.executor.kubernetes.settings import read_kubernetes
from odcd.executor.kubernetes.template import PodTemplate
from tests.support.fakes.clock import VirtualClock

Json = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class FakeCluster:
    """Pods run at once. The first member of a gang ends with what the test says it reached."""

    host = "https://203.0.113.7:6443"

    def __init__(self, reached: list[str], refused: str = "") -> None:
        self._reached = reached
        self._refused = refused
        self.pods: dict[str, Json] = {}
        self.policies: list[Json] = []
        self.removed: list[str] = []

    async def post(self, path: str, body: Json, params: Any = None) -> bytes:
        if self._refused:
            raise ApiRefused(422, Status(message=self._refused), None)
        if body["kind"] == "NetworkPolicy":
            self.policies.append(body)
        if body["kind"] == "Pod":
            self.pods[f"{path}/{body['metadata']['name']}"] = body
        return msgspec.json.encode({"metadata": {"uid": "one"}})

    async def patch(self, path: str, body: Any) -> bytes:
        return b"{}"

    async def get(self, path: str) -> bytes:
        if path.endswith("/log"):
            return f"{LISTENS}\n".encode()
        pod = self.pods.get(path)
        if pod is None:
            raise ApiRefused(404, Status(reason="NotFound"), None)
        gang = "schedulingGates" in pod["spec"]
        status: Json = {"phase": "Running", "podIP": "10.1.2.3"}
        if gang and path.endswith("-0"):
            message = "\n".join([PROBED, *self._reached])
            ended = {"exitCode": 0, "message": message}
            status = {
                "phase": "Succeeded",
                "containerStatuses": [{"name": "job", "state": {"terminated": ended}}],
            }
        return json.dumps({"metadata": pod["metadata"] | {"uid": "one"}, "status": status}).encode()

    async def delete(self, path: str, options: Mapping[str, Any]) -> bytes:
        self.removed.append(path)
        del self.pods[path]
        return b"{}"


def examination(cluster: FakeCluster, image: str = "registry.example/job:1.0") -> Examination:
    settings = read_kubernetes(None, None, {"ODC_IMAGE": image} if image else {})
    x = Examination(
        cast("Cluster", cluster), settings, Templates(jobs=PodTemplate(), dev_servers=None), 30,
        BuildSettings(),
    )  # fmt: skip
    nodes = [
        msgspec.convert(
            {
                "metadata": {"name": name, "labels": {"GpuType": "h100"}},
                "status": {
                    "allocatable": {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "8"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            },
            Node,
        )
        for name in ("one", "two", "three")
    ]
    x.nodes = {node.metadata.name: node for node in nodes}
    x.inventory = take_inventory(nodes, [], lambda _: True, {}, x.pods.terms)
    return x


def findings(cluster: FakeCluster, image: str = "registry.example/job:1.0") -> list[Finding]:
    async def all_of() -> list[Finding]:
        x = examination(cluster, image)
        return [one async for one in examine_network(x, VirtualClock(NOW), window_s=0)]

    return asyncio.run(all_of())


def test_a_closed_cluster_is_reported_as_closed() -> None:
    cluster = FakeCluster([PEER])
    found = findings(cluster)
    assert [one.verdict for one in found] == ["ok", "ok"]
    assert {re.findall(r"a job in (\S+)", one.text)[0] for one in found} == {"gpu-batch", "gpu-dev"}
    assert not cluster.pods, "the canaries are removed"
    assert len(cluster.removed) == 6
    assert len(cluster.policies) == 2, "as for every gang"


@pytest.mark.parametrize(
    "reached",
    [
        "instance metadata",
        "the API server",
        "a pod of another user in gpu-batch",
        "a pod of another user in gpu-dev",
    ],
)
def test_what_a_job_reached_is_reported(reached: str) -> None:
    cluster = FakeCluster([PEER, reached])
    found = findings(cluster)
    assert [one.verdict for one in found] == ["bad", "bad"]
    assert found[0].text == f"a job in gpu-batch reached {reached}"
    assert "plugins and modes" in (found[0].hint or "")
    assert not cluster.pods


def test_a_gang_whose_members_do_not_reach_each_other_proves_nothing() -> None:
    """Else a cluster without any network would pass."""
    found = findings(FakeCluster([]))
    assert [one.verdict for one in found] == ["bad", "bad"]
    assert "do not reach each other" in found[0].text


def test_all_that_no_job_may_reach_is_tried() -> None:
    cluster = FakeCluster([PEER])
    tried: list[str] = []
    kept = cluster.post

    async def post(path: str, body: Json, params: Any = None) -> bytes:
        if body["kind"] == "Pod":
            tried.extend(body["spec"]["containers"][0]["command"])
        return await kept(path, body, params)

    cluster.post = post  # type: ignore[method-assign]
    findings(cluster)
    for target in (
        "instance metadata=169.254.169.254=80=closed",
        "the API server=203.0.113.7=6443=closed",
        "a pod of another user in gpu-batch=10.1.2.3=8471=closed",
        "a pod of another user in gpu-dev=10.1.2.3=8471=closed",
    ):
        assert tried.count(target) == 4, "by both members of both gangs"


def test_a_doctor_that_may_not_create_pods_says_where_to_run_it() -> None:
    [found] = findings(FakeCluster([], refused="only odcd makes and changes pods in gpu-batch"))
    assert found.verdict == "note"
    assert "exec deploy/odcd" in (found.hint or "")


def test_without_a_default_image_nothing_is_created() -> None:
    cluster = FakeCluster([])
    [found] = findings(cluster, image="")
    assert found.verdict == "note"
    assert "ODC_IMAGE" in found.text
    assert not cluster.pods
