"""Interprets a pod's status for its member: it runs, how it ended, or why it can never run."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from datetime import datetime, timedelta

from odcd.executor.kubernetes.dev_server_files import UNFIT
from odcd.executor.kubernetes.image_pulls import HINT, is_denied, is_missing
from odcd.executor.kubernetes.losses import (
    FULL,
    by_node,
    disrupted_by,
    is_unknown,
    lost_by,
    over_storage,
)
from odcd.executor.kubernetes.naming import NODE, Key, is_dev_server
from odcd.executor.kubernetes.objects import ContainerState, Pod, Terminated
from odcd.executor.kubernetes.pod_phase import NO_CLAIM
from odcd.executor.kubernetes.pod_state import (
    CONTAINER_WRONG,
    LAST_SIGNAL,
    NEVER_RAN,
    cut,
    describe_end,
    is_gated,
    last_end,
    started_at_of,
    state_of,
)
from odcd.records.dispatch import Cause, Fact, FactKind

MAX_RESTARTS = 3
"""The limit for a dev server that was never ready."""
FRESH = timedelta(seconds=2)
"""Kubelet reports whole seconds; for newer events the time of observation is more precise."""

EARLY = timedelta(seconds=120)
"""A failure this soon after the start may be caused by the node."""
_NODES_FAULT = re.compile(
    r"nvidia|nvml|\bcdi\b|hook|cgroup|no space left|read-only file system|input/output error|"
    r"cannot allocate memory|sandbox|failed to start shim|device or resource busy",
    re.IGNORECASE,
)
"""Messages of container runtimes that point to the machine, not to the image or the job."""
_IN_PASSING = re.compile(r"timeout|timed out|deadline exceeded|configmap .odc-", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """begun: the process runs or ran. end: the pod no longer holds resources. hopeless: it can
    never run and must be removed; this is then its end. denied: this is so only if the registry
    continues to deny the image. waits: why it has not started."""

    begun: Fact | None = None
    end: Fact | None = None
    hopeless: Fact | None = None
    denied: bool = False
    waits: str | None = None


def read_pod(pod: Pod, key: Key, now: datetime) -> Seen:
    if is_dev_server(pod):
        return _read_dev_server(pod, key, now)
    state = state_of(pod)
    started_at = started_at_of(state)
    begun = _fact(key, "started", _moment(started_at, now)) if started_at else None
    if pod.status.phase in ("Succeeded", "Failed"):
        return Seen(begun=begun, end=_end(pod, key, state, now))
    if begun:
        return Seen(begun=begun)
    return _read_waiting(pod, key, state, now)


def _read_waiting(pod: Pod, key: Key, state: ContainerState, now: datetime) -> Seen:
    """Read a pod whose container has never run."""
    if state.waiting is not None:
        message = f"{state.waiting.reason}: {state.waiting.message}".removesuffix(": ")
        denied = is_denied(state.waiting.reason, state.waiting.message)
        if denied or _is_hopeless(state.waiting.reason, state.waiting.message):
            hopeless = _fact(
                key, "start_failed", now, detail=_explain(message),
                suspect=state.waiting.reason in CONTAINER_WRONG and _names_node(message),
            )  # fmt: skip
            return Seen(hopeless=hopeless, denied=denied, waits=message)
        return Seen(waits=message)
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False" and scheduled.message:
        return Seen(waits=f"{scheduled.reason}: {scheduled.message}")
    return Seen(waits=None)


def _read_dev_server(pod: Pod, key: Key, now: datetime) -> Seen:
    """Read a dev server, which has started once it is ready. A container restart is not its end.
    Whether it was ready before is not visible here."""
    state = state_of(pod)
    ready = pod.condition("Ready")
    begun = None
    if ready is not None and ready.status == "True":
        begun = _fact(key, "started", _moment(ready.last_transition_time, now))
    if pod.status.phase in ("Succeeded", "Failed"):
        return Seen(begun=begun, end=_end(pod, key, state, now))
    if state.terminated is not None and (why := lost_by(pod)) is not None:
        # Its containers will not restart.
        return Seen(end=_fact(key, "lost", now, detail=cut(why), suspect=by_node(pod)))
    if begun:
        return Seen(begun=begun)
    last, restarts = last_end(pod)
    if last is not None:
        message = describe_end(last)
        if last.reason in NEVER_RAN:
            message = last.message or last.reason
            hopeless = _fact(
                key, "start_failed", now, detail=_explain(message), suspect=_names_node(message)
            )
            return Seen(hopeless=hopeless, waits=message)
        if last.exit_code == UNFIT:
            last_line = last.message.strip().rpartition("\n")[2].removeprefix("odc: ")
            hopeless = _fact(key, "start_failed", now, detail=cut(last_line or message))
            return Seen(hopeless=hopeless, waits=message)
        if restarts >= MAX_RESTARTS:
            detail = cut(f"its container ended {restarts} times before it was ready: {message}")
            return Seen(hopeless=_fact(key, "start_failed", now, cause="launch", detail=detail))
        return Seen(waits=message)
    if state.running is not None:
        return Seen(waits="its SSH server does not answer")
    return _read_waiting(pod, key, state, now)


def restarted(pod: Pod, key: Key) -> Fact | None:
    """The last end of its container, after which it restarted or is about to."""
    ended, _ = last_end(pod)
    if ended is None or ended.finished_at is None or pod.status.phase in ("Succeeded", "Failed"):
        return None
    kind: FactKind = "oom" if ended.reason == "OOMKilled" else "restart"
    return _fact(key, kind, ended.finished_at, detail=describe_end(ended))


def vanished(
    pod: Pod, key: Key, now: datetime, *, begun: bool = False, forced: bool = False
) -> Fact:
    """The end of a pod that was removed before it reported one. forced: odc removed it, because its
    node did not answer."""
    disrupted = disrupted_by(pod)
    who = disrupted or "the cluster removed its pod"
    if forced:
        who = f"its node {pod.spec.node_name} did not confirm its end"
    suspect = by_node(pod)
    if begun or (not is_dev_server(pod) and started_at_of(state_of(pod))):
        cause = None if forced or disrupted else "deleted"
        return _fact(key, "lost", now, cause=cause, detail=who, suspect=suspect)
    return _fact(
        key, "start_failed", now, cause="launch", detail=f"{who} before it started", suspect=suspect
    )


def by_delete(pod: Pod, end: Fact) -> Fact:
    """The end of a pod that odc did not delete: the effect of TERM and KILL is not the job's own
    exit."""
    gone_at = pod.metadata.deletion_timestamp
    if gone_at is None or end.kind != "exited" or end.cause:
        return end
    # A dev server does not end by itself on TERM.
    if end.exit_code == 0 and not is_dev_server(pod):
        return end
    deleted_at = gone_at - timedelta(seconds=pod.metadata.deletion_grace_period_seconds)
    ended = state_of(pod).terminated
    if ended is None or ended.finished_at is None or ended.finished_at < deleted_at:
        return end
    key = (end.job_id, end.attempt, end.rank)
    detail = "its pod was deleted by something other than odc"
    return _fact(key, "lost", end.at, cause="deleted", detail=detail)


def late(pod: Pod, key: Key, now: datetime, waits: str | None, budget_s: float) -> Fact:
    """The end of a start that took too long. A pod that its node never accepted has not failed."""
    if not pod.spec.node_name and not is_gated(pod):
        node = pod.metadata.annotations.get(NODE, "its node")
        no_disk = waits is not None and NO_CLAIM.search(waits) is not None
        return _fact(
            key, "start_failed", now, cause="launch" if no_disk else "unscheduled",
            detail=cut(
                f"{node} did not accept it within {budget_s:.0f} s: "
                f"{waits or 'the scheduler has reported nothing'}"
            ),
            suspect=waits is not None and not no_disk,
        )  # fmt: skip
    why = waits or "kubelet has reported nothing"
    node = pod.spec.node_name or "its node"
    return _fact(
        key, "start_failed", now, cause="launch",
        detail=cut(f"it could not start within {budget_s:.0f} s on {node}: {why}"),
        suspect=bool(pod.spec.node_name) and (waits is None or _names_node(waits)),
    )  # fmt: skip


def refused(key: Key, now: datetime, message: str, *, passing: bool) -> Fact:
    """The end of a member whose pod the API server rejected."""
    return _fact(
        key, "start_failed", now, cause="launch" if passing else None,
        detail=cut(f"Kubernetes refused its pod: {message}"),
    )  # fmt: skip


def gone(key: Key, now: datetime, *, started: bool) -> Fact:
    """The end of a member whose pod does not exist, according to the API server."""
    if started:
        return _fact(key, "lost", now, cause="deleted", detail="its pod no longer exists")
    return _fact(key, "start_failed", now, cause="launch", detail="its pod was never created")


def _end(pod: Pod, key: Key, state: ContainerState, now: datetime) -> Fact:
    ended = state.terminated
    at = _moment(ended.finished_at, now) if ended and ended.finished_at else now
    if (why := over_storage(pod)) is not None:
        # Its own limits: the node would evict it again.
        if ended is None or ended.exit_code == 0:
            ended = Terminated(exit_code=128 + signal.SIGKILL, finished_at=at)
        return _exit(key, at, ended, None, why)
    lost = lost_by(pod)
    if ended is None:
        message = lost or f"{pod.status.reason}: {pod.status.message}".strip(": ") or "unknown"
        if state.running is not None:
            return _fact(key, "lost", at, detail=cut(message), suspect=by_node(pod))
        # Kubelet did not admit the pod, or it was evicted before: it never ran.
        full = pod.status.reason.startswith(FULL)
        return _fact(
            key, "start_failed", at, cause="launch", detail=cut(message),
            suspect=by_node(pod) if lost else not full,
        )  # fmt: skip
    if ended.reason in NEVER_RAN:
        message = ended.message or ended.reason
        return _fact(
            key, "start_failed", at, detail=_explain(message), suspect=_names_node(message)
        )
    if lost is not None or is_unknown(ended):
        return _fact(
            key, "lost", at, detail=cut(lost or ended.message or ended.reason),
            suspect=by_node(pod) if lost else True,
        )  # fmt: skip
    if pod.status.reason == "DeadlineExceeded":
        return _exit(key, at, ended, "timeout", pod.status.message)
    if ended.reason == "OOMKilled":
        return _exit(key, at, ended, "oom", None)
    return _exit(key, at, ended, None, None)


def _names_node(message: str) -> bool:
    return bool(_NODES_FAULT.search(message))


def _exit(
    key: Key, at: datetime, ended: Terminated, cause: Cause | None, detail: str | None
) -> Fact:
    """Container runtimes report a death by signal as 128 + n."""
    number = ended.signal or None
    if number is None and 128 < ended.exit_code <= 128 + LAST_SIGNAL:
        number = ended.exit_code - 128
    return Fact(
        job_id=key[0], attempt=key[1], rank=key[2], kind="exited", at=at,
        exit_code=None if number else ended.exit_code, signal=number,
        cause=cause,
        detail=detail and cut(detail),
        suspect=cause is None and ended.exit_code != 0 and _is_early(ended),
    )  # fmt: skip


def _is_early(ended: Terminated) -> bool:
    begun_at, over_at = ended.started_at, ended.finished_at
    return begun_at is not None and over_at is not None and over_at - begun_at <= EARLY


def _is_hopeless(reason: str, message: str) -> bool:
    if is_missing(reason, message):
        return True
    return reason in CONTAINER_WRONG and bool(message) and not _IN_PASSING.search(message)


def _explain(message: str) -> str:
    return cut(f"{message}. {HINT}" if "mage" in message else message)


def _moment(reported: datetime | None, now: datetime) -> datetime:
    return now if reported is None or now - reported < FRESH else reported


def _fact(
    key: Key, kind: FactKind, at: datetime, *, cause: Cause | None = None,
    detail: str | None = None, suspect: bool = False,
) -> Fact:  # fmt: skip
    return Fact(
        job_id=key[0], attempt=key[1], rank=key[2], kind=kind, at=at, cause=cause, detail=detail,
        suspect=suspect,
    )  # fmt: skip
