"""Recognizes ends of pods that the node or the cluster caused, and not the job."""

from __future__ import annotations

import re

from odcd.executor.kubernetes.objects import Condition, Pod, Terminated

LOST = frozenset({
    "Evicted", "Preempting", "Preempted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated",
})  # fmt: skip
"""Reasons that mean that the node or the system ended the pod, not the job."""
BY_NODE = LOST - {"Evicted", "Preempting", "Preempted"} | {
    "DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet",
}  # fmt: skip
"""Of these, and of the reasons of the condition DisruptionTarget, those that point to a fault of
the node."""
NOT_ADMITTED = frozenset({
    "UnexpectedAdmissionError", "TopologyAffinityError", "NodeAffinity", "NodeName", "NodePorts",
    "NodeUnschedulable", "TaintToleration", "InvalidNodeInfo",
})  # fmt: skip
"""Reasons for which kubelet refuses a pod. After a restart it refuses pods that ran before."""
FULL = "OutOf"
"""The prefix of the reasons for which kubelet refuses a pod that does not fit: OutOfcpu."""
WITHOUT_DEVICES = frozenset({"UnexpectedAdmissionError", "TopologyAffinityError"})
UNLOCATED = "ContainerStatusUnknown"
"""The reason of a container that kubelet could not find again."""
UNKNOWN, UNKNOWN_CODE = "Unknown", 255
"""The reason and exit code of a container that the runtime could not find again, as after a
reboot."""
_OWN_STORAGE = re.compile(
    r"exceeded its local ephemeral storage limit|ephemeral local storage usage exceeds|"
    r"Usage of EmptyDir volume .* exceeds the limit",
    re.IGNORECASE,
)
"""Evictions of a pod that uses more than its own limits, however much the node has left."""


def lost_by(pod: Pod) -> str | None:
    """Why the system ended it; None: it did not."""
    status = pod.status
    if over_storage(pod) is not None:
        return None
    if status.reason in LOST or status.reason in NOT_ADMITTED or status.reason.startswith(FULL):
        return f"{status.reason}: {status.message}".removesuffix(": ")
    return disrupted_by(pod)


def disrupted_by(pod: Pod) -> str | None:
    """Why the cluster is ending it, or has ended it; None: it is not."""
    disruption = _disruption(pod)
    if disruption is None:
        return None
    return f"{disruption.reason}: {disruption.message}".removesuffix(": ")


def doomed_by(pod: Pod) -> str | None:
    """Why the pod will be lost, if odc did not delete it; None: it will not."""
    if why := disrupted_by(pod):
        return why
    deleted = pod.metadata.deletion_timestamp is not None
    return "its pod was deleted by something other than odc" if deleted else None


def over_storage(pod: Pod) -> str | None:
    """The message of kubelet if it evicted the pod for using more storage than its own limits."""
    status = pod.status
    evicted = status.reason == "Evicted" and _OWN_STORAGE.search(status.message)
    return f"{status.reason}: {status.message.strip()}" if evicted else None


def is_unknown(ended: Terminated) -> bool:
    """Whether it is unknown how the container ended: its exit code was made up."""
    unknown = ended.reason == UNKNOWN and ended.exit_code == UNKNOWN_CODE
    return unknown or ended.reason == UNLOCATED


def by_node(pod: Pod) -> bool:
    """Whether the node ended it, rather than a person or controller that wanted it removed."""
    disruption = _disruption(pod)
    by = disruption.reason if disruption is not None else ""
    return pod.status.reason in BY_NODE | WITHOUT_DEVICES or by in BY_NODE


def _disruption(pod: Pod) -> Condition | None:
    found = pod.condition("DisruptionTarget")
    return found if found is not None and found.status == "True" else None
