"""A kubelet for tests: python -m tests.support.harness.controlplane.kubelet CONFIG

CONFIG is JSON: kubeconfig, folder, volumes, port, cert, key, nodes (manifests), lease_s. It
registers the nodes, keeps their leases, and runs the containers of the pods bound to them as
processes of this machine. One address of the loopback per pod; names of a headless service resolve
to them.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.support.harness.controlplane.kubelet.client import Client
from tests.support.harness.controlplane.kubelet.exec import FEATURE, serve_exec
from tests.support.harness.controlplane.kubelet.forward import serve_forward
from tests.support.harness.controlplane.kubelet.logs import now, rfc3339
from tests.support.harness.controlplane.kubelet.pod import PodWorker
from tests.support.harness.controlplane.kubelet.process import hostname

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Kubelet:
    """All nodes of one process."""

    def __init__(self, config: Mapping[str, Any], client: Client) -> None:
        self.client = client
        self.folder = Path(config["folder"])
        self.volumes = Path(config["volumes"])
        self._config = config
        self._nodes: dict[str, dict[str, Any]] = {
            node["metadata"]["name"]: node for node in config["nodes"]
        }
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._addresses: dict[str, tuple[str, dict[str, Any], bool]] = {}
        self._given = 0

    async def run(self) -> None:
        await self._serve()
        async with asyncio.TaskGroup() as group:
            for node in self._nodes.values():
                await self._register(node)
                group.create_task(self._beat(node["metadata"]["name"]))
            group.create_task(self._follow(group))

    # Nodes.

    async def _register(self, node: dict[str, Any]) -> None:
        name = node["metadata"]["name"]
        node["status"] |= {
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._config["port"]}},
            "conditions": [_ready()],
            "declaredFeatures": [FEATURE],
        }
        code, found = await self.client.request("POST", "/api/v1/nodes", node)
        if code == 409:
            await self.client.patch_status(
                f"/api/v1/nodes/{name}",
                node["status"],
                (await self.client.get(f"/api/v1/nodes/{name}"))["metadata"]["uid"],
            )
        elif code >= 400:
            raise SystemExit(f"node {name} not registered: {found}")

    async def _beat(self, name: str) -> None:
        """The lease; and the node reports that it is ready if another component marked it
        otherwise."""
        lease_s: int = self._config["lease_s"]
        while True:
            spec = {
                "holderIdentity": name,
                "leaseDurationSeconds": lease_s,
                "renewTime": rfc3339(now(), micro=True),
            }
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": name, "namespace": "kube-node-lease"},
                "spec": spec,
            }
            code, _ = await self.client.request(
                "PATCH", f"{_LEASES}/{name}", {"spec": spec}, "application/merge-patch+json"
            )
            if code == 404:
                await self.client.request("POST", _LEASES, lease)
            node = await self.client.get(f"/api/v1/nodes/{name}")
            if node is not None and not any(
                one["type"] == "Ready" and one["status"] == "True"
                for one in node["status"].get("conditions", [])
            ):
                await self.client.patch_status(
                    f"/api/v1/nodes/{name}", {"conditions": [_ready()]}, node["metadata"]["uid"]
                )
            await asyncio.sleep(lease_s / 4)

    # Pods.

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        async for kind, found in self.client.watch("/api/v1/pods"):
            if kind == "SYNC":
                there = {pod["metadata"]["uid"] for pod in found}
                for uid in self._workers.keys() - there:
                    self._workers[uid].forget()
                for pod in found:
                    self._see(pod, group)
            elif kind == "DELETED":
                if worker := self._workers.get(found["metadata"]["uid"]):
                    worker.forget()
            elif kind != "BOOKMARK":
                self._see(found, group)

    def _see(self, pod: dict[str, Any], group: asyncio.TaskGroup) -> None:
        uid = pod["metadata"]["uid"]
        if worker := self._workers.get(uid):
            worker.update(pod)
        elif pod["spec"].get("nodeName") in self._nodes:
            worker = self._workers[uid] = PodWorker(self, pod)
            group.create_task(self._run(worker), name=f"pod-{pod['metadata']['name']}")

    async def _run(self, worker: PodWorker) -> None:
        try:
            await worker.run()
        finally:
            self._workers.pop(worker.uid, None)
            if self._addresses.pop(worker.uid, None):
                self._write_hosts()

    # Names and addresses.

    async def address(self, pod: Mapping[str, Any]) -> tuple[str, Path]:
        meta, subdomain = pod["metadata"], pod["spec"].get("subdomain")
        self._given += 1
        ip = f"127.{20 + self._config['port'] % 200}.{self._given // 250}.{self._given % 250 + 1}"
        path = f"/api/v1/namespaces/{meta['namespace']}/services/{subdomain}"
        service = await self.client.get(path) if subdomain else None
        named = service is not None and service["spec"].get("clusterIP") == "None"
        self._addresses[meta["uid"]] = (ip, dict(pod), named)
        self._write_hosts()
        return ip, self._hosts_file(meta["uid"])

    def _hosts_file(self, uid: str) -> Path:
        return self.folder / "pods" / uid / "hosts"

    def _write_hosts(self) -> None:
        """In place: the containers have the file mounted. A pod's own short name is its alone."""
        shared = ["127.0.0.1 localhost"]
        for ip, pod, named in self._addresses.values():
            if named:
                one = f"{hostname(pod)}.{pod['spec']['subdomain']}"
                space = pod["metadata"]["namespace"]
                tails = ("", f".{space}", f".{space}.svc", f".{space}.svc.cluster.local")
                shared.append(" ".join((ip, *(one + tail for tail in tails))))
        for uid, (ip, pod, _) in self._addresses.items():
            text = "\n".join((*shared, f"{ip} {hostname(pod)}", ""))
            self._hosts_file(uid).write_text(text)

    # The requests of the API server.

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._log)
        app.router.add_route("*", "/exec/{namespace}/{pod}/{container}", self._exec)
        app.router.add_route("*", "/portForward/{namespace}/{pod}", self._forward)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(self._config["cert"], self._config["key"])
        await web.TCPSite(runner, "127.0.0.1", self._config["port"], ssl_context=tls).start()

    async def _log(self, request: web.Request) -> web.StreamResponse:
        where = request.match_info
        log = self._worker(request).logs.get(where["container"])
        if log is None:
            text = f'container "{where["container"]}" in pod "{where["pod"]}" is waiting to start'
            return web.Response(status=400, text=text + "\n")
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        async for piece in log.read(request.query):
            await answer.write(piece)
        await answer.write_eof()
        return answer

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        process = self._worker(request).running.get(request.match_info["container"])
        if process is None:
            raise web.HTTPNotFound(text="container not found\n")
        return await serve_exec(request, process)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        self._worker(request)
        return await serve_forward(request)

    def _worker(self, request: web.Request) -> PodWorker:
        where = request.match_info
        for worker in self._workers.values():
            meta = worker.pod["metadata"]
            if (meta["namespace"], meta["name"]) == (where["namespace"], where["pod"]):
                return worker
        raise web.HTTPNotFound(text=f'pod "{where["pod"]}" not found\n')


def _ready() -> dict[str, str]:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": rfc3339(now()),
        "lastTransitionTime": rfc3339(now()),
    }


async def _main(config: Mapping[str, Any]) -> None:
    async with Client(Path(config["kubeconfig"])) as client:
        await Kubelet(config, client).run()


if __name__ == "__main__":
    asyncio.run(_main(json.loads(Path(sys.argv[1]).read_text())))
