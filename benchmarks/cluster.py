"""Tools of the Kubernetes benchmarks: a watch of pods, plain creates, CPU times of processes."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from odcd.clock import SystemClock
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.informer import Mirror
from odcd.executor.kubernetes.inventory import take_inventory
from odcd.executor.kubernetes.objects import Node, Pod
from tests.support.harness.controlplane.api import Api, Manifest
from tests.support.harness.controlplane.watch import Watch

TICKS_S = os.sysconf("SC_CLK_TCK")
NAMESPACE = "gpu-batch"
WAIT_S = 300.0
PLAIN = 900_000_000
FIRST = {"odc.dev/attempt": "1", "odc.dev/rank": "0"}


class Seen:
    """When pods of jobs were created and ended, in the order in which they were created."""

    def __init__(self, api: Api) -> None:
        self._names: list[str] = []
        self._created: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self._last: Manifest = {}
        self._changed = threading.Condition()
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        self._watch = Watch(
            api, path, self._on_pod, labelSelector="app.kubernetes.io/managed-by=odcd"
        )

    def __enter__(self) -> Seen:
        self._watch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.__exit__()

    def _on_pod(self, at: float, kind: str, pod: Manifest) -> None:
        name = pod["metadata"]["name"]
        with self._changed:
            if name not in self._created:
                self._names.append(name)
                self._created[name] = at
                self._last = pod
            if kind == "DELETED" or pod["status"].get("phase") in ("Succeeded", "Failed"):
                self._ended.setdefault(name, at)
            self._changed.notify_all()

    def count(self) -> int:
        return len(self._names)

    def created(self, number: int) -> float:
        """When the pod with that number, from 1, was seen; waits for it."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._names) >= number, WAIT_S), (
                f"{len(self._names)} pods instead of {number}"
            )
            return self._created[self._names[number - 1]]

    def ended(self, number: int) -> float:
        with self._changed:
            name = self._names[number - 1]
            assert self._changed.wait_for(lambda: name in self._ended, WAIT_S), name
            return self._ended[name]

    def sample(self) -> Manifest:
        """The manifest of the last pod, as it was sent."""
        pod = copy.deepcopy(self._last)
        spec = {
            key: value for key, value in pod["spec"].items() if key not in ("nodeName", "priority")
        }
        metadata = {key: pod["metadata"][key] for key in ("namespace", "labels", "annotations")}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def plain(number: int) -> str:
    """The name that odcd would give an attempt."""
    return f"odc-{PLAIN + number}-1"


async def burst(
    kubeconfig: Path, sample: Manifest, count: int, at_once: int, *, scripts: bool = False
) -> float:
    """Create this many copies of the pod on one node after the other; scripts: with a ConfigMap
    each. Returns the seconds it took."""
    cluster = await Cluster.connect(kubeconfig)
    numbers = iter(range(count))
    text = json.dumps(sample)
    own = sample["spec"]["hostname"].removesuffix("-0")
    script = {"data": {"script": "#!/bin/bash\n" + "# what the job does\n" * 14}}

    async def client() -> None:
        for number in numbers:
            # Replace the name everywhere: otherwise the pod would not be admitted.
            pod = json.loads(text.replace(own, plain(number)))
            pod["metadata"]["name"] = pod["spec"]["hostname"]
            pod["metadata"]["labels"] |= {"odc.dev/job-id": str(PLAIN + number), **FIRST}
            on = f"h100-{500 + number % 500:04d}"
            pinned = {"key": "metadata.name", "operator": "In", "values": [on]}
            pod["spec"]["affinity"] = {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchFields": [pinned]}]}}}  # fmt: skip
            await cluster.post(f"/api/v1/namespaces/{NAMESPACE}/pods", pod)
            if scripts:
                made = {"apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": plain(number)}, **script}  # fmt: skip
                await cluster.post(f"/api/v1/namespaces/{NAMESPACE}/configmaps", made)

    try:
        begin = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(client())
        took_s = time.perf_counter() - begin
        # They belong to no job.
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        await _each(
            count, at_once,
            lambda n: cluster.delete(f"{path}/{plain(n)}-0", {"gracePeriodSeconds": 0}),
        )  # fmt: skip
        return took_s
    finally:
        await cluster.close()


async def _each(count: int, at_once: int, act: Any) -> None:
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            await act(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(some())


async def listing(kubeconfig: Path, runs: int) -> list[float]:
    """The seconds of each listing of nodes and pods, including the computed inventory."""
    cluster = await Cluster.connect(kubeconfig)
    took: list[float] = []
    try:
        for _ in range(runs + 1):
            clock = SystemClock()
            nodes = Mirror(cluster, "/api/v1/nodes", Node, clock, lambda *_: None)
            pods = Mirror(cluster, "/api/v1/pods", Pod, clock, lambda *_: None)
            begin = time.perf_counter()
            await asyncio.gather(nodes.list(), pods.list())
            take_inventory(nodes.items.values(), pods.items.values(), lambda _: True, {})
            took.append(time.perf_counter() - begin)
    finally:
        await cluster.close()
    return took[1:]


def cpu_s(pid: int) -> float:
    """The CPU time of one process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


def all_cpu_s() -> float:
    """The CPU time of the whole machine, without idle time."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / TICKS_S


def whole_cpu_s(pid: int) -> float:
    """The CPU time of a process with all its descendants, including those that have ended."""
    total = 0.0
    for one in (pid, *_children(pid)):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15])) / TICKS_S
    return total


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} has no memory")
