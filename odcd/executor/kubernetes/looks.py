"""Measures how much a dev server is used, by a program in its pods. Unknown values are not
guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from odcd.errors import RunnerDown, WrongState
from odcd.executor.kubernetes import pod_state
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.launch import JOB
from odcd.executor.kubernetes.objects import Pod
from odcd.records.dev_server import Activity

LOOK_S = 20.0
MAX_SESSIONS = 1_000_000
"""Users of a dev server choose the output of its programs, and the database stores 32 bits."""
_OUTPUT = re.compile(rb"connections=(\d{1,9}) gpu=(\d{1,3}|none|unknown) cpu_us=(\d{1,18})\n")


async def look(cluster: Cluster, pods: Sequence[Pod], members: int) -> Activity:
    """For all members together. Raises WrongState, or RunnerDown if one of them cannot be
    checked."""
    if len(pods) != members:
        raise RunnerDown(f"{len(pods)} of {members} pods exist")
    seen = [await _look_at(cluster, pod) for pod in pods]
    percents = [one.gpu_percent for one in seen]
    return Activity(
        sessions=min(MAX_SESSIONS, sum(one.sessions for one in seen)),
        gpu_percent=None if None in percents else max(p for p in percents if p is not None),
        cpu_s=sum(one.cpu_s for one in seen),
    )


async def _look_at(cluster: Cluster, pod: Pod) -> Activity:
    meta = pod.metadata
    if not pod_state.is_running(pod):
        raise RunnerDown(f"the container of {meta.name} is being restarted")
    try:
        output = await cluster.ask(
            meta.namespace, meta.name, pod.spec.containers[0].name,
            ["/bin/sh", f"{JOB}/look"], LOOK_S,
        )  # fmt: skip
    except ApiRefused as error:
        raise RunnerDown(f"{meta.name} cannot be checked: {error.message}") from error
    return read_look(output)


def read_look(output: bytes) -> Activity:
    """Raises WrongState."""
    found = _OUTPUT.fullmatch(output)
    if found is None:
        raise WrongState(f"its usage is unknown: {output[:200].decode(errors='replace')}")
    percent = int(found[2]) if found[2].isdigit() else None
    return Activity(sessions=int(found[1]), gpu_percent=percent, cpu_s=int(found[3]) / 1e6)
