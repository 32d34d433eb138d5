"""Features of nodes by which the users of a pod are kept apart from those of its node, and of other
pods. Kubelet reports them in a node's status."""

from __future__ import annotations

import re

from odcd.executor.kubernetes.objects import Node

LEAST_KERNEL = (6, 3)
"""The first version that maps the users of an emptyDir in memory, which every pod of odc has."""
_KERNEL = re.compile(r"^(\d+)\.(\d+)")


def has_strict_groups(node: Node) -> bool:
    """Whether supplementalGroupsPolicy Strict takes effect: kubelet refuses such a pod on other
    nodes."""
    return node.status.features.supplemental_groups_policy


def has_user_namespaces(node: Node) -> bool:
    """Whether a pod with hostUsers false can start there."""
    found = _KERNEL.match(node.status.node_info.kernel_version)
    if found is None or (int(found[1]), int(found[2])) < LEAST_KERNEL:
        return False
    # The handler without a name runs pods without a runtime class.
    return any(
        handler.name == "" and handler.features.user_namespaces
        for handler in node.status.runtime_handlers
    )
