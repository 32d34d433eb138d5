"""The fields of Kubernetes objects that odc reads; the rest of the JSON is skipped."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

MIB = 1024 * 1024
GPU = "nvidia.com/gpu"
EFA = "vpc.amazonaws.com/efa"
HUGEPAGES = "hugepages-2Mi"
DISK = "ephemeral-storage"

_QUANTITY = re.compile(r"^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?$")
_UNITS = {
    "": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12),
    "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip

Resources = dict[str, str]


class Object(msgspec.Struct, rename="camel", kw_only=True):
    """Base of all: camel case in JSON, unknown fields skipped. Never changed once read."""


class Owner(Object):
    kind: str
    name: str = ""
    uid: str = ""


class Meta(Object):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int = 0
    owner_references: list[Owner] = []


class Condition(Object):
    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class ResourceNeeds(Object):
    requests: Resources = {}


class Container(Object):
    name: str = ""
    image: str = ""
    restart_policy: str = ""
    resources: ResourceNeeds = msgspec.field(default_factory=ResourceNeeds)


class Gate(Object):
    name: str


class ClaimRef(Object):
    claim_name: str = ""


class PodVolume(Object):
    persistent_volume_claim: ClaimRef | None = None


class PodSpec(Object):
    node_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: Resources = {}
    scheduling_gates: list[Gate] = []
    volumes: list[PodVolume] = []


class Waiting(Object):
    reason: str = ""
    message: str = ""


class Running(Object):
    started_at: datetime | None = None


class Terminated(Object):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Object):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Object):
    name: str
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    last_state: ContainerState = msgspec.field(default_factory=ContainerState)
    restart_count: int = 0
    image: str = ""


class PodStatus(Object):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    reason: str = ""
    message: str = ""
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class Pod(Object):
    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def condition(self, type: str) -> Condition | None:
        return next((c for c in self.status.conditions if c.type == type), None)


class Involved(Object):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Event(Object):
    """A message of kubelet or the scheduler about an object, such as that an image is being
    pulled."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    involved_object: Involved = msgspec.field(default_factory=Involved)
    reason: str = ""
    message: str = ""
    last_timestamp: datetime | None = None
    event_time: datetime | None = None

    @property
    def key(self) -> str:
        return self.metadata.name


class Taint(Object):
    key: str
    effect: str = ""
    value: str = ""


class NodeSpec(Object):
    provider_id: str = msgspec.field(default="", name="providerID")
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeAddress(Object):
    type: str = ""
    address: str = ""


class NodeFeatures(Object):
    supplemental_groups_policy: bool = False


class HandlerFeatures(Object):
    user_namespaces: bool = False


class RuntimeHandler(Object):
    name: str = ""
    features: HandlerFeatures = msgspec.field(default_factory=HandlerFeatures)


class NodeInfo(Object):
    kernel_version: str = ""


class NodeStatus(Object):
    addresses: list[NodeAddress] = []
    features: NodeFeatures = msgspec.field(default_factory=NodeFeatures)
    runtime_handlers: list[RuntimeHandler] = []
    node_info: NodeInfo = msgspec.field(default_factory=NodeInfo)
    capacity: Resources = {}
    allocatable: Resources = {}
    conditions: list[Condition] = []


class Node(Object):
    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def key(self) -> str:
        return self.metadata.name


def quantity(text: str) -> Decimal:
    """Parse a Kubernetes quantity: 3920m, 16Gi, 1e3. Raises ValueError."""
    found = _QUANTITY.match(str(text).strip())
    try:
        if found:
            return Decimal(found[1]) * _UNITS[found[2] or ""]
    except InvalidOperation:
        pass
    raise ValueError(f'"{text}" is not an amount')


def amount(resources: Resources, name: str) -> Decimal:
    """Return 0 if it is missing or invalid."""
    try:
        return quantity(resources.get(name, "0"))
    except ValueError:
        return Decimal(0)


def requests(pod: Pod, name: str) -> Decimal:
    """The resources that the scheduler counts for a pod: its containers and sidecars together, or
    the largest init container with the sidecars before it, whichever is more; plus the overhead."""
    sidecars = Decimal(0)
    start = Decimal(0)
    for container in pod.spec.init_containers:
        requested = amount(container.resources.requests, name)
        if container.restart_policy == "Always":
            sidecars += requested
            start = max(start, sidecars)
        else:
            start = max(start, sidecars + requested)
    run = sidecars + sum(
        (amount(c.resources.requests, name) for c in pod.spec.containers), Decimal(0)
    )
    return max(run, start) + amount(pod.spec.overhead, name)


Json = dict[str, Any]
