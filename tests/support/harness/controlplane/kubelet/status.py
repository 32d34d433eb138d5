"""Pod and container status as a kubelet words them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tests.support.harness.controlplane.kubelet.env import NotYet
from tests.support.harness.controlplane.kubelet.logs import now, rfc3339

State = dict[str, Any]
_DENIED = (
    "repository does not exist or may require authorization:"
    " server message: insufficient_scope: authorization failed"
)


@dataclass(slots=True, kw_only=True)
class Ended:
    """How a container ended."""

    code: int
    reason: str = ""
    message: str = ""
    started_at: str = ""
    finished_at: str = field(default_factory=lambda: rfc3339(now()))

    def state(self, container_id: str) -> State:
        found: State = {
            "exitCode": self.code,
            "reason": self.reason or ("Completed" if self.code == 0 else "Error"),
            "finishedAt": self.finished_at,
            "containerID": container_id,
        }
        if self.message:
            found["message"] = self.message
        if self.started_at:
            found["startedAt"] = self.started_at
        return {"terminated": found}


def waiting(reason: str, message: str = "") -> State:
    return {"waiting": {"reason": reason} | ({"message": message} if message else {})}


def container_id(pod: Mapping[str, Any], name: str) -> str:
    seed = f"{pod['metadata']['uid']}/{name}".encode()
    return f"containerd://{hashlib.sha256(seed).hexdigest()}"


def pod_status(
    pod: Mapping[str, Any],
    phase: str,
    states: Mapping[str, State],
    *,
    ip: str = "",
    started_at: str,
    reason: str = "",
    message: str = "",
    last: Mapping[str, State] = MappingProxyType({}),
    restarts: Mapping[str, int] = MappingProxyType({}),
    unready: Set[str] = frozenset(),
) -> dict[str, Any]:
    """The whole status; it replaces that of the API server, except for the scheduler's
    condition."""
    ready = {name: "running" in state and name not in unready for name, state in states.items()}
    running = phase == "Running" and all(ready.values())
    over = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
    conditions = [
        _condition("PodReadyToStartContainers", bool(ip) and phase == "Running"),
        _condition("Initialized", True, "PodCompleted" if phase == "Succeeded" else ""),
        _condition("Ready", running, over),
        _condition("ContainersReady", running, over),
    ]
    made: dict[str, Any] = {
        "phase": phase,
        "conditions": conditions,
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "startTime": started_at,
        "reason": reason or None,
        "message": message or None,
        "containerStatuses": [
            _container(pod, container, states[container["name"]], ready[container["name"]])
            | {
                "lastState": last.get(container["name"], {}),
                "restartCount": restarts.get(container["name"], 0),
            }
            for container in pod["spec"]["containers"]
        ],
    }
    if ip:
        made |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    return made


def _condition(kind: str, true: bool, reason: str = "") -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True" if true else "False",
        "reason": reason if not true or kind == "Initialized" else None,
        "lastTransitionTime": rfc3339(now()),
    }


def _container(
    pod: Mapping[str, Any], container: Mapping[str, Any], state: State, ready: bool
) -> dict[str, Any]:
    image: str = container["image"]
    begun = "waiting" not in state
    digest = hashlib.sha256(image.encode()).hexdigest()
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"{image.split('@')[0]}@sha256:{digest}" if begun else "",
        "containerID": container_id(pod, container["name"]) if begun else "",
        "ready": ready,
        "started": "running" in state,
        "state": state,
    }


def image_problem(image: str, has_pull_secret: bool) -> tuple[NotYet, NotYet] | None:
    """The messages of the first check of an image and of the back-off, or None.

    By its first part: badname/ is no reference, missing/ is not in its registry, private/ needs a
    pull secret.
    """
    if image.startswith("badname/"):
        wrong = f'couldn\'t parse image name "{image}": invalid reference format'
        bad = NotYet("InvalidImageName", f'Failed to apply default image tag "{image}": {wrong}')
        return bad, bad
    full = f"docker.io/{image}"
    if image.startswith("missing/"):
        why = f'failed to pull and unpack image "{full}": failed to resolve reference "{full}": '
        why = f"rpc error: code = NotFound desc = {why}{full}: not found"
    elif image.startswith("private/") and not has_pull_secret:
        why = f'failed to pull and unpack image "{full}": failed to resolve reference "{full}": '
        why = f"rpc error: code = Unknown desc = {why}pull access denied, {_DENIED}"
    else:
        return None
    backoff = f'Back-off pulling image "{image}": ErrImagePull: {why}'
    return NotYet("ErrImagePull", why), NotYet("ImagePullBackOff", backoff)
