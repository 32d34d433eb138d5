"""Checks what the daemon needs of a Kubernetes cluster, without changing anything."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import msgspec

from odcd.builds.settings import BuildSettings
from odcd.doctor.builds import MANIFESTS, examine_builds
from odcd.doctor.host import Finding
from odcd.doctor.pods import examine_pods
from odcd.errors import OdcError
from odcd.executor.kubernetes import naming
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.inventory import Inventory, offer_of, take_inventory
from odcd.executor.kubernetes.objects import GPU, Meta, Node, Object, Pod, amount
from odcd.executor.kubernetes.pods import PRIORITY_CLASS, SERVICE_ACCOUNT, PodSettings
from odcd.executor.kubernetes.settings import KubernetesSettings
from odcd.executor.kubernetes.shares import EFA_HUGEPAGES_MIB
from odcd.executor.kubernetes.template import PodTemplate, read_template

OLDEST = (1, 31)
"""The oldest version that the manifests support."""
CHANGES = ("create", "get", "delete")
PAGE = 5000
EXAMPLE_IMAGE = "registry.example/job:1.0"
LEVEL = "pod-security.kubernetes.io/enforce"


class _Version(Object):
    major: str
    minor: str
    git_version: str


class _Named(Object):
    metadata: Meta


class _Nodes(Object):
    items: list[Node]


class _Pods(Object):
    items: list[Pod]


class _Review(Object):
    class Status(Object):
        allowed: bool = False
        reason: str = ""

    status: Status = msgspec.field(default_factory=lambda: _Review.Status())


Check = Callable[["_Examination"], AsyncIterator[Finding]]


async def examine_cluster(
    settings: KubernetesSettings, grace_s: int, builds: BuildSettings | None = None
) -> list[Finding]:
    found: list[Finding] = []
    try:
        template = PodTemplate()
        if settings.pod_template is not None:
            template = read_template(settings.pod_template)
        cluster = await Cluster.connect(settings.kubeconfig, settings.context)
    except OdcError as error:
        return [Finding(about="cluster", verdict="bad", text=error.message, hint=error.hint)]
    examination = _Examination(cluster, settings, template, grace_s, builds or BuildSettings())
    try:
        for check in (_server, _rights, _objects, _image, _nodes, _admission, _builds):
            name = check.__name__.removeprefix("_")
            try:
                async for finding in check(examination):
                    found.append(finding)
            except ApiRefused as error:
                found.append(_refused(name, error))
            except OdcError as error:
                found.append(
                    Finding(about=name, verdict="bad", text=error.message, hint=error.hint)
                )
                break
    finally:
        await cluster.close()
    return found


class _Examination:
    def __init__(
        self, cluster: Cluster, settings: KubernetesSettings, template: PodTemplate, grace_s: int,
        builds: BuildSettings,
    ) -> None:  # fmt: skip
        self.builds = builds
        self.cluster = cluster
        self.settings = settings
        self.pods = PodSettings(
            namespaces=settings.namespaces,
            image=settings.image or EXAMPLE_IMAGE,
            dev_image=settings.dev_image or EXAMPLE_IMAGE,
            cluster_domain=settings.cluster_domain,
            grace_s=grace_s,
            tolerated=settings.tolerated,
            template=template,
        )
        self.inventory = Inventory()
        self.nodes: dict[str, Node] = {}


async def _server(x: _Examination) -> AsyncIterator[Finding]:
    version = msgspec.json.decode(await x.cluster.get("/version"), type=_Version)
    text = f"Kubernetes {version.git_version} at {x.cluster.host}"
    numbers = (int(version.major), int("".join(c for c in version.minor if c.isdigit()) or 0))
    if numbers < OLDEST:
        yield Finding(
            about="cluster",
            verdict="bad",
            text=text,
            hint=f"odc needs {OLDEST[0]}.{OLDEST[1]} or newer.",
        )
    else:
        yield Finding(about="cluster", verdict="ok", text=text)


async def _rights(x: _Examination) -> AsyncIterator[Finding]:
    """Check each right that the executor uses, and one that no one should have."""
    own = x.settings
    asked = [("", verb, kind, "") for kind in ("nodes", "pods") for verb in ("list", "watch")]
    for namespace in (own.namespace_batch, own.namespace_dev):
        asked += [(namespace, verb, "pods", "") for verb in ("get", "create", "patch", "delete")]
        asked += [
            (namespace, "get", "pods", "log"),
            (namespace, "create", "pods", "exec"),
            (namespace, "create", "configmaps", ""),
        ]
    asked += [
        (own.namespace_dev, "create", "secrets", ""),
        (own.namespace_dev, "list", "events", ""),
        (own.namespace_dev, "watch", "events", ""),
        (own.namespace_dev, "create", "pods", "portforward"),
        *[(own.namespace_dev, verb, "persistentvolumeclaims", "") for verb in CHANGES],
        *[("", verb, "persistentvolumes", "") for verb in CHANGES],
    ]
    answers = await asyncio.gather(*(_may(x.cluster, *one) for one in asked))
    missing = [_told(*one) for one, allowed in zip(asked, answers, strict=True) if not allowed]
    if missing:
        yield Finding(
            about="rights",
            verdict="bad",
            text=f"odcd may not {', '.join(missing)}",
            hint=f"Bind the roles of k8s/base/accounts.yaml. {MANIFESTS}",
        )
    else:
        yield Finding(
            about="rights",
            verdict="ok",
            text=f"odcd has all {len(asked)} rights that the executor needs",
        )
    if await _may(x.cluster, own.namespace_batch, "list", "secrets", ""):
        yield Finding(
            about="rights",
            verdict="note",
            text=f"odcd may list the secrets of {own.namespace_batch}, which it never does",
            hint="Give odcd its own account, with the roles of k8s/base/accounts.yaml.",
        )


async def _may(cluster: Cluster, namespace: str, verb: str, resource: str, sub: str) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "namespace": namespace, "verb": verb, "resource": resource, "subresource": sub,
            }
        },
    }  # fmt: skip
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await cluster.post(path, review)
    return msgspec.json.decode(answer, type=_Review).status.allowed


def _told(namespace: str, verb: str, resource: str, sub: str) -> str:
    where = f" in {namespace}" if namespace else ""
    return f"{verb} {resource}{'/' + sub if sub else ''}{where}"


async def _objects(x: _Examination) -> AsyncIterator[Finding]:
    """Check the namespaces and the objects that pods refer to."""
    named = {x.settings.namespace_batch: "baseline", x.settings.namespace_dev: "privileged"}
    present = True
    for namespace, level in named.items():
        wanted = [
            f"/api/v1/namespaces/{namespace}",
            f"/api/v1/namespaces/{namespace}/services/{naming.service(namespace)}",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{SERVICE_ACCOUNT}",
        ]
        for path in wanted:
            what = path.removeprefix("/api/v1/").replace("/", " ").removesuffix("s")
            try:
                answer = await x.cluster.get(path)
            except ApiRefused as error:
                present = False
                yield _absent(what, error)
                continue
            labels = msgspec.json.decode(answer, type=_Named).metadata.labels
            if path == wanted[0] and labels.get(LEVEL) != level:
                yield Finding(
                    about="namespace",
                    verdict="note",
                    text=f"{namespace} enforces Pod Security level {labels.get(LEVEL, 'none')}, "
                    f"but the manifests set {level}",
                    hint="With a lower level, only the admission policies restrict its pods.",
                )
    try:
        await x.cluster.get(f"/apis/scheduling.k8s.io/v1/priorityclasses/{PRIORITY_CLASS}")
    except ApiRefused as error:
        present = False
        yield _absent(f"priorityclass {PRIORITY_CLASS}", error)
    if present:
        yield Finding(
            about="objects", verdict="ok", text="namespaces, services, accounts, priority class"
        )


async def _image(x: _Examination) -> AsyncIterator[Finding]:
    if x.settings.image is None:
        yield Finding(
            about="image",
            verdict="note",
            text="there is no default image: every job must name one with --container-image",
            hint="Set ODC_IMAGE to an image with a digest or a fixed tag.",
        )
    else:
        yield Finding(
            about="image", verdict="ok", text=f"{x.settings.image}, for jobs that name no image"
        )
    if x.settings.dev_image is None:
        yield Finding(
            about="image",
            verdict="note",
            text="dev servers have no default image: all must name one with --dockerimage",
            hint="Set ODC_DEV_IMAGE to an image with a digest or a fixed tag.",
        )
    else:
        yield Finding(
            about="image",
            verdict="ok",
            text=f"{x.settings.dev_image}, for dev servers that name no image",
        )


async def _nodes(x: _Examination) -> AsyncIterator[Finding]:
    nodes = msgspec.json.decode(
        await x.cluster.get("/api/v1/nodes", [("limit", PAGE)]), type=_Nodes
    ).items
    pods = msgspec.json.decode(
        await x.cluster.get("/api/v1/pods", [("limit", PAGE)]), type=_Pods
    ).items
    x.nodes = {node.metadata.name: node for node in nodes}
    x.inventory = take_inventory(
        nodes, pods, lambda pod: naming.key_of(pod) is not None, {}, x.settings.tolerated
    )
    taken = x.inventory.nodes
    if not taken:
        yield Finding(
            about="nodes",
            verdict="bad",
            text=f"none of the cluster's {len(nodes)} nodes can run jobs",
            hint="Control-plane nodes and those labelled odc.dev/ignore are left out.",
        )
    else:
        kinds = Counter((n.gpu_type, n.gpus) for n in taken)
        told = ", ".join(f"{c} x {t} with {g} GPUs" for (t, g), c in sorted(kinds.items()))
        yield Finding(about="nodes", verdict="ok", text=told)
    for name, why in sorted(x.inventory.left_out.items()):
        yield Finding(about="node", verdict="note", text=f"{name} is left out: {why}")
    for state, verdict in (("DOWN", "down"), ("DRAIN", "accepts no jobs")):
        for node in [n for n in taken if n.state == state][:20]:
            yield Finding(
                about="node", verdict="note", text=f"{node.name} {verdict}: {node.reason}"
            )
    for node in taken:
        raw = x.nodes[node.name]
        if raw.metadata.labels.get("nvidia.com/gpu.present") == "true" and not amount(
            raw.status.allocatable, GPU
        ):
            yield Finding(
                about="node",
                verdict="note",
                text=f"{node.name} has GPUs but offers none to pods",
                hint="Check that NVIDIA's device plugin runs there.",
            )
        offer = offer_of(raw)
        if offer.efa and offer.hugepages_mib < EFA_HUGEPAGES_MIB:
            yield Finding(
                about="node",
                verdict="note",
                text=f"{node.name} has EFA and {offer.hugepages_mib} MiB of huge pages; jobs get "
                f"none below {EFA_HUGEPAGES_MIB}",
                hint="Reserve 5128 pages of 2 MiB before kubelet starts.",
            )


async def _admission(x: _Examination) -> AsyncIterator[Finding]:
    async for finding in examine_pods(x.cluster, x.pods, x.inventory, x.nodes):
        yield finding


async def _builds(x: _Examination) -> AsyncIterator[Finding]:
    async for finding in examine_builds(x.cluster, x.builds):
        yield finding


def _absent(what: str, error: ApiRefused) -> Finding:
    if error.status == 404:
        return Finding(
            about="objects", verdict="bad", text=f"{what} does not exist", hint=MANIFESTS
        )
    return replace(_refused("objects", error), verdict="note")


def _refused(about: str, error: ApiRefused) -> Finding:
    hint = (
        "Check that the token or certificate of the kubeconfig is valid."
        if error.status == 401
        else None
    )
    return Finding(about=about, verdict="bad", text=error.message, hint=hint)
