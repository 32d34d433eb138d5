"""Send signals to members. Kubernetes itself only sends TERM, to end a pod; other signals are sent
by a command in the container."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence

from odcd.errors import OdcError, RunnerDown, WrongState
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.inventory import is_over
from odcd.executor.kubernetes.launch import signal_command
from odcd.executor.kubernetes.objects import Pod

EXEC_S = 10.0
HINT = "Its container needs /bin/sh and kill."
KILLED = "exit status 137"
"""The command itself was killed: its container ended, because of the signal."""


async def send_signal(
    cluster: Cluster, pods: Sequence[Pod], job_id: int, number: int, *, batch_only: bool,
    once: bool = False,
) -> None:  # fmt: skip
    """Send it to all members at the same time. pods: of the members to signal. once: it is the
    signal before the time limit, which a member receives once, also if it is sent again. Raises the
    error of the first member that did not receive it: WrongState, or RunnerDown if it may be tried
    again."""
    name = signal.Signals(number).name.removeprefix("SIG")
    command = signal_command(name, batch_only=batch_only, once=once)
    running = [pod for pod in pods if not is_over(pod)]
    outcomes = await asyncio.gather(
        *(_send(cluster, pod, job_id, command) for pod in running), return_exceptions=True
    )
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


async def _send(cluster: Cluster, pod: Pod, job_id: int, command: Sequence[str]) -> None:
    meta, container = pod.metadata, pod.spec.containers[0].name
    try:
        trouble = await cluster.execute(meta.namespace, meta.name, container, command, EXEC_S)
    except ApiRefused as error:
        if error.passing:
            raise RunnerDown(f"{meta.name} cannot be reached now: {error.message}") from error
        trouble = error.message
    if trouble is not None and not trouble.endswith(KILLED):
        raise _refusal(job_id, meta.name, trouble)


def _refusal(job_id: int, pod: str, why: str) -> OdcError:
    return WrongState(f"job {job_id} cannot be signalled: {pod}: {why}", HINT)
