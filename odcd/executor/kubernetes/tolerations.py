"""The taints that the pods of jobs tolerate. Pods are made from this list, and nodes are judged by
it, so a node that odc plans with is one that accepts the pods of odc."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from odcd.executor.kubernetes.objects import EFA, GPU, Node, Taint

GPU_TAINTS = (GPU, EFA)
OWN_TAINTS = "odc.dev/"
"""Jobs tolerate all taints with this prefix. A pod cannot tolerate a prefix, so it tolerates those
of its node."""
SILENCE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints of nodes that do not answer. Jobs tolerate them without a time limit, because odc itself
decides when their nodes are lost: by default Kubernetes deletes a pod after five minutes."""
REPELLING = ("NoSchedule", "NoExecute")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The conditions under which a node accepts the pods of jobs. tolerations: of every pod, in the
    form of Kubernetes. selector: labels that the node must have."""

    tolerations: Sequence[Mapping[str, Any]] = ()
    selector: Mapping[str, str] = field(default_factory=dict[str, str])

    def refusal(self, node: Node) -> str | None:
        """Why the node accepts no pods of jobs; None: it does."""
        tolerations = [*self.tolerations, *_for_own_taints(own_taints(node))]
        for taint in node.spec.taints:
            if taint.effect in REPELLING and not any(_covers(one, taint) for one in tolerations):
                value = f"={taint.value}" if taint.value else ""
                return f"tainted {taint.key}{value}:{taint.effect}, which jobs do not tolerate"
        for key, value in self.selector.items():
            if node.metadata.labels.get(key) != value:
                return f"without the label {key}={value} that the pod template requires"
        return None


def tolerations_of(keys: Iterable[str], own: Iterable[str] = ()) -> list[Json]:
    """The tolerations of a pod. keys: further taints that the site's jobs tolerate. own: those of
    its node that have odc's prefix."""
    return [
        *({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in GPU_TAINTS),
        *({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys),
        *({"key": key, "operator": "Exists", "effect": "NoExecute"} for key in SILENCE),
        *_for_own_taints(own),
    ]


def own_taints(node: Node) -> tuple[str, ...]:
    """The keys of a node's taints with odc's prefix."""
    return tuple(
        sorted({taint.key for taint in node.spec.taints if taint.key.startswith(OWN_TAINTS)})
    )


def _for_own_taints(keys: Iterable[str]) -> list[Json]:
    return [{"key": key, "operator": "Exists"} for key in keys]


def _covers(toleration: Mapping[str, Any], taint: Taint) -> bool:
    """Whether a pod with the toleration may run on a node with the taint, for as long as it
    likes."""
    key, effect = toleration.get("key", ""), toleration.get("effect", "")
    operator = toleration.get("operator") or "Equal"
    if effect not in ("", taint.effect) or key not in ("", taint.key):
        return False
    if taint.effect == "NoExecute" and toleration.get("tolerationSeconds") is not None:
        return False
    if operator == "Exists":
        return True
    return operator == "Equal" and bool(key) and toleration.get("value", "") == taint.value
