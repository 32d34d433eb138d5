"""Pods of other users of the cluster neither stop the daemon nor fill its memory.

odcd watches the pods of all namespaces, because they use the nodes. Everyone who may create a pod
in some namespace chooses its size.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration

from odcd.clock import SystemClock
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.informer import Mirror
from odcd.executor.kubernetes.inventory import take_inventory
from odcd.executor.kubernetes.objects import Node, Pod
from odcd.executor.kubernetes.tolerations import Terms

PATH = "/api/v1/pods"
MIB = 1024 * 1024
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def a_pod(name: str, version: int, *, json_mib: int = 0) -> bytes:
    """json_mib: the API server writes each `<` of a variable as \\u003c."""
    value = "\\u003c" * (json_mib * MIB // 6)
    meta = json.dumps(
        {"name": name, "namespace": "n", "uid": name, "resourceVersion": str(version)}
    )
    container = '{"name":"c","env":[{"name":"A","value":"' + value + '"}]}'
    return ('{"metadata":' + meta + ',"spec":{"containers":[' + container + "]}}").encode()


def a_list(pods: list[bytes], after: str = "") -> bytes:
    metadata = json.dumps({"resourceVersion": "1", "continue": after}).encode()
    return b'{"metadata":' + metadata + b',"items":[' + b",".join(pods) + b"]}"


@asynccontextmanager
async def a_mirror(answer: Answer) -> AsyncGenerator[Mirror[Pod]]:
    """Of an API server that answers like this."""
    app = web.Application()
    app.router.add_get(PATH, answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    cluster = Cluster(ApiClient(configuration))
    try:
        yield Mirror(cluster, PATH, Pod, SystemClock(), lambda before, after: None)
    finally:
        await cluster.close()
        await runner.cleanup()


def test_a_pod_of_many_megabytes_does_not_stop_the_daemon() -> None:
    """Before: aiohttp's LineTooLong at 4 MiB ended the process of every daemon at once."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(body=a_list([a_pod("first", 1)]))
        response = web.StreamResponse()
        await response.prepare(request)
        for number, (name, size) in enumerate((("large", 9), ("next", 0)), 2):
            pod = a_pod(name, number, json_mib=size)
            await response.write(b'{"type":"ADDED","object":' + pod + b"}\n")
        await asyncio.Event().wait()
        return response

    async def work() -> set[str]:
        async with a_mirror(answer) as mirror, asyncio.timeout(30):
            running = asyncio.create_task(mirror.run())
            while "n/next" not in mirror.items and not running.done():
                await asyncio.sleep(0.01)
            if running.done():
                running.result()
            running.cancel()
            await asyncio.wait([running])
        return set(mirror.items)

    assert asyncio.run(work()) == {"n/first", "n/large", "n/next"}


@pytest.mark.long
def test_many_large_pods_are_listed_in_small_pages() -> None:
    """Before: a page of 500 pods was read whole, 150 of which have more than the daemon's pod may
    use (1 GiB)."""
    pods = [a_pod(f"p{at}", 1, json_mib=9 if at < 12 else 0) for at in range(40)]
    sent: list[int] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        first, limit = int(request.query.get("continue", "0")), int(request.query["limit"])
        page = pods[first : first + limit]
        after = first + limit
        body = a_list(page, str(after) if after < len(pods) else "")
        response = web.StreamResponse()
        await response.prepare(request)
        sent.append(0)
        for at in range(0, len(body), MIB):
            await response.write(body[at : at + MIB])
            sent[-1] += min(MIB, len(body) - at)
        return response

    async def work() -> set[str]:
        async with a_mirror(answer) as mirror, asyncio.timeout(60):
            await mirror.list()
        return set(mirror.items)

    assert len(asyncio.run(work())) == len(pods)
    # 32 MiB are read of a page, and the connection's buffers take a few more.
    assert max(sent) < 48 * MIB


def test_pods_that_claim_to_be_of_a_daemonset_take_no_node_from_its_jobs() -> None:
    """Before: pods with such an owner, the name of the node, and requests above its size made odcd
    leave the node out. It was DOWN while one of them waited for kubelet's refusal, and after the
    grace period all jobs on it ended. Kubelet also keeps a pod that was resized to such a size.
    Then odc drained the node, and a smaller pod made it too small for jobs that use all of it."""
    node = {
        "metadata": {"name": "n1", "labels": {"GpuType": "h100"}},
        "status": {
            "allocatable": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    for requests in ({"cpu": "9k"}, {"memory": "8Ei"}, {"nvidia.com/gpu": "9"}, {"cpu": "3"}):
        pod = {
            "metadata": {
                "name": "fake", "namespace": "n",
                "ownerReferences": [{"kind": "DaemonSet", "name": "x"}],
            },
            "spec": {"nodeName": "n1", "containers": [{"resources": {"requests": requests}}]},
            "status": {"phase": "Pending"},
        }  # fmt: skip
        taken = take_inventory(
            [msgspec.convert(node, Node)],
            [msgspec.convert(pod, Pod)],
            lambda pod: False,
            {},
            Terms(),
        )
        [one] = taken.nodes
        assert (one.state, one.gpu_type, one.gpus, one.cpus) == ("UP", "h100", 8, 8)
        assert one.mem_mib == 64 * 1024
        # They use the node, as any other pod does.
        assert max(one.foreign_gpus, one.foreign_cpus, one.foreign_mem_mib // 8192) in (3, 8)
