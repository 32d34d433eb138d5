"""Send signals to members. Kubernetes itself only sends TERM, to end a pod; other signals are sent
by a command in the container."""

from __future__ import annotations

import signal
from collections.abc import Iterable

from odcd.errors import WrongState
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.inventory import is_over
from odcd.executor.kubernetes.launch import signal_command
from odcd.executor.kubernetes.objects import Pod

EXEC_S = 10.0


async def send_signal(
    cluster: Cluster, pods: Iterable[Pod], job_id: int, number: int, *, batch_only: bool
) -> None:
    """pods: of the members to signal. Raises WrongState, RunnerDown."""
    name = signal.Signals(number).name.removeprefix("SIG")
    command = signal_command(name, batch_only=batch_only)
    for pod in pods:
        if is_over(pod):
            continue
        try:
            await cluster.execute(
                pod.metadata.namespace,
                pod.metadata.name,
                pod.spec.containers[0].name,
                command,
                EXEC_S,
            )
        except ApiRefused as error:
            raise WrongState(
                f"job {job_id} cannot be signalled: {error.message}",
                "Its container needs /bin/sh and kill.",
            ) from error
