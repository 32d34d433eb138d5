"""Judges images that cannot be pulled: some never can, and some registries deny an image only for a
moment."""

from __future__ import annotations

import re
from collections.abc import Set

from odcd.executor.kubernetes.naming import Attempt, Key
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_state import IMAGE_UNPULLED, IMAGE_WRONG, state_of

DENIED_S = 90.0
"""The default of ODC_DENIED_S: kubelet tries four times in it."""
SEVERAL = 2
SEVERAL_PART = 6
"""Nodes that are denied the same image confirm each other after this fraction of the time, in which
each of them has tried twice."""
_DENIED = re.compile(
    r"denied|unauthori[sz]ed|forbidden|authentication required|no basic auth|pull access|"
    r"authorization failed|\b40[13]\b",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"not found|manifest unknown|name unknown|does not exist|invalid reference|"
    r"no match for platform",
    re.IGNORECASE,
)
HINT = "Check its name, and that this cluster may pull it (pod template: imagePullSecrets)."


def is_missing(reason: str, message: str) -> bool:
    """Whether the image does not exist or its name is invalid: trying again is useless."""
    if reason in IMAGE_WRONG:
        return True
    return (
        reason in IMAGE_UNPULLED and not _DENIED.search(message) and bool(_MISSING.search(message))
    )


def is_denied(reason: str, message: str) -> bool:
    """Whether the registry denied access. Registries do that for a moment while their
    authentication is in trouble."""
    return reason in IMAGE_UNPULLED and bool(_DENIED.search(message))


class Denials:
    """The members whose image a registry denies, and since when."""

    def __init__(self, limit_s: float = DENIED_S) -> None:
        """limit_s: how long a registry may deny an image until the pod is given up."""
        self._limit_s = limit_s
        self._since: dict[Key, tuple[float, str, str]] = {}
        """The time, the image, the node."""

    @property
    def keys(self) -> list[Key]:
        return list(self._since)

    def note(self, pod: Pod, key: Key, now_s: float) -> None:
        """Note the state of a pod that has not started. Older kubelets do not repeat the reason
        while they wait for the next try, so that changes nothing."""
        waiting = state_of(pod).waiting
        if waiting is not None and is_denied(waiting.reason, waiting.message):
            self._since.setdefault(key, (now_s, pod.spec.containers[0].image, pod.spec.node_name))
        elif waiting is None or waiting.reason != "ImagePullBackOff":
            self._since.pop(key, None)

    def persists(self, key: Key, now_s: float) -> bool:
        """Whether the registry has denied the image for so long, or to so many nodes, that it will
        not be pulled."""
        found = self._since.get(key)
        if found is None:
            return False
        since_s, image, _ = found
        if now_s - since_s >= self._limit_s:
            return True
        nodes = {
            node
            for since_s, other, node in self._since.values()
            if other == image and now_s - since_s >= self._limit_s / SEVERAL_PART
        }
        return len(nodes) >= SEVERAL

    def forget(self, key: Key) -> None:
        self._since.pop(key, None)

    def trim(self, live: Set[Attempt]) -> None:
        for key in [key for key in self._since if key[:2] not in live]:
            del self._since[key]
