"""What a pod's status says of its member: that it runs, how it ended, or why it never will."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from odcd.executor.kubernetes.naming import GATE, Key
from odcd.executor.kubernetes.objects import ContainerState, Pod, Terminated
from odcd.model import Cause, Fact, FactKind

CONTAINER = "job"
FRESH = timedelta(seconds=2)
"""Kubelet's times are whole seconds; of what is so new the moment we learnt of it is closer."""
MAX_DETAIL = 2000
LAST_SIGNAL = 64

LOST = frozenset({
    "Evicted", "Preempting", "Preempted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated",
})  # fmt: skip
"""Reasons of a pod that its node or the system ended, not the job."""
BY_NODE = LOST - {"Evicted", "Preempting", "Preempted"} | {
    "DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet",
}  # fmt: skip
"""Of these, and of reasons of the condition DisruptionTarget, what speaks against the node."""
EARLY = timedelta(seconds=120)
"""What fails so soon after its start may have failed by its node."""
_NODES_FAULT = re.compile(
    r"nvidia|nvml|\bcdi\b|hook|cgroup|no space left|read-only file system|input/output error|"
    r"cannot allocate memory|sandbox|failed to start shim|device or resource busy",
    re.IGNORECASE,
)
"""What container runtimes say when it is the machine, and neither the image nor the job."""
UNKNOWN_END = frozenset({"ContainerStatusUnknown"})
NEVER_RAN = frozenset({"StartError", "ContainerCannotRun"})
IMAGE_WRONG = frozenset({"InvalidImageName", "ErrImageNeverPull"})
IMAGE_UNPULLED = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})
CONTAINER_WRONG = frozenset({"CreateContainerConfigError", "CreateContainerError"})
_FOR_GOOD = re.compile(
    r"not found|manifest unknown|name unknown|denied|unauthori[sz]ed|forbidden|authentication "
    r"required|no basic auth|does not exist|invalid reference|no match for platform|"
    r"pull access",
    re.IGNORECASE,
)
_IN_PASSING = re.compile(r"timeout|timed out|deadline exceeded|configmap .odc-", re.IGNORECASE)
IMAGE_HINT = (
    "Is its name right, and may this cluster pull it (imagePullSecrets in the pod template)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """begun: its process runs, or did. end: it holds nothing any more. hopeless: it will never
    run; to be removed, and then this is its end. waits: what an unstarted pod waits for."""

    begun: Fact | None = None
    end: Fact | None = None
    hopeless: Fact | None = None
    waits: str | None = None


def read_pod(pod: Pod, key: Key, now: datetime) -> Seen:
    state = _state(pod)
    started_at = _started_at(state)
    begun = _fact(key, "started", _moment(started_at, now)) if started_at else None
    if pod.status.phase in ("Succeeded", "Failed"):
        return Seen(begun=begun, end=_end(pod, key, state, now))
    if begun:
        return Seen(begun=begun)
    if state.waiting is not None:
        told = f"{state.waiting.reason}: {state.waiting.message}".removesuffix(": ")
        if _is_hopeless(state.waiting.reason, state.waiting.message):
            hopeless = _fact(
                key, "start_failed", now, detail=_explain(told),
                suspect=state.waiting.reason in CONTAINER_WRONG and _names_node(told),
            )  # fmt: skip
            return Seen(hopeless=hopeless, waits=told)
        return Seen(waits=told)
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False" and scheduled.message:
        return Seen(waits=f"{scheduled.reason}: {scheduled.message}")
    return Seen(waits=None)


def message_of(pod: Pod) -> str:
    """What its container left as its last words."""
    ended = _state(pod).terminated
    return ended.message if ended else ""


def is_gated(pod: Pod) -> bool:
    return any(gate.name == GATE for gate in pod.spec.scheduling_gates)


def vanished(pod: Pod, key: Key, now: datetime) -> Fact:
    """The end of a pod that was removed before it told of one."""
    who = "the cluster removed its pod"
    disruption = pod.condition("DisruptionTarget")
    if disruption is not None and disruption.status == "True":
        who = f"{disruption.reason}: {disruption.message}".removesuffix(": ")
    suspect = _by_node(pod)
    if _started_at(_state(pod)):
        return _fact(key, "lost", now, detail=who, suspect=suspect)
    return _fact(
        key, "start_failed", now, cause="launch", detail=f"{who} before it started", suspect=suspect
    )


def by_delete(pod: Pod, end: Fact) -> Fact:
    """The end of a pod that others deleted: what TERM and KILL did was not the job's doing."""
    gone_at = pod.metadata.deletion_timestamp
    if gone_at is None or end.kind != "exited" or end.cause or end.exit_code == 0:
        return end
    asked_at = gone_at - timedelta(seconds=pod.metadata.deletion_grace_period_seconds)
    ended = _state(pod).terminated
    if ended is None or ended.finished_at is None or ended.finished_at < asked_at:
        return end
    key = (end.job_id, end.attempt, end.rank)
    return _fact(key, "lost", end.at, detail="its pod was deleted, and not by odc")


def late(pod: Pod, key: Key, now: datetime, waits: str | None, budget_s: float) -> Fact:
    """The end of a start that took too long."""
    told = waits or ("no node took it" if not pod.spec.node_name else "kubelet has told nothing")
    return _fact(
        key, "start_failed", now, cause="launch",
        detail=_cut(f"it could not start within {budget_s:.0f} s on {_node(pod)}: {told}"),
        suspect=bool(pod.spec.node_name) and (waits is None or _names_node(waits)),
    )  # fmt: skip


def refused(key: Key, now: datetime, message: str, *, passing: bool) -> Fact:
    """The API server would not have the pod."""
    return _fact(
        key, "start_failed", now, cause="launch" if passing else None,
        detail=_cut(f"Kubernetes refused its pod: {message}"),
    )  # fmt: skip


def gone(key: Key, now: datetime, *, started: bool) -> Fact:
    """The API server knows no such pod."""
    if started:
        return _fact(key, "lost", now, detail="its pod is gone")
    return _fact(key, "start_failed", now, cause="launch", detail="its pod was never made")


def _state(pod: Pod) -> ContainerState:
    for status in pod.status.container_statuses:
        if status.name == CONTAINER:
            return status.state
    return ContainerState()


def _started_at(state: ContainerState) -> datetime | None:
    if state.running is not None:
        return state.running.started_at
    ended = state.terminated
    if ended is None or ended.reason in NEVER_RAN:
        return None
    return ended.started_at


def _end(pod: Pod, key: Key, state: ContainerState, now: datetime) -> Fact:
    ended = state.terminated
    at = _moment(ended.finished_at, now) if ended and ended.finished_at else now
    lost = _lost_by(pod)
    if ended is None:
        told = lost or f"{pod.status.reason}: {pod.status.message}".strip(": ") or "unknown"
        if state.running is not None:
            return _fact(key, "lost", at, detail=_cut(told), suspect=_by_node(pod))
        # Kubelet would not admit it, or it was evicted before: it has not run.
        return _fact(
            key, "start_failed", at, cause="launch", detail=_cut(told),
            suspect=_by_node(pod) if lost else not pod.status.reason.startswith("OutOf"),
        )  # fmt: skip
    if ended.reason in NEVER_RAN:
        told = ended.message or ended.reason
        return _fact(key, "start_failed", at, detail=_explain(told), suspect=_names_node(told))
    if lost is not None or ended.reason in UNKNOWN_END:
        return _fact(
            key, "lost", at, detail=_cut(lost or ended.message or ended.reason),
            suspect=_by_node(pod) if lost else True,
        )  # fmt: skip
    if pod.status.reason == "DeadlineExceeded":
        return _exit(key, at, ended, "timeout", pod.status.message)
    if ended.reason == "OOMKilled":
        return _exit(key, at, ended, "oom", None)
    return _exit(key, at, ended, None, None)


def _lost_by(pod: Pod) -> str | None:
    """Why the system ended it; None: it did not."""
    status = pod.status
    if status.reason in LOST:
        return f"{status.reason}: {status.message}".removesuffix(": ")
    disruption = pod.condition("DisruptionTarget")
    if disruption is not None and disruption.status == "True":
        return f"{disruption.reason}: {disruption.message}".removesuffix(": ")
    return None


def _by_node(pod: Pod) -> bool:
    """Was it the node that ended it, rather than somebody who wanted it gone?"""
    disruption = pod.condition("DisruptionTarget")
    by = disruption.reason if disruption is not None and disruption.status == "True" else ""
    return pod.status.reason in BY_NODE or by in BY_NODE


def _names_node(told: str) -> bool:
    return bool(_NODES_FAULT.search(told))


def _exit(
    key: Key, at: datetime, ended: Terminated, cause: Cause | None, detail: str | None
) -> Fact:
    """A runtime tells a death by signal as 128 + n."""
    signal = ended.signal or None
    if signal is None and 128 < ended.exit_code <= 128 + LAST_SIGNAL:
        signal = ended.exit_code - 128
    return Fact(
        job_id=key[0], attempt=key[1], rank=key[2], kind="exited", at=at,
        exit_code=None if signal else ended.exit_code, signal=signal,
        cause=cause,
        detail=detail and _cut(detail),
        suspect=cause is None and ended.exit_code != 0 and _is_early(ended),
    )  # fmt: skip


def _is_early(ended: Terminated) -> bool:
    begun_at, over_at = ended.started_at, ended.finished_at
    return begun_at is not None and over_at is not None and over_at - begun_at <= EARLY


def _is_hopeless(reason: str, message: str) -> bool:
    if reason in IMAGE_WRONG:
        return True
    if reason in IMAGE_UNPULLED:
        return bool(_FOR_GOOD.search(message))
    return reason in CONTAINER_WRONG and bool(message) and not _IN_PASSING.search(message)


def _explain(told: str) -> str:
    return _cut(f"{told}. {IMAGE_HINT}" if "mage" in told else told)


def _moment(told: datetime | None, now: datetime) -> datetime:
    return now if told is None or now - told < FRESH else told


def _node(pod: Pod) -> str:
    return pod.spec.node_name or "its node"


def _cut(text: str) -> str:
    return text[:MAX_DETAIL]


def _fact(
    key: Key, kind: FactKind, at: datetime, *, cause: Cause | None = None,
    detail: str | None = None, suspect: bool = False,
) -> Fact:  # fmt: skip
    return Fact(
        job_id=key[0], attempt=key[1], rank=key[2], kind=kind, at=at, cause=cause, detail=detail,
        suspect=suspect,
    )  # fmt: skip
