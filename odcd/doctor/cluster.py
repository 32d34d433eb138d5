"""Checks what the daemon needs of a Kubernetes cluster. Only the canaries create anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import msgspec

from odcd.builds.settings import BuildSettings
from odcd.doctor.builds import MANIFESTS, examine_builds
from odcd.doctor.database_zones import examine_zones
from odcd.doctor.examination import Examination, Templates
from odcd.doctor.features import examine_features
from odcd.doctor.host import Finding
from odcd.doctor.network import examine_network
from odcd.doctor.nodes import examine_nodes
from odcd.doctor.pods import examine_pods
from odcd.doctor.rights import examine_rights
from odcd.errors import OdcError
from odcd.executor.kubernetes import naming
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.groups import read_groups
from odcd.executor.kubernetes.objects import Meta, Object
from odcd.executor.kubernetes.pods import PRIORITY_CLASS, SERVICE_ACCOUNT
from odcd.executor.kubernetes.settings import KubernetesSettings
from odcd.executor.kubernetes.template import PodTemplate, read_dev_template, read_template

OLDEST = (1, 31)
"""The oldest version that the manifests support."""
LEVEL = "pod-security.kubernetes.io/enforce"


class _Version(Object):
    major: str
    minor: str
    git_version: str


class _Named(Object):
    metadata: Meta


Check = Callable[[Examination], AsyncIterator[Finding]]


async def examine_cluster(
    settings: KubernetesSettings,
    grace_s: int,
    builds: BuildSettings | None = None,
    *,
    canaries: bool = False,
) -> list[Finding]:
    """canaries: run pods that prove the network fence."""
    found: list[Finding] = []
    try:
        templates = _templates(settings)
        cluster = await Cluster.connect(settings.kubeconfig, settings.context)
    except OdcError as error:
        return [Finding(about="cluster", verdict="bad", text=error.message, hint=error.hint)]
    examination = Examination(cluster, settings, templates, grace_s, builds or BuildSettings())
    checks: dict[str, Check] = {
        "server": _server,
        "rights": examine_rights,
        "objects": _objects,
        "image": _image,
        "nodes": examine_nodes,
        "admission": _admission,
        "builds": _builds,
        "features": examine_features,
        "database": examine_zones,
        "network": examine_network if canaries else _network,
    }
    try:
        for name, check in checks.items():
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


def _templates(settings: KubernetesSettings) -> Templates:
    """Also checks the file of groups, like the daemon at its start. Raises BadRequest."""
    jobs, dev = PodTemplate(), None
    if settings.pod_template is not None:
        jobs = read_template(settings.pod_template)
    if settings.dev_pod_template is not None:
        dev = read_dev_template(settings.dev_pod_template, jobs)
    if settings.group_file is not None:
        read_groups(settings.group_file)
    return Templates(jobs=jobs, dev_servers=dev)


async def _server(x: Examination) -> AsyncIterator[Finding]:
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


async def _objects(x: Examination) -> AsyncIterator[Finding]:
    """Check the namespaces and the objects that pods refer to."""
    named = {x.settings.namespace_batch: "baseline", x.settings.namespace_dev: "privileged"}
    present = True
    for namespace, level in named.items():
        paths = [
            f"/api/v1/namespaces/{namespace}",
            f"/api/v1/namespaces/{namespace}/services/{naming.service(namespace)}",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{SERVICE_ACCOUNT}",
        ]
        for path in paths:
            what = path.removeprefix("/api/v1/").replace("/", " ").removesuffix("s")
            try:
                answer = await x.cluster.get(path)
            except ApiRefused as error:
                present = False
                yield _absent(what, error)
                continue
            labels = msgspec.json.decode(answer, type=_Named).metadata.labels
            if path == paths[0] and labels.get(LEVEL) != level:
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


async def _image(x: Examination) -> AsyncIterator[Finding]:
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


async def _admission(x: Examination) -> AsyncIterator[Finding]:
    async for finding in examine_pods(x.cluster, x.pods, x.inventory, x.nodes):
        yield finding


async def _network(_: Examination) -> AsyncIterator[Finding]:
    yield Finding(
        about="network",
        verdict="note",
        text="not tried: --canaries runs pods that try to reach what no job may reach",
    )


async def _builds(x: Examination) -> AsyncIterator[Finding]:
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
