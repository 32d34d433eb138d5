"""From a pod's status to a fact: every way in which a member can end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from odcd.executor.kubernetes.naming import key_of
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.status import Seen, by_delete, late, read_pod, vanished

NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
BEGAN = "2026-01-01T12:00:00Z"
ENDED = "2026-01-01T12:00:20Z"
KEY = (7, 1, 0)


def a_pod(phase: str = "Running", state: dict[str, Any] | None = None, **status: Any) -> Pod:
    statuses = [{"name": "job", "state": state}] if state else []
    return msgspec.convert(
        {
            "metadata": {
                "name": "odc-7-1-0", "namespace": "gpu-batch",
                "labels": {"app.kubernetes.io/managed-by": "odcd"},
            },
            "spec": {"nodeName": "n1"},
            "status": {"phase": phase, "containerStatuses": statuses, **status},
        },
        Pod,
    )  # fmt: skip


def ended(exit_code: int = 0, reason: str = "Completed", **more: Any) -> dict[str, Any]:
    return {
        "terminated": {
            "exitCode": exit_code, "reason": reason, "startedAt": BEGAN, "finishedAt": ENDED, **more
        }
    }  # fmt: skip


def seen(*args: Any, **more: Any) -> Seen:
    return read_pod(a_pod(*args, **more), KEY, NOW)


DISRUPTED = {
    "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
    "message": "made room",
}  # fmt: skip


OWN_LIMITS = (
    "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. ",
    'Container job exceeded its local ephemeral storage limit "10Gi". ',
    'Usage of EmptyDir volume "run" exceeds the limit "1Gi". ',
)
"""Kubelet's messages about a pod that uses more storage than it may."""


@pytest.mark.parametrize(
    ("phase", "state", "status", "kind", "code", "signal", "cause", "says"),
    [
        ("Succeeded", ended(), {}, "exited", 0, None, None, ""),
        ("Failed", ended(3, "Error"), {}, "exited", 3, None, None, ""),
        ("Failed", ended(137, "Error"), {}, "exited", None, 9, None, ""),
        ("Failed", ended(143, "Error"), {}, "exited", None, 15, None, ""),
        ("Failed", ended(200, "Error"), {}, "exited", 200, None, None, ""),
        ("Failed", ended(137, "OOMKilled"), {}, "exited", None, 9, "oom", ""),
        ("Failed", ended(1, "Error"), {"reason": "DeadlineExceeded", "message": "too long"},
         "exited", 1, None, "timeout", "too long"),
        ("Failed", ended(137, "Error"), {"reason": "Evicted", "message": "low on memory"},
         "lost", None, None, None, "Evicted: low on memory"),
        ("Failed", ended(0), {"reason": "Terminated", "message": "node shutdown"},
         "lost", None, None, None, "node shutdown"),
        ("Failed", ended(143, "Error"), {"conditions": [DISRUPTED]},
         "lost", None, None, None, "PreemptionByScheduler: made room"),
        ("Failed", ended(137, "ContainerStatusUnknown"), {}, "lost", None, None, None, "Unknown"),
        ("Failed", ended(255, "Unknown"), {}, "lost", None, None, None, "Unknown"),
        ("Failed", ended(255, "Error"), {}, "exited", 255, None, None, ""),
        *(("Failed", ended(137, "Error"), {"reason": reason, "message": "refused"},
           "lost", None, None, None, f"{reason}: refused")
          for reason in ("UnexpectedAdmissionError", "OutOfcpu", "OutOfpods", "NodeAffinity",
                         "Preempting")),
        *(("Failed", state, {"reason": "Evicted", "message": message},
           "exited", None, 9, None, message.strip())
          for state in (None, ended(137, "Error"), ended(0))
          for message in OWN_LIMITS),
        ("Failed", None, {"reason": "OutOfnvidia.com/gpu", "message": "7 of 8 in use"},
         "start_failed", None, None, "launch", "OutOfnvidia.com/gpu: 7 of 8 in use"),
        ("Failed", None, {"reason": "UnexpectedAdmissionError", "message": "no devices"},
         "start_failed", None, None, "launch", "no devices"),
        ("Failed", {"running": {"startedAt": BEGAN}}, {"reason": "NodeLost", "message": "gone"},
         "lost", None, None, None, "NodeLost: gone"),
        ("Failed", ended(128, "StartError", message="exec: no such file"), {},
         "start_failed", None, None, None, "exec: no such file"),
    ],
    ids=lambda value: value if isinstance(value, str) and value and len(value) < 20 else "",
)  # fmt: skip
def test_every_end_of_a_pod_has_a_fact(
    phase: str, state: Any, status: Any, kind: str, code: Any, signal: Any, cause: Any, says: str
) -> None:
    end = seen(phase, state, **status).end
    assert end is not None
    assert (end.kind, end.exit_code, end.signal, end.cause) == (kind, code, signal, cause)
    assert says in (end.detail or "")


@pytest.mark.parametrize(
    ("reason", "message", "hopeless"),
    [
        ("ErrImagePull", 'pull access denied for "team/x", repository does not exist', True),
        ("ImagePullBackOff", 'Back-off pulling image "x:1": ErrImagePull: x:1: not found', True),
        ("ErrImagePull", "dial tcp: lookup registry.example: i/o timeout", False),
        ("ImagePullBackOff", 'Back-off pulling image "x:1": 503 Service Unavailable', False),
        ("InvalidImageName", "couldn't parse image name", True),
        ("CreateContainerConfigError", 'configmap "odc-7-1" not found', False),
        ("CreateContainerConfigError", 'secret "db" not found', True),
        ("CreateContainerError", "context deadline exceeded", False),
        ("CreateContainerError", "failed to create spec: no such device", True),
        ("ContainerCreating", "", False),
        ("PodInitializing", "", False),
    ],
    ids=str,
)
def test_only_pods_that_can_never_start_are_given_up(
    reason: str, message: str, hopeless: bool
) -> None:
    status = seen("Pending", {"waiting": {"reason": reason, "message": message}})
    assert status.end is None
    assert status.begun is None
    assert (status.hopeless is not None) == hopeless
    if status.hopeless is not None:
        # Not "launch": it would be retried again and again.
        assert (status.hopeless.kind, status.hopeless.cause) == ("start_failed", None)
        assert message in (status.hopeless.detail or "")


def test_a_start_is_reported_when_the_container_runs() -> None:
    begun = seen("Running", {"running": {"startedAt": BEGAN}}).begun
    assert begun is not None
    assert (begun.kind, begun.at) == ("started", datetime(2026, 1, 1, 12, tzinfo=UTC))
    assert seen("Pending", {"waiting": {"reason": "ContainerCreating"}}).begun is None


def test_a_job_that_ended_at_once_has_started_too() -> None:
    status = seen("Succeeded", ended())
    assert status.begun is not None
    assert status.end is not None
    assert status.end.at == datetime(2026, 1, 1, 12, 0, 20, tzinfo=UTC)


def test_whole_seconds_of_kubelet_are_not_before_the_start() -> None:
    """Kubelet truncates fractions: its time for this second may be before our own start."""
    now = datetime(2026, 1, 1, 12, 0, 0, 900_000, tzinfo=UTC)
    begun = read_pod(a_pod("Running", {"running": {"startedAt": BEGAN}}), KEY, now).begun
    assert begun is not None
    assert begun.at == now


def test_a_vanished_pod_is_lost_if_it_had_started() -> None:
    gone = vanished(a_pod("Running", {"running": {"startedAt": BEGAN}}), KEY, NOW)
    assert gone.kind == "lost"
    never = vanished(a_pod("Pending"), KEY, NOW)
    assert (never.kind, never.cause) == ("start_failed", "launch")


def test_only_our_own_names_are_members() -> None:
    ours = a_pod()
    assert key_of(ours) == KEY
    for name in ("odc-7-1", "odc-7-1-0-x", "xodc-7-1-0", "odc-7-1-99999999"):
        other = msgspec.structs.replace(
            ours, metadata=msgspec.structs.replace(ours.metadata, name=name)
        )
        assert key_of(other) is None
    unlabelled = msgspec.structs.replace(
        ours, metadata=msgspec.structs.replace(ours.metadata, labels={})
    )
    assert key_of(unlabelled) is None


def test_the_time_of_an_older_end_is_kept() -> None:
    late = NOW + timedelta(seconds=10)
    end = read_pod(a_pod("Succeeded", ended()), KEY, late).end
    assert end is not None
    assert end.at < NOW


@pytest.mark.parametrize(
    ("state", "deleted_at", "kind"),
    [
        pytest.param(ended(143, "Error"), "2026-01-01T12:00:45Z", "lost", id="by-its-term"),
        pytest.param(ended(1, "Error"), "2026-01-01T12:00:50Z", "lost", id="trapped-and-failed"),
        pytest.param(ended(0), "2026-01-01T12:00:50Z", "exited", id="trapped-and-done"),
        pytest.param(ended(143, "Error"), "2026-01-01T12:00:51Z", "exited", id="ended-before"),
        pytest.param(ended(137, "OOMKilled"), "2026-01-01T12:00:45Z", "exited", id="by-the-kernel"),
        pytest.param(ended(143, "Error"), None, "exited", id="not-deleted"),
    ],
)
def test_a_pod_ended_by_a_foreign_delete_is_lost_and_not_failed(
    state: dict[str, Any], deleted_at: str | None, kind: str
) -> None:
    """The delete was requested 30 s before the time that Kubernetes records; the container ended at
    12:00:20."""
    pod = a_pod("Failed", state)
    if deleted_at:
        pod.metadata.deletion_timestamp = datetime.fromisoformat(deleted_at)
        pod.metadata.deletion_grace_period_seconds = 30
    end = read_pod(pod, KEY, NOW).end
    assert end is not None
    assert by_delete(pod, end).kind == kind


RUNC = "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
HOOK = RUNC + "error running prestart hook #0: nvidia-container-cli: initialization error"
NO_SHELL = RUNC + 'unable to start container process: exec: "/bin/sh": no such file or directory'
TAINTED = DISRUPTED | {"reason": "DeletionByTaintManager", "message": "node not ready"}
LATER = "2026-01-01T11:57:59Z"


@pytest.mark.parametrize(
    ("phase", "state", "status", "suspect"),
    [
        pytest.param("Failed", ended(1, "Error"), {}, True, id="failed early"),
        pytest.param("Failed", ended(139, "Error"), {}, True, id="crashed early"),
        pytest.param("Failed", ended(1, "Error", startedAt=LATER), {}, False, id="failed late"),
        pytest.param("Succeeded", ended(), {}, False, id="done early"),
        pytest.param("Failed", ended(137, "OOMKilled"), {}, False, id="its own memory"),
        pytest.param("Failed", ended(1, "Error"), {"reason": "Evicted"}, False, id="evicted"),
        pytest.param("Failed", ended(1, "Error"), {"reason": "NodeLost"}, True, id="node lost"),
        pytest.param("Failed", ended(1), {"conditions": [TAINTED]}, True, id="node not ready"),
        pytest.param("Failed", ended(1), {"conditions": [DISRUPTED]}, False, id="made room"),
        pytest.param("Failed", ended(1, "ContainerStatusUnknown"), {}, True, id="unknown end"),
        pytest.param("Failed", ended(128, "StartError", message=HOOK), {}, True, id="hook failed"),
        pytest.param("Failed", ended(128, "StartError", message=NO_SHELL), {}, False,
                     id="image without a shell"),
        pytest.param("Failed", None, {"reason": "UnexpectedAdmissionError"}, True, id="no devices"),
        pytest.param("Failed", None, {"reason": "OutOfcpu"}, False, id="full"),
        pytest.param("Failed", ended(255, "Unknown"), {}, True, id="rebooted"),
        pytest.param("Failed", ended(137, "Error"), {"reason": "UnexpectedAdmissionError"}, True,
                     id="its devices are gone"),
    ],
)  # fmt: skip
def test_ends_that_suspect_the_node(
    phase: str, state: dict[str, Any] | None, status: dict[str, Any], suspect: bool
) -> None:
    end = seen(phase, state, **status).end
    assert end is not None
    assert end.suspect is suspect


@pytest.mark.parametrize(
    ("reason", "message", "suspect"),
    [
        ("CreateContainerError", HOOK, True),
        ("CreateContainerConfigError", 'secret "x" not found', False),
        ("ImagePullBackOff", "nvidia/cuda: manifest unknown", False),
    ],
    ids=["hook failed", "its own configuration", "its own image"],
)
def test_a_failed_start_suspects_the_node_only_for_node_errors(
    reason: str, message: str, suspect: bool
) -> None:
    found = seen("Pending", {"waiting": {"reason": reason, "message": message}})
    assert found.hopeless is not None
    assert found.hopeless.suspect is suspect


@pytest.mark.parametrize(
    ("waits", "cause", "suspect"),
    [
        ("Unschedulable: 0/5 nodes are available: 1 Insufficient cpu", "unscheduled", True),
        (None, "unscheduled", False),
        ('Unschedulable: persistentvolumeclaim "odc-volume-3" not found', "launch", False),
    ],
    ids=["full", "no scheduler", "no disk"],
)
def test_a_pod_that_its_node_never_accepts_does_not_count_as_a_failure(
    waits: str | None, cause: str, suspect: bool
) -> None:
    pod = a_pod("Pending")
    pod.spec.node_name = ""
    fact = late(pod, KEY, NOW, waits, 60)
    assert (fact.kind, fact.cause, fact.suspect) == ("start_failed", cause, suspect)


@pytest.mark.parametrize(
    ("waits", "suspect"),
    [(None, True), ("ContainerCreating: failed to create pod sandbox", True),
     ("ImagePullBackOff: back-off", False)],
    ids=["silence", "no sandbox", "its own image"],
)  # fmt: skip
def test_a_late_start_without_a_reason_suspects_the_node(waits: str | None, suspect: bool) -> None:
    assert late(a_pod("Pending"), KEY, NOW, waits, 60).suspect is suspect
