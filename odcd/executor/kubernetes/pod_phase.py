"""The phase of a dev server's pod that is not ready."""

from __future__ import annotations

import re

from odcd.executor.kubernetes.naming import has_disk
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_state import (
    CONTAINER_WRONG,
    IMAGE_UNPULLED,
    IMAGE_WRONG,
    cut,
    describe_end,
    is_gated,
    is_running,
    last_end,
    state_of,
)
from odcd.records.dispatch import DevServerPhase

PULLING = frozenset({"Pulling", "BackOff"})
TROUBLE = frozenset({
    "FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox", "Failed",
})  # fmt: skip
"""Reasons of events that explain why a container is not created."""
NO_CLAIM = re.compile(r'persistentvolumeclaim ".*" not found|unbound', re.IGNORECASE)
"""The scheduler's messages while a volume is not published."""


def read_phase(pod: Pod, news: tuple[str, str] | None) -> tuple[DevServerPhase, str]:
    """The phase of a dev server's pod that is not ready, with a description. news: reason and
    message of its last event."""
    if is_gated(pod):
        return "scheduling", "it waits until the pods of all members exist"
    if not pod.spec.node_name:
        scheduled = pod.condition("PodScheduled")
        why = scheduled.message if scheduled and scheduled.status == "False" else ""
        if has_disk(pod) and NO_CLAIM.search(why):
            return "scheduling", f"its disk is being created: {why}"
        return "scheduling", why or "it waits for its node to accept it"
    last, restarts = last_end(pod)
    if last is not None:
        return (
            "ssh",
            f"its container ended ({describe_end(last)}) and is restarting; restarts: {restarts}",
        )
    if is_running(pod):
        return "ssh", "its container runs; SSH does not answer yet"
    waiting = state_of(pod).waiting
    if waiting is not None and waiting.reason in IMAGE_WRONG | IMAGE_UNPULLED:
        return "image_pull", cut(f"{waiting.reason}: {waiting.message}".removesuffix(": "))
    reason, message = news or ("", "")
    if reason in PULLING:
        return "image_pull", cut(message or "its image is being pulled")
    if reason in TROUBLE:
        return "init", cut(f"{reason}: {message}".removesuffix(": "))
    if waiting is not None and waiting.reason in CONTAINER_WRONG:
        return "init", cut(f"{waiting.reason}: {waiting.message}".removesuffix(": "))
    return "init", "its volumes and its container are being created"
