"""Notices to users of dev servers, the keys that may enter, and Jupyter. Programs in the pods do
the work. They receive texts as arguments, which no shell interprets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from odcd.errors import RunnerDown, WrongState
from odcd.executor.kubernetes import pod_state
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.inventory import is_over
from odcd.executor.kubernetes.launch import JOB
from odcd.executor.kubernetes.objects import Pod
from odcd.records.dispatch import Fact, Notice

EXEC_S = 15.0
JUPYTER_S = 60.0
"""Longer than the program itself waits for Jupyter to answer."""
MAX_NAME_BYTES = 255
OOM_FILE = "OOM_DETECTED.txt"
MAX_KEYS_BYTES = 200_000
"""The keys are part of a request's URL."""


def oom_notice(fact: Fact) -> Notice:
    """The file that users of gpu-dev expect."""
    return Notice(
        name=OOM_FILE,
        text=f"At {fact.at:%Y-%m-%d %H:%M:%S} UTC this container ran out of memory, and its "
        "processes were ended.\nIt was restarted in place: files in /home/dev and /workspace are "
        "still there, processes are not.\n",
    )


async def notify(cluster: Cluster, pods: Iterable[Pod], job_id: int, notice: Notice) -> None:
    """pods: of all members. See `DevServers.notify`."""
    for name in [*([] if notice.name is None else [notice.name]), *notice.remove]:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise ValueError(f"{name!a} is not a file name")
        if len(name.encode()) > MAX_NAME_BYTES:
            raise ValueError(f"{name[:40]!a}… is too long for a file name")
    arguments = [notice.name or "", notice.text, notice.wall or "", *notice.remove]
    _require(job_id, await _run_in_all(cluster, pods, "tell", arguments))


async def set_keys(
    cluster: Cluster, pods: Iterable[Pod], job_id: int, lines: Sequence[str]
) -> None:
    """pods: of all members. See DevServers.set_keys."""
    if sum(len(line) + 1 for line in lines) > MAX_KEYS_BYTES:
        raise WrongState(
            f"reservation {job_id} cannot take so many keys: they have more than "
            f"{MAX_KEYS_BYTES} bytes",
            "Add fewer users, or ask them to remove old keys from GitHub.",
        )
    # An empty list would restore the original keys.
    trouble = await _run_in_all(cluster, pods, "keys", lines or ["# no keys"])
    _require(job_id, trouble)


def _require(job_id: int, trouble: str | None) -> None:
    if trouble is not None:
        raise WrongState(f"no pod of reservation {job_id} accepted the change: {trouble}")


async def set_jupyter(cluster: Cluster, pods: Iterable[Pod], job_id: int, *, on: bool) -> None:
    """pods: the pod of rank 0. See DevServers.set_jupyter."""
    word = "on" if on else "off"
    trouble = await _run_in_all(cluster, pods, "jupyter", [word], JUPYTER_S)
    if trouble is not None:
        raise WrongState(trouble, f"`odcctl edit {job_id} --enable-jupyter` tries again.")


async def _run_in_all(
    cluster: Cluster, pods: Iterable[Pod], program: str, arguments: Sequence[str],
    timeout_s: float = EXEC_S,
) -> str | None:  # fmt: skip
    """Run a program in every running pod. Return the reason if it succeeded in none. Raises
    RunnerDown when a pod could not be reached; it may have succeeded in others."""
    done = False
    trouble = "it has no pod"
    late: RunnerDown | None = None
    for pod in pods:
        if is_over(pod) or pod.metadata.deletion_timestamp is not None:
            trouble = "it is over"
            continue
        if not pod_state.is_running(pod):
            late = RunnerDown(f"the container of {pod.metadata.name} is being restarted")
            continue
        try:
            failed = await cluster.execute(
                pod.metadata.namespace, pod.metadata.name, pod.spec.containers[0].name,
                ["/bin/sh", f"{JOB}/{program}", *arguments], timeout_s,
            )  # fmt: skip
        except RunnerDown as error:
            late = error
        except ApiRefused as error:
            if error.passing:
                late = RunnerDown(f"{pod.metadata.name} cannot be reached now: {error.message}")
            trouble = error.message
        else:
            done = done or failed is None
            trouble = failed or trouble
    if late is not None:
        raise late
    return None if done else trouble
