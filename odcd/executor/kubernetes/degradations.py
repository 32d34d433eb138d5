"""The APIs, feature gates and features of nodes that a cluster lacks, and the effect of each.

`odcd doctor` reports them, and a daemon logs them once when it leads and sees a node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from odcd.errors import OdcError
from odcd.executor.kubernetes import canaries, naming, node_features
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.objects import Node, Object
from odcd.executor.kubernetes.pod_settings import PodSettings
from odcd.executor.kubernetes.pods import pod_of
from odcd.records.node import Canary

log = logging.getLogger(__name__)

NOT_FOUND = 404
SHOWN = 3
APIS = {
    "networking.k8s.io/v1": (
        "networkpolicies",
        "jobs of different users reach each other, and instance metadata",
    ),
    "admissionregistration.k8s.io/v1": (
        "validatingadmissionpolicies",
        "a pod in odc's namespaces may have any rights",
    ),
    "policy/v1": ("poddisruptionbudgets", "an upgrade of nodes may stop all replicas of odcd"),
}
"""Resources by API group and version, and what is worse without them."""
FIELDS = {
    ("schedulingGates",): (
        "PodSchedulingReadiness",
        "members of a gang may start before all of its pods exist",
    ),
    ("hostUsers",): (
        "UserNamespacesSupport",
        "root in a dev server is root on its node, if it escapes from its container",
    ),
    ("securityContext", "supplementalGroupsPolicy"): (
        "SupplementalGroupsPolicy",
        "an image chooses the groups of its jobs on shared file systems",
    ),
}
"""Fields of a pod's spec that an API server drops without their feature gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    lacks: str
    effect: str


class _Resource(Object):
    name: str = ""


class _Resources(Object):
    resources: list[_Resource] = msgspec.field(default_factory=list[_Resource])


class _Answer(Object):
    spec: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Degradations:
    """Logs them once per term: as soon as the cluster has a node."""

    def __init__(self, cluster: Cluster, settings: PodSettings, background: Background) -> None:
        self._cluster = cluster
        self._settings = settings
        self._background = background
        self._logged = False

    def log_once(self, nodes: Mapping[str, Node]) -> None:
        if self._logged or not nodes:
            return
        self._logged = True
        work = log_degradations(self._cluster, self._settings, list(nodes.values()))
        self._background.spawn(work)


async def find_degradations(
    cluster: Cluster, settings: PodSettings, nodes: Collection[Node]
) -> list[Degradation]:
    """Creates nothing: fields are tried by a dry run. Raises ApiRefused, RunnerDown."""
    apis = await asyncio.gather(*(_missing_api(cluster, group) for group in APIS))
    found = [one for one in apis if one is not None]
    found += await _missing_fields(cluster, settings, nodes)
    return [*found, *of_nodes(nodes, settings)]


async def log_degradations(
    cluster: Cluster, settings: PodSettings, nodes: Collection[Node]
) -> None:
    """Never fails: the daemon works without the answer."""
    try:
        found = await find_degradations(cluster, settings, nodes)
    except (ApiRefused, OdcError) as error:
        log.warning("kubernetes.features_unknown", extra={"why": error.message})
        return
    for one in found:
        log.warning("kubernetes.degraded", extra={"lacks": one.lacks, "effect": one.effect})


async def _missing_api(cluster: Cluster, group: str) -> Degradation | None:
    resource, effect = APIS[group]
    try:
        body = await cluster.get(f"/apis/{group}")
    except ApiRefused as error:
        if error.status != NOT_FOUND:
            raise
    else:
        served = msgspec.json.decode(body, type=_Resources).resources
        if any(one.name == resource for one in served):
            return None
    return Degradation(lacks=f"the API {resource}.{group}", effect=effect)


async def _missing_fields(
    cluster: Cluster, settings: PodSettings, nodes: Iterable[Node]
) -> list[Degradation]:
    name = next((node.metadata.name for node in nodes), None)
    if name is None:
        return []
    pod = _trial(settings, name)
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
    body = await cluster.post(path, pod, [("dryRun", "All")])
    spec = msgspec.json.decode(body, type=_Answer).spec
    return [
        Degradation(lacks=f"the feature gate {gate} of the API server", effect=effect)
        for field, (gate, effect) in FIELDS.items()
        if not _has(spec, field)
    ]


def _trial(settings: PodSettings, node: str) -> dict[str, Any]:
    """A job's pod with all of the fields."""
    canary = Canary(
        number=1, node=node, gpu_type="", gpus=0, cpus=1, mem_mib=canaries.MEM_MIB,
        until=datetime(2000, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    dispatch = canaries.dispatch_of(canary, 0)
    offers = {node: NodeOffer(gpus=0, efa=0, hugepages_mib=0, strict_groups=True)}
    pod = pod_of(dispatch, dispatch.members[0], {}, offers, settings)
    pod["spec"] |= {"hostUsers": False, "schedulingGates": [{"name": naming.GATE}]}
    return pod


def _has(spec: object, field: Sequence[str]) -> bool:
    for key in field:
        if not isinstance(spec, dict) or key not in spec:
            return False
        spec = spec[key]  # pyright: ignore[reportUnknownVariableType]
    return True


def of_nodes(nodes: Iterable[Node], settings: PodSettings) -> list[Degradation]:
    """Features that only some nodes have, or none."""
    every = list(nodes)
    checks = [
        (
            [node for node in every if not node_features.has_strict_groups(node)],
            "supplementalGroupsPolicy (containerd 2.0, CRI-O 1.31)",
            "there, an image chooses the groups of its jobs on shared file systems",
        )
    ]
    if settings.user_namespaces:
        checks.append(
            (
                [node for node in every if not node_features.has_user_namespaces(node)],
                "user namespaces (containerd 2.0 or CRI-O 1.25, runc 1.2, Linux 6.3)",
                "there, root in a dev server is root on the node, if it escapes its container",
            )
        )
    return [
        Degradation(lacks=f"{_counted(lacking, len(every))}: {feature}", effect=effect)
        for lacking, feature, effect in checks
        if lacking
    ]


def _counted(lacking: Sequence[Node], of: int) -> str:
    names = ", ".join(sorted(node.metadata.name for node in lacking)[:SHOWN])
    more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    return f"{len(lacking)} of {of} nodes ({names}{more})"
