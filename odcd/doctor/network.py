"""Prove that pods of jobs are fenced: short pods try to reach what no job may reach.

The only check of `odcd doctor` that creates something, and only with --canaries. The pods are made
as those of jobs are: a gang of two, and another user's pod in each namespace.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import urlsplit

from odcd.clock import Clock, SystemClock
from odcd.doctor.canary import LISTENS, NO_PROGRAM, PORT, PROBED, SCRIPT
from odcd.doctor.examination import Examination
from odcd.doctor.host import Finding
from odcd.errors import RunnerDown
from odcd.executor.kubernetes import canaries, naming, pod_state
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.inventory import NodeOffer, offer_of
from odcd.executor.kubernetes.naming import Namespaces
from odcd.executor.kubernetes.objects import Pod, requests
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.executor.kubernetes.pods import PodSettings
from odcd.records.dispatch import Dispatch
from odcd.records.node import Canary, NodeReport

ABOUT = "network"
METADATA = "169.254.169.254"
WINDOW_S = 10
"""How long closed targets are tried, from the first moment of a pod on: a network plugin that
applies policies late is open at first."""
PATIENCE_S = 60
START = timedelta(minutes=5)
"""How long pods may take until they run, including the image pull."""
LOOK_S = 1.0
PEER = "its own gang"
HINT = "docs/operating/kubernetes.md#the-network-of-jobs names the plugins and modes that close it."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stranger:
    """A pod of another user that listens."""

    namespace: str
    pod: Pod

    @property
    def name(self) -> str:
        return f"a pod of another user in {self.namespace}"


class _NotRun(Exception):
    """The pods could not be run; the text says why."""


async def examine_network(
    x: Examination, clock: Clock | None = None, *, window_s: int = WINDOW_S
) -> AsyncIterator[Finding]:
    """Needs the nodes that examine_nodes has read."""
    trial = _Trial(x, clock or SystemClock(), window_s)
    try:
        for finding in await trial.run():
            yield finding
    except _NotRun as error:
        yield Finding(about=ABOUT, verdict="note", text=f"not tried: {error}")
    except ApiRefused as error:
        if "only odcd makes" not in error.message:
            raise
        yield Finding(
            about=ABOUT,
            verdict="note",
            text="not tried: only odcd's own account may create pods",
            hint="Run this where odcd runs: kubectl -n gpu-controlplane exec deploy/odcd -- odcd "
            "doctor --executor kubernetes --canaries",
        )


class _Trial:
    def __init__(self, x: Examination, clock: Clock, window_s: int) -> None:
        self._cluster: Cluster = x.cluster
        self._clock = clock
        self._window_s = window_s
        self._settings: PodSettings = x.pods
        self._has_image = x.settings.image is not None
        self._nodes = _freest(x)
        self._offers = {node.name: offer_of(x.nodes[node.name]) for node in self._nodes}
        self._number = canaries.OF_DOCTOR + secrets.randbelow(900_000_000)
        self._made: list[tuple[PodWriter, str, str]] = []

    async def run(self) -> list[Finding]:
        """Raises _NotRun, ApiRefused, RunnerDown."""
        if not self._nodes:
            raise _NotRun("no node can run jobs")
        if not self._has_image:
            raise _NotRun("there is no default image; set ODC_IMAGE")
        spaces = self._settings.namespaces
        try:
            strangers = [await self._stranger(space) for space in (spaces.batch, spaces.dev)]
            gangs = [
                (space, await self._gang(space, strangers)) for space in (spaces.batch, spaces.dev)
            ]
            return [_judge(space, await self._reached(pod), strangers) for space, pod in gangs]
        finally:
            await self._remove_all()

    async def _stranger(self, namespace: str) -> _Stranger:
        [name] = await self._make(namespace, self._nodes[:1], ["listen"])
        pod = await self._until(namespace, name, started=True)
        until = self._clock.now() + START
        while True:
            said = await self._cluster.get(f"{_path(namespace, name)}/log")
            if LISTENS in said.decode(errors="replace"):
                return _Stranger(namespace=namespace, pod=pod)
            if NO_PROGRAM in said.decode(errors="replace"):
                raise _NotRun(f"{NO_PROGRAM.removeprefix('odc: ')}; set ODC_IMAGE to one that has")
            if self._clock.now() > until:
                raise _NotRun(f"the pod {name} in {namespace} does not listen")
            await self._clock.sleep(LOOK_S)

    async def _gang(self, namespace: str, strangers: Sequence[_Stranger]) -> tuple[str, str]:
        targets = {"instance metadata": (METADATA, 80), **_api_servers(self._cluster)}
        targets |= {one.name: (one.pod.status.pod_ip, PORT) for one in strangers}
        words = [f"{name}={host}={port}=closed" for name, (host, port) in targets.items()]
        peer = naming.pod_name(canaries.JOB, self._number + 1, 1)
        words.append(f"{PEER}={peer}={PORT}=open")
        nodes = (self._nodes * 2)[:2]
        probe = ["probe", str(self._window_s), str(PATIENCE_S), *words]
        names = await self._make(namespace, nodes, probe)
        return namespace, names[0]

    async def _make(
        self, namespace: str, nodes: Sequence[NodeReport], args: Sequence[str]
    ) -> list[str]:
        self._number += 1
        dispatch = _dispatch(self._number, nodes, args, self._clock)
        writer = PodWriter(
            self._cluster,
            replace(self._settings, namespaces=Namespaces(batch=namespace, dev=namespace)),
        )
        names = [naming.pod_name(*dispatch.key, member.rank) for member in dispatch.members]
        self._made += [(writer, namespace, name) for name in names]
        offers: Mapping[str, NodeOffer] = self._offers
        await writer.make(dispatch, {"canary": SCRIPT, "environment": "{}"}, offers)
        return names

    async def _reached(self, pod: tuple[str, str]) -> list[str]:
        """The targets that a pod reached. Raises _NotRun."""
        ended = await self._until(*pod, started=False)
        lines = pod_state.message_of(ended).splitlines()
        if not lines or lines[0] != PROBED:
            raise _NotRun(f"the pod {pod[1]} in {pod[0]} ended with: {' '.join(lines)[:300]}")
        return lines[1:]

    async def _until(self, namespace: str, name: str, *, started: bool) -> Pod:
        """Wait until a pod runs, or has ended. Raises _NotRun."""
        writer = PodWriter(self._cluster, self._settings)
        until = self._clock.now() + START
        while True:
            pod = await writer.find(namespace, name)
            if pod is None:
                raise _NotRun(f"the pod {name} in {namespace} was removed")
            phase = pod.status.phase
            if phase in ("Succeeded", "Failed") or (
                started and phase == "Running" and pod.status.pod_ip
            ):
                return pod
            if self._clock.now() > until:
                raise _NotRun(f"the pod {name} in {namespace} is {phase}: {_waits(pod)}")
            await self._clock.sleep(LOOK_S)

    async def _remove_all(self) -> None:
        for writer, namespace, name in self._made:
            try:
                pod = await writer.find(namespace, name)
                if pod is not None:
                    await writer.remove(pod, 1)
            except (ApiRefused, RunnerDown):
                # The leader removes it later.
                continue


def _judge(namespace: str, reached: Sequence[str], strangers: Sequence[_Stranger]) -> Finding:
    wrong = [name for name in reached if name != PEER]
    if wrong:
        return Finding(
            about=ABOUT,
            verdict="bad",
            text=f"a job in {namespace} reached {', '.join(wrong)}",
            hint=HINT,
        )
    if PEER not in reached:
        return Finding(
            about=ABOUT,
            verdict="bad",
            text=f"members of a gang in {namespace} do not reach each other",
            hint="Check DNS, and that the network plugin applies the policy of the gang.",
        )
    others = " and ".join(one.namespace for one in strangers)
    return Finding(
        about=ABOUT,
        verdict="ok",
        text=f"a job in {namespace} reaches its gang, and from its first moment on neither "
        f"instance metadata, the API server nor pods of other users in {others}",
    )


def _api_servers(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """The address that this program uses, and the one inside the cluster."""
    found: dict[str, tuple[str, int]] = {}
    parts = urlsplit(cluster.host)
    if parts.hostname:
        found["the API server"] = (parts.hostname, parts.port or 443)
    inside = os.environ.get("KUBERNETES_SERVICE_HOST")
    if inside and inside != parts.hostname:
        port = int(os.environ.get("KUBERNETES_SERVICE_PORT", "443"))
        found["the API server inside the cluster"] = (inside, port)
    return found


def _freest(x: Examination) -> list[NodeReport]:
    """The two nodes with the most free CPUs."""
    used: dict[str, float] = {}
    for pod in x.cluster_pods:
        if pod.status.phase not in ("Succeeded", "Failed"):
            node = pod.spec.node_name
            used[node] = used.get(node, 0.0) + float(requests(pod, "cpu"))
    up = [node for node in x.inventory.nodes if node.state == "UP"]
    return sorted(up, key=lambda node: (used.get(node.name, 0.0) - node.cpus, node.name))[:2]


def _dispatch(
    number: int, nodes: Sequence[NodeReport], args: Sequence[str], clock: Clock
) -> Dispatch:
    """A job with a member on each of the nodes, one CPU and no GPU."""
    first = nodes[0]
    canary = Canary(
        number=number, node=first.name, gpu_type=first.gpu_type, gpus=0, cpus=first.cpus,
        mem_mib=first.mem_mib, until=clock.now(),
    )  # fmt: skip
    dispatch = canaries.dispatch_of(canary, 0)
    [member] = dispatch.members
    members = tuple(
        replace(
            member, rank=rank, node=node.name, gpu_type=node.gpu_type, node_cpus=node.cpus,
            node_mem_mib=node.mem_mib,
        )
        for rank, node in enumerate(nodes)
    )  # fmt: skip
    return replace(dispatch, members=members, script_digest="canary", args=tuple(args))


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def _waits(pod: Pod) -> str:
    for status in pod.status.container_statuses:
        if (waiting := status.state.waiting) is not None and waiting.reason:
            return f"{waiting.reason} {waiting.message}".strip()[:200]
    for one in pod.status.conditions:
        if one.status == "False" and one.message:
            return one.message[:200]
    return "kubelet has reported nothing"
