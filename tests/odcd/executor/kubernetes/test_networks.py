"""Which pods reach each other, by the shipped policies and those of gangs, as Kubernetes reads
them. Policies add up; a pod that any of them selects is closed except for what they open."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import yaml

from odcd.executor.kubernetes import networks
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.executor.kubernetes.pods import PodSettings, pod_of
from odcd.records.dispatch import Dispatch
from tests.support.builders.dispatches import a_dispatch_of, a_member

Json = dict[str, Any]
K8S = Path(__file__).parents[4] / "k8s"
BASE = K8S / "base" / "networks-jobs.yaml"
SETTINGS = PodSettings(image="registry.example/job:1.0", dev_image="registry.example/dev:1.0")
OFFER = NodeOffer(gpus=8, efa=0, hugepages_mib=0)
PAIR = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}


def shipped() -> list[Json]:
    return list(yaml.safe_load_all(BASE.read_text()))


def dispatch_of(job_id: int, count: int, kind: str = "batch") -> Dispatch:
    members = tuple(a_member(rank, virtual=False, cpus=1) for rank in range(count))
    dispatch, _ = a_dispatch_of(
        job_id=job_id, members=members, uid=1000 + job_id, gid=100, kind=kind,
        ask={} if kind == "reservation" else None,
    )  # fmt: skip
    return dispatch


def pods_of(dispatch: Dispatch) -> list[Json]:
    offers = {member.node: OFFER for member in dispatch.members}
    return [pod_of(dispatch, member, {}, offers, SETTINGS) for member in dispatch.members]


def network_of(dispatch: Dispatch) -> list[Json]:
    pods = pods_of(dispatch)
    if not networks.has_network(dispatch):
        return []
    owners = {pod["metadata"]["name"]: f"uid-{number}" for number, pod in enumerate(pods)}
    return [networks.policy_of(dispatch, pods[0]["metadata"]["namespace"], owners)]


def selects(selector: Json, labels: Mapping[str, str]) -> bool:
    for one in selector.get("matchExpressions", []):
        assert one["operator"] == "DoesNotExist"
        if one["key"] in labels:
            return False
    return selector.get("matchLabels", {}).items() <= labels.items()


def opens(policies: list[Json], pod: Json, peer: Json, direction: str) -> bool:
    """Whether the policies let the pod exchange packets with the peer in one direction."""
    rules, side = PAIR[direction]
    space, labels = pod["metadata"]["namespace"], pod["metadata"]["labels"]
    on_pod = [
        policy["spec"]
        for policy in policies
        if policy["metadata"]["namespace"] == space
        and direction in policy["spec"]["policyTypes"]
        and selects(policy["spec"]["podSelector"], labels)
    ]
    assert on_pod, "a pod that no policy selects is open to all"
    return any(
        selects(one["podSelector"], peer["metadata"]["labels"])
        and "namespaceSelector" not in one
        and peer["metadata"]["namespace"] == space
        for spec in on_pod
        for rule in spec.get(rules, [])
        for one in rule.get(side, [])
        if "podSelector" in one
    )


def reaches(policies: list[Json], pod: Json, peer: Json) -> bool:
    return opens(policies, pod, peer, "Egress") and opens(policies, peer, pod, "Ingress")


@pytest.mark.parametrize("kind", ["batch", "reservation"])
def test_members_of_a_gang_reach_each_other_and_no_one_else(kind: str) -> None:
    """MNE-07, ACC-22: on all ports, 29500 among them."""
    gang, other, single = dispatch_of(1, 3, kind), dispatch_of(2, 2, kind), dispatch_of(3, 1, kind)
    server = dispatch_of(4, 1, "reservation")
    policies = [*shipped(), *network_of(gang), *network_of(other)]
    assert "ports" not in str(network_of(gang))
    [first, *rest] = pods_of(gang)
    for member in rest:
        assert reaches(policies, first, member)
        assert reaches(policies, member, first)
    strangers = [*pods_of(other), *pods_of(single), *pods_of(server)]
    for stranger in strangers:
        assert not reaches(policies, first, stranger)
        assert not reaches(policies, stranger, first)
    assert not reaches(policies, strangers[-1], strangers[-2]), "single pods have no network"


def test_only_odcd_and_its_standby_reach_the_database() -> None:
    """SEC-04: the control plane admits nothing by default; PostgreSQL adds itself and the daemon,
    from its own namespace."""
    texts = [(K8S / path).read_text() for path in (
        "base/networks-controlplane.yaml", "components/postgresql/networks.yaml"
    )]  # fmt: skip
    policies = [one for text in texts for one in yaml.safe_load_all(text)]
    specs = {one["metadata"]["name"]: one["spec"] for one in policies}
    assert specs["default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    database = {"app.kubernetes.io/name": "postgresql"}
    to_it = [
        one["spec"]["ingress"]
        for one in policies
        if one["spec"].get("ingress")
        and one["spec"]["podSelector"].get("matchLabels") in ({}, None, database)
    ]
    [[rule]] = to_it
    assert rule["ports"] == [{"port": 5432, "protocol": "TCP"}]
    assert rule["from"] == [
        {"podSelector": {"matchLabels": database}},
        {"podSelector": specs["odcd"]["podSelector"]},
    ]


def test_namespaces_have_pod_security_and_quotas() -> None:
    """SEC-09: of dev servers the policy odc-pods, because they have root in their containers."""
    documents = list(yaml.safe_load_all((K8S / "base/namespaces.yaml").read_text()))
    level = "pod-security.kubernetes.io/enforce"
    assert {one["metadata"]["name"]: one["metadata"]["labels"][level] for one in documents} == {
        "gpu-controlplane": "restricted", "gpu-batch": "baseline", "gpu-dev": "privileged",
    }  # fmt: skip
    quotas = list(yaml.safe_load_all((K8S / "base/quotas.yaml").read_text()))
    assert {one["metadata"]["namespace"] for one in quotas} == {"gpu-batch", "gpu-dev"}
    for one in quotas:
        assert one["spec"]["hard"] == {"services.loadbalancers": "0", "services.nodeports": "0"}


def test_another_attempt_of_the_same_job_is_another_network() -> None:
    """A pod of the last attempt may still be ending."""
    gang = dispatch_of(1, 2)
    [policy] = network_of(gang)
    chosen = policy["spec"]["podSelector"]["matchLabels"]
    assert chosen["odc.dev/attempt"] == str(gang.attempt)


def test_pods_of_an_older_daemon_reach_each_other_until_they_end() -> None:
    """They have no label, and their gangs no policies: applying the manifests does not cut them."""
    old = pods_of(dispatch_of(1, 2))
    for pod in old:
        del pod["metadata"]["labels"]["odc.dev/network"]
    new = pods_of(dispatch_of(2, 1))
    assert reaches(shipped(), old[0], old[1])
    assert not reaches(shipped(), new[0], old[0])
    assert not reaches(shipped(), old[0], new[0])


def test_a_network_ends_with_the_last_member() -> None:
    """Rank 0 may end first, while the others still exchange data."""
    [policy] = network_of(dispatch_of(1, 3))
    assert len(policy["metadata"]["ownerReferences"]) == 3


class Recording:
    def __init__(self) -> None:
        self.calls: list[str] = []

    async def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        self.calls.append(f"make {body['kind']}")
        return msgspec.json.encode({"metadata": {"uid": "one"}})

    async def patch(self, path: str, body: Any) -> bytes:
        self.calls.append("open the gate")
        return b"{}"


def test_the_network_exists_before_any_member_of_a_gang_may_start() -> None:
    dispatch, texts = a_dispatch_of(
        members=tuple(a_member(rank, virtual=False, cpus=1) for rank in range(2)), uid=1001, gid=100
    )
    recording = Recording()
    writer = PodWriter(cast("Cluster", recording), SETTINGS)
    asyncio.run(writer.make(dispatch, texts, {m.node: OFFER for m in dispatch.members}))
    assert recording.calls.index("make NetworkPolicy") < recording.calls.index("open the gate")


def test_a_job_of_one_pod_needs_no_further_request() -> None:
    dispatch, texts = a_dispatch_of(
        members=(a_member(0, virtual=False, cpus=1),), uid=1001, gid=100
    )
    recording = Recording()
    writer = PodWriter(cast("Cluster", recording), SETTINGS)
    asyncio.run(writer.make(dispatch, texts, {m.node: OFFER for m in dispatch.members}))
    assert "make NetworkPolicy" not in recording.calls
