"""The users and groups of a pod: its rights on shared file systems and on its node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from odcd.executor.kubernetes import dev_server_pods
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.shares import Share
from odcd.records.dispatch import Dispatch

MAPPED = frozenset({"emptyDir", "configMap", "secret"})
"""Kinds of volumes whose users can be mapped. File systems of a network cannot: a pod with such a
volume and users of its own would not start."""

Json = dict[str, Any]


def security_context_of(dispatch: Dispatch, offer: NodeOffer, groups: Iterable[int]) -> Json:
    """The security context of a job's pod. groups: the user's further groups."""
    context: Json = {"runAsUser": dispatch.uid, "runAsGroup": dispatch.gid}
    if further := sorted(set(groups) - {0, dispatch.gid}):
        context["supplementalGroups"] = further
    if offer.strict_groups:
        # Otherwise the image's /etc/group adds groups, and its user chooses the image.
        context["supplementalGroupsPolicy"] = "Strict"
    return {**context, "seccompProfile": {"type": "RuntimeDefault"}}


def has_own_users(dispatch: Dispatch, share: Share, offer: NodeOffer, spec: Json) -> bool:
    """Whether the pod gets users of its own, so that root in its container is an ordinary user of
    the node. Only dev servers have root. Nsight's counters and the locked memory of EFA need rights
    of the node's own users. spec: complete, with the additions of the site's template."""
    if not dispatch.is_dev_server or not offer.user_namespaces:
        return False
    if share.efa or dev_server_pods.profiles(dispatch, share):
        return False
    disk = None if dispatch.disk is None else dispatch.disk.claim
    return all(_is_mapped(volume, disk) for volume in spec.get("volumes", []))


def _is_mapped(volume: Json, disk: str | None) -> bool:
    """disk: the claim of the dev server's own disk, whose file system is ext4."""
    claim = volume.get("persistentVolumeClaim")
    if claim is not None:
        return disk is not None and claim.get("claimName") == disk
    return bool(MAPPED & volume.keys())
