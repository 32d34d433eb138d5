"""Reads the state of a pod's container."""

from __future__ import annotations

from datetime import datetime

from odcd.executor.kubernetes.naming import GATE, is_dev_server
from odcd.executor.kubernetes.objects import ContainerState, ContainerStatus, Pod, Terminated

CONTAINERS = frozenset({"job", "gpu-dev"})
"""Every pod of odc has a container with one of these names."""
MAX_DETAIL = 2000
LAST_SIGNAL = 64
NEVER_RAN = frozenset({"StartError", "ContainerCannotRun"})


def last_end(pod: Pod) -> tuple[Terminated | None, int]:
    """The last end of its container, if any, and the number of restarts."""
    found = container_of(pod)
    return found.state.terminated or found.last_state.terminated, found.restart_count


def running_since(pod: Pod) -> datetime | None:
    """For a dev server: since when its container has been running."""
    running = state_of(pod).running if is_dev_server(pod) else None
    return running.started_at if running else None


def is_running(pod: Pod) -> bool:
    return state_of(pod).running is not None


def describe_end(ended: Terminated) -> str:
    how = f"{ended.reason}, " if ended.reason not in ("", "Error") else ""
    signal = ended.signal or (ended.exit_code - 128 if 128 < ended.exit_code <= 128 + LAST_SIGNAL
                              else 0)  # fmt: skip
    how += f"signal {signal}" if signal else f"exit code {ended.exit_code}"
    last_line = ended.message.strip().rpartition("\n")[2]
    return cut(f"{how}: {last_line}".removesuffix(": "))


def message_of(pod: Pod) -> str:
    """The termination message of its container."""
    ended = state_of(pod).terminated
    return ended.message if ended else ""


def is_gated(pod: Pod) -> bool:
    return any(gate.name == GATE for gate in pod.spec.scheduling_gates)


def state_of(pod: Pod) -> ContainerState:
    return container_of(pod).state


def container_of(pod: Pod) -> ContainerStatus:
    for status in pod.status.container_statuses:
        if status.name in CONTAINERS:
            return status
    return ContainerStatus(name="")


def started_at_of(state: ContainerState) -> datetime | None:
    if state.running is not None:
        return state.running.started_at
    ended = state.terminated
    if ended is None or ended.reason in NEVER_RAN:
        return None
    return ended.started_at


def cut(text: str) -> str:
    return text[:MAX_DETAIL]


IMAGE_WRONG = frozenset({"InvalidImageName", "ErrImageNeverPull"})
IMAGE_UNPULLED = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})
CONTAINER_WRONG = frozenset({"CreateContainerConfigError", "CreateContainerError"})
