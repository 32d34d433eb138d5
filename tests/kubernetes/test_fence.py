"""The fence between jobs on a real API server: networks of gangs, identities, and what is reported
when a cluster lacks a feature."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from odcd.executor.kubernetes import networks
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.degradations import find_degradations
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.objects import Node
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.executor.kubernetes.pods import PodSettings, pod_of
from odcd.records.dispatch import Dispatch
from tests.support.builders.dispatches import a_dispatch_of, a_member
from tests.support.builders.pods import DEV_SERVER, SMALL, changed
from tests.support.harness.controlplane.api import Api
from tests.support.harness.controlplane.children import wait_until
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.kube import Kube

pytestmark = pytest.mark.long

Json = dict[str, Any]
OFFER = NodeOffer(gpus=8, efa=0, hugepages_mib=0)
SETTINGS = PodSettings(image="registry.example/job:1.0", dev_image="registry.example/dev:1.0")
PATIENCE_S = 120


def a_gang(node: str = "one") -> tuple[Dispatch, dict[str, str]]:
    members = tuple(a_member(rank, node=node, virtual=False, cpus=1) for rank in range(2))
    dispatch, texts = a_dispatch_of(members=members, uid=1001, gid=100, job_id=7)
    return dispatch, dict(texts)


def a_network() -> Json:
    dispatch, _ = a_gang()
    names = [f"odc-7-{dispatch.attempt}-{rank}" for rank in range(2)]
    return networks.policy_of(dispatch, "gpu-batch", dict.fromkeys(names, "uid"))


def test_the_network_of_a_gang_is_admitted(odcd: Kube) -> None:
    assert odcd.refusal(a_network()) == ""
    assert odcd.refusal(changed(a_network(), "metadata/namespace", "gpu-dev")) == ""


EVERYONE: Json = {"podSelector": {}}
WIDER: dict[str, tuple[str, object, str]] = {
    "all pods": ("spec/podSelector", {}, "pods of one attempt"),
    "another job's pods": ("spec/podSelector/matchLabels/odc.dev~1job-id", "8", "one attempt"),
    "any other pods": (
        "spec/podSelector/matchExpressions",
        [{"key": "odc.dev/job-id", "operator": "Exists"}], "one attempt",
    ),
    "from everyone": ("spec/ingress/0/from", [EVERYONE], "opens nothing else"),
    "from everyone else, too": ("spec/ingress/0/from/1", EVERYONE, "opens nothing else"),
    "from any peer": ("spec/ingress/0", {}, "opens nothing else"),
    "from another namespace": (
        "spec/ingress/0/from/0/namespaceSelector", {}, "opens nothing else",
    ),
    "to the metadata of the instance": (
        "spec/egress/0/to", [{"ipBlock": {"cidr": "169.254.169.254/32"}}], "opens nothing else",
    ),
    "to a second list": ("spec/egress/1", {"to": [EVERYONE]}, "opens nothing else"),
    "another name": ("metadata/name", "jobs", "is named"),
    "another's name": ("metadata/name", "odc-8-1-0123456789", "is named"),
    "without an owner": ("metadata/ownerReferences", None, "belongs to the pods"),
}  # fmt: skip


@pytest.mark.parametrize("how", WIDER)
def test_a_network_that_opens_more_is_refused(odcd: Kube, how: str) -> None:
    path, value, reason = WIDER[how]
    refusal = odcd.refusal(changed(a_network(), path, value))
    assert reason in refusal, refusal or "admitted"


def test_the_identities_of_pods_are_admitted(odcd: Kube) -> None:
    pod = changed(SMALL, "spec/securityContext/supplementalGroups", [6001, 6002])
    pod = changed(pod, "spec/securityContext/supplementalGroupsPolicy", "Strict")
    assert odcd.refusal(pod) == ""
    assert odcd.refusal(changed(DEV_SERVER, "spec/hostUsers", False)) == ""
    root = changed(SMALL, "spec/securityContext/supplementalGroups", [6001, 0])
    assert "group 0" in odcd.refusal(root)


@pytest.fixture
def kubeconfig(shared_plane: ControlPlane, installed: Kube) -> Path:
    return shared_plane.account_kubeconfig("gpu-controlplane", "odcd")


def test_the_network_of_a_gang_ends_with_the_last_of_its_pods(
    kubeconfig: Path, api: Api, nodes: Callable[..., list[str]]
) -> None:
    """The API server's own collector removes it; odcd may not."""
    [node] = nodes(h100=1)
    dispatch, texts = a_gang(node)

    async def make() -> None:
        cluster = await Cluster.connect(kubeconfig, None)
        try:
            writer = PodWriter(cluster, SETTINGS)
            await writer.make(dispatch, texts, {node: OFFER})
            await writer.make(dispatch, texts, {node: OFFER})
        finally:
            await cluster.close()

    asyncio.run(make())
    path = networks.path_of("gpu-batch")
    [name] = [one["metadata"]["name"] for one in api.items(path) if "odc-7-" in str(one)]
    pods = [f"/api/v1/namespaces/gpu-batch/pods/odc-7-{dispatch.attempt}-{n}" for n in range(2)]
    api.delete(f"{pods[0]}?gracePeriodSeconds=0")

    def owners() -> list[str]:
        found = [one for one in api.items(path) if one["metadata"]["name"] == name]
        return [o["name"] for one in found for o in one["metadata"]["ownerReferences"]]

    wait_until(lambda: len(owners()) == 1, "the first owner to go", PATIENCE_S)
    api.delete(f"{pods[1]}?gracePeriodSeconds=0")
    wait_until(lambda: not owners(), "the network to go", PATIENCE_S)


def test_a_cluster_with_all_features_lacks_only_those_of_its_nodes(kubeconfig: Path) -> None:
    able = {
        "features": {"supplementalGroupsPolicy": True},
        "runtimeHandlers": [{"name": "", "features": {"userNamespaces": True}}],
        "nodeInfo": {"kernelVersion": "6.12.0"},
    }
    one = msgspec.convert({"metadata": {"name": "a"}, "status": able}, Node)
    other = msgspec.convert({"metadata": {"name": "b"}}, Node)

    async def find(settings: PodSettings, *nodes: Node) -> list[str]:
        cluster = await Cluster.connect(kubeconfig, None)
        try:
            return [found.lacks for found in await find_degradations(cluster, settings, nodes)]
        finally:
            await cluster.close()

    assert asyncio.run(find(SETTINGS, one)) == []
    some = asyncio.run(find(SETTINGS, one, other))
    assert [text.partition(":")[0] for text in some] == ["1 of 2 nodes (b)"] * 2
    assert len(asyncio.run(find(replace(SETTINGS, user_namespaces=False), other))) == 1


def test_a_job_and_a_dev_server_are_admitted_with_every_feature(odcd: Kube) -> None:
    offer = replace(OFFER, strict_groups=True, user_namespaces=True)
    for kind, ask in (("batch", None), ("reservation", {})):
        member = a_member(0, node="one", virtual=False, cpus=1)
        dispatch, _ = a_dispatch_of(members=(member,), uid=1001, gid=100, kind=kind, ask=ask)
        pod = pod_of(dispatch, member, {}, {"one": offer}, SETTINGS)
        assert odcd.refusal(pod) == ""
