"""Check that odcd has the rights it needs in a Kubernetes cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from odcd.doctor.builds import MANIFESTS
from odcd.doctor.examination import Examination
from odcd.doctor.host import Finding
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.objects import Object
from odcd.executor.kubernetes.settings import KubernetesSettings

CHANGES = ("create", "get", "delete")

Right = tuple[str, str, str, str]


class _Review(Object):
    class Status(Object):
        allowed: bool = False
        reason: str = ""

    status: Status = msgspec.field(default_factory=lambda: _Review.Status())


async def examine_rights(x: Examination) -> AsyncIterator[Finding]:
    """Check each right that the executor uses, and one that no one should have."""
    needed = _needed(x.settings)
    answers = await asyncio.gather(*(_may(x.cluster, *right) for right in needed))
    missing = [
        _described(*right) for right, allowed in zip(needed, answers, strict=True) if not allowed
    ]
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
            text=f"odcd has all {len(needed)} rights that the executor needs",
        )
    namespace = x.settings.namespace_batch
    if await _may(x.cluster, namespace, "list", "secrets", ""):
        yield Finding(
            about="rights",
            verdict="note",
            text=f"odcd may list the secrets of {namespace}, which it never does",
            hint="Give odcd its own account, with the roles of k8s/base/accounts.yaml.",
        )


def _needed(own: KubernetesSettings) -> list[Right]:
    """Every right that the executor uses, as (namespace, verb, resource, subresource)."""
    rights = [("", verb, kind, "") for kind in ("nodes", "pods") for verb in ("list", "watch")]
    for namespace in (own.namespace_batch, own.namespace_dev):
        rights += [(namespace, verb, "pods", "") for verb in ("get", "create", "patch", "delete")]
        rights += [
            (namespace, "get", "pods", "log"),
            (namespace, "create", "pods", "exec"),
            (namespace, "create", "configmaps", ""),
            (namespace, "create", "networkpolicies.networking.k8s.io", ""),
        ]
    rights += [
        (own.namespace_dev, "create", "secrets", ""),
        (own.namespace_dev, "list", "events", ""),
        (own.namespace_dev, "watch", "events", ""),
        (own.namespace_dev, "create", "pods", "portforward"),
        *[(own.namespace_dev, verb, "persistentvolumeclaims", "") for verb in CHANGES],
        *[("", verb, "persistentvolumes", "") for verb in CHANGES],
    ]
    return rights


async def _may(cluster: Cluster, namespace: str, verb: str, resource: str, sub: str) -> bool:
    kind, _, group = resource.partition(".")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "namespace": namespace, "verb": verb, "group": group, "resource": kind,
                "subresource": sub,
            }
        },
    }  # fmt: skip
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await cluster.post(path, review)
    return msgspec.json.decode(answer, type=_Review).status.allowed


def _described(namespace: str, verb: str, resource: str, sub: str) -> str:
    where = f" in {namespace}" if namespace else ""
    return f"{verb} {resource}{'/' + sub if sub else ''}{where}"
