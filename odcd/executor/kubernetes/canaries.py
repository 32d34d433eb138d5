"""Canaries: short pods that test whether a quarantined node works. They are not jobs of the
queue."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes import pod_state, status
from odcd.executor.kubernetes.cluster import ApiRefused
from odcd.executor.kubernetes.inventory import NodeOffer, offer_of
from odcd.executor.kubernetes.naming import STARTED_AT, Key
from odcd.executor.kubernetes.objects import Node, Pod
from odcd.executor.kubernetes.pod_texts import plain
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.records.dispatch import Dispatch, Member
from odcd.records.node import Canary, CanaryEnd

log = logging.getLogger(__name__)

JOB = 0
"""No job has this number: the pods are odc-0-<canary>-0."""
OF_DOCTOR = 1_000_000_000
"""`odcd doctor --canaries` numbers its pods from here on, and removes them itself."""
DOCTOR_LIMIT = timedelta(minutes=15)
"""The leader removes those that are older, which a doctor that was killed left behind."""
NOBODY = 65534
MEM_MIB = 1024
SCRIPT = "#!/bin/sh\nexec {command}\n"
TEXTS = {
    "gpu": SCRIPT.format(command="nvidia-smi -L"),
    "cpu": SCRIPT.format(command="true"),
    "environment": "{}",
}


class Canaries:
    """Level-triggered: every call states the full set of wanted canaries, so that any leader can
    continue."""

    def __init__(self, pod_writer: PodWriter, clock: Clock, nodes: Mapping[str, Node]) -> None:
        self._pod_writer = pod_writer
        self._clock = clock
        self._nodes = nodes
        self._pods: dict[int, Pod] = {}
        self._of_doctor: dict[Key, Pod] = {}
        self._trouble: dict[int, str] = {}

    def note(self, key: Key, pod: Pod | None) -> None:
        """Record a canary's pod as the cluster reports it; None: it is gone."""
        if key[1] >= OF_DOCTOR:
            self._of_doctor.pop(key, None)
            if pod is not None:
                self._of_doctor[key] = pod
        elif pod is None:
            self._pods.pop(key[1], None)
        else:
            self._pods[key[1]] = pod

    async def attend(self, canaries: Sequence[Canary], term: int) -> list[CanaryEnd]:
        """See Executor.try_nodes."""
        by_number = {canary.number: canary for canary in canaries}
        for pod in list(self._of_doctor.values()):
            if pod.metadata.deletion_timestamp is None and self._is_old(pod):
                await self._remove(pod)
        for number, pod in list(self._pods.items()):
            if pod.metadata.deletion_timestamp is None and not _is_of(pod, by_number.get(number)):
                await self._remove(pod)
        self._trouble = {n: trouble for n, trouble in self._trouble.items() if n in by_number}
        ends: list[CanaryEnd] = []
        for canary in canaries:
            result = await self._look(canary, term)
            if result is not None:
                passed, why = result
                log.info("kubernetes.canary", extra={"node": canary.node, "passed": passed})
                ends.append(CanaryEnd(number=canary.number, passed=passed, output=plain(why)))
        return ends

    def _is_old(self, pod: Pod) -> bool:
        created = pod.metadata.creation_timestamp
        return created is not None and self._clock.now() - created > DOCTOR_LIMIT

    async def _look(self, canary: Canary, term: int) -> tuple[bool, str] | None:
        """Return whether it succeeded and its output; None: it has not ended."""
        now = self._clock.now()
        pod = self._pods.get(canary.number)
        if pod is None:
            return await self._make(canary, term, now)
        key = (JOB, canary.number, 0)
        if not _is_of(pod, canary):
            return None
        seen = status.read_pod(pod, key, now)
        if seen.end is not None and pod.metadata.deletion_timestamp is None:
            end = seen.end
            if end.kind == "exited" and end.exit_code == 0:
                return True, "it ended with exit code 0"
            output = pod_state.message_of(pod) or end.detail or "it printed nothing"
            if end.kind == "exited":
                how = f"signal {end.signal}" if end.signal else f"exit code {end.exit_code}"
                return False, f"{how}: {output}"
            return False, output
        if seen.hopeless is not None and not seen.denied:
            return False, seen.hopeless.detail or "its container could not be created"
        if now >= canary.until:
            waits = seen.waits or (
                "it is still running" if seen.begun else "kubelet has reported nothing"
            )
            return False, f"it did not finish in time: {waits}"
        return None

    async def _make(self, canary: Canary, term: int, now: datetime) -> tuple[bool, str] | None:
        if now >= canary.until:
            why = self._trouble.get(canary.number, "it was removed")
            return False, f"its pod did not exist in time: {why}"
        own = offer_of(self._nodes.get(canary.node)).own_taints
        offer = NodeOffer(gpus=canary.gpus, efa=0, hugepages_mib=0, own_taints=own)
        try:
            await self._pod_writer.make(dispatch_of(canary, term), TEXTS, {canary.node: offer})
        except (ApiRefused, RunnerDown) as error:
            self._trouble[canary.number] = error.message
            log.warning("kubernetes.canary_refused", extra={"why": str(error)})
        return None

    async def _remove(self, pod: Pod) -> None:
        try:
            await self._pod_writer.remove(pod, 0)
        except (ApiRefused, RunnerDown) as error:
            log.warning("kubernetes.not_removed", extra={"pod": pod.key, "why": str(error)})


def _is_of(pod: Pod, canary: Canary | None) -> bool:
    """Whether the pod belongs to this canary: a pod of another or restored database may have its
    number."""
    return (
        canary is not None and pod.metadata.annotations.get(STARTED_AT) == canary.until.isoformat()
    )


def dispatch_of(canary: Canary, term: int) -> Dispatch:
    """One GPU of the node, if it has any. No EFA, so it runs in the namespace of jobs without it.
    started_at only distinguishes it from others of its number: every leader must use the same
    value."""
    member = Member(
        rank=0, node=canary.node, gpu_type=canary.gpu_type,
        gpu_indexes=(0,) if canary.gpus else (), cpus=1, mem_mib=min(MEM_MIB, canary.mem_mib),
        node_gpus=canary.gpus, node_cpus=canary.cpus, node_mem_mib=canary.mem_mib, virtual=False,
    )  # fmt: skip
    return Dispatch(
        term=term, job_id=JOB, attempt=canary.number, array_job_id=None, array_task_id=None,
        array_min=None, array_max=None, array_count=None, array_step=None, name="canary",
        user="odcd", uid=NOBODY, gid=NOBODY, account="", partition="", qos="", work_dir="/",
        umask=0o022, stdin=None, stdout=None, stderr=None, open_mode="truncate",
        script_digest="gpu" if canary.gpus else "cpu", environment_digest="environment", args=(),
        options={}, submit_host=None, restarts=0, started_at=canary.until, ends_at=canary.until,
        signal_number=None, signal_before_s=None, signal_batch=False, members=(member,),
    )  # fmt: skip
