"""One pod on a node that runs containers as processes: from bound to removed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tests.support.harness.controlplane.kubelet import env, volumes
from tests.support.harness.controlplane.kubelet.client import Client
from tests.support.harness.controlplane.kubelet.env import NotYet
from tests.support.harness.controlplane.kubelet.logs import ContainerLog, now, rfc3339
from tests.support.harness.controlplane.kubelet.process import Process
from tests.support.harness.controlplane.kubelet.status import (
    Ended,
    State,
    container_id,
    image_problem,
    pod_status,
    waiting,
)

_AGAIN_S = 0.5
_PULL_AGAIN_S = 1.0
_PROBE_S = 0.3
T = TypeVar("T")


class Home(Protocol):
    """The parts of the kubelet that a pod needs."""

    client: Client
    folder: Path
    volumes: Path
    """Where folders stand for volumes of a cloud."""

    async def address(self, pod: Mapping[str, Any]) -> tuple[str, Path]:
        """The pod's IP and its hosts file."""
        ...


class Stopped(Exception):
    """The pod was deleted, or its deadline passed, during a wait."""


class PodWorker:
    """Follows its latest manifest; `update` gives a newer one, `forget` reports that it was
    deleted."""

    def __init__(self, home: Home, pod: dict[str, Any]) -> None:
        self._home = home
        self.pod = pod
        meta = pod["metadata"]
        self.uid: str = meta["uid"]
        self._path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        self._folder = home.folder / "pods" / self.uid
        self._stopping = asyncio.Event()
        self._overdue = self._gone = False
        self._started_at = rfc3339(now())
        self._ip = ""
        self._states: dict[str, State] = {}
        self.running: dict[str, Process] = {}
        self._sidecars: list[Process] = []
        self.logs: dict[str, ContainerLog] = {}
        self._probes: list[asyncio.Task[None]] = []
        self._last: dict[str, State] = {}
        self._restarts: dict[str, int] = {}
        self._unready: set[str] = set()
        """Containers whose readiness probe has not succeeded yet."""
        self._seen_deletion(pod)

    def update(self, pod: dict[str, Any]) -> None:
        self.pod = pod
        self._seen_deletion(pod)

    def forget(self) -> None:
        """Removed by force: its processes end at once."""
        for process in (*self.running.values(), *self._sidecars):
            process.kill()
        self._gone = True
        self._stopping.set()

    def _seen_deletion(self, pod: Mapping[str, Any]) -> None:
        if pod["metadata"].get("deletionTimestamp"):
            self._stopping.set()

    async def run(self) -> None:
        """Returns when the pod is removed from the API server."""
        if self.pod["status"].get("phase") not in ("Succeeded", "Failed"):
            if self.pod["status"].get("containerStatuses"):
                await self._lost()
            else:
                await self._live()
        if not self._gone and not self.pod["metadata"].get("deletionTimestamp"):
            self._stopping.clear()  # its deadline had set it
        await self._stopping.wait()
        await self._home.client.request(
            "DELETE", self._path, {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
        )

    async def _live(self) -> None:
        self._folder.mkdir(parents=True)
        self._states = {one["name"]: waiting("ContainerCreating") for one in self._containers}
        deadline_s = self.pod["spec"].get("activeDeadlineSeconds")
        overdue = asyncio.create_task(self._expire(deadline_s)) if deadline_s else None
        try:
            await self._report("Pending")
            await self._images()
            self._ip, hosts = await self._unless_stopped(self._home.address(self.pod))
            made = await self._volumes()
            for container in self.pod["spec"].get("initContainers", []):
                await self._start_sidecar(container, made, hosts)
            for container in self._containers:
                await self._start(container, made, hosts)
            if self.running:
                await self._report("Running")
            await self._unless_stopped(self._all_ended())
            while await self._begin_anew(made, hosts):
                await self._unless_stopped(self._all_ended())
        except Stopped:
            await self._stop()
        finally:
            if overdue is not None:
                overdue.cancel()
            for process in self._sidecars:
                process.kill()
        await self._finish()

    async def _start_sidecar(
        self, container: dict[str, Any], made: dict[str, dict[str, Any]], hosts: Path
    ) -> None:
        """It ends with the others. Its status is not reported, and it is not restarted."""
        assert container["restartPolicy"] == "Always", "other init containers are not played here"
        process = await self._process(container, made, hosts)
        failed = await process.start()
        if failed:
            raise AssertionError(failed)
        self._sidecars.append(process)

    async def _begin_anew(self, made: dict[str, dict[str, Any]], hosts: Path) -> bool:
        """Restart failed containers in place if the pod's policy says so."""
        failed = [
            one
            for one in self._containers
            if self.pod["spec"].get("restartPolicy") == "OnFailure"
            and self._states[one["name"]].get("terminated", {}).get("exitCode", 0) != 0
        ]
        for container in failed:
            name: str = container["name"]
            self.running.pop(name, None)
            self._last[name] = self._states[name]
            self._restarts[name] = self._restarts.get(name, 0) + 1
            self._states[name] = waiting("CrashLoopBackOff", "back-off restarting failed container")
            await self._report("Running")
            await self._unless_stopped(asyncio.sleep(_AGAIN_S))
            await self._start(container, made, hosts)
            await self._report("Running")
        return bool(failed)

    async def _probe(self, name: str, port: int, process: Process) -> None:
        """All containers here have the machine's network."""
        while self.running.get(name) is process:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                answers = False
            else:
                answers = True
                writer.close()
            if answers == (name in self._unready) and self.running.get(name) is process:
                self._unready ^= {name}
                await self._report("Running")
            await asyncio.sleep(_PROBE_S)

    @property
    def _containers(self) -> list[dict[str, Any]]:
        return self.pod["spec"]["containers"]

    async def _images(self) -> None:
        secret = bool(self.pod["spec"].get("imagePullSecrets"))
        for one in self._containers:
            while problem := image_problem(one["image"], secret):
                for found in problem:
                    await self._wait(found, [one], _PULL_AGAIN_S)

    async def _volumes(self) -> dict[str, dict[str, Any]]:
        """Waits for the ConfigMaps, as kubelet does, with the pod in ContainerCreating."""
        while True:
            needed = volumes.needed_volume_configmaps(self.pod)
            found = await self._objects("configmaps", needed)
            keys = volumes.needed_secrets(self.pod)
            secrets = await self._objects("secrets", keys)
            claims = await self._claims()
            if needed <= found.keys() and keys <= secrets.keys() and claims is not None:
                try:
                    return volumes.materialise(self.pod, self._folder, found, secrets, claims)
                except NotYet as missing:
                    print(self._path, missing, flush=True)
            await self._unless_stopped(asyncio.sleep(_AGAIN_S))

    async def _claims(self) -> dict[str, Path] | None:
        """None: one of them is not bound yet."""
        needed = volumes.needed_claims(self.pod)
        claims = await self._objects("persistentvolumeclaims", needed)
        if any(
            name not in claims or claims[name]["status"].get("phase") != "Bound" for name in needed
        ):
            return None
        found: dict[str, Path] = {}
        for name, claim in claims.items():
            path = f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}"
            volume = await self._home.client.get(path)
            if volume is None:
                return None
            found[name] = volumes.attached(volume, self._home.volumes)
        return found

    async def _objects(self, kind: str, names: set[str]) -> dict[str, Any]:
        namespace = self.pod["metadata"]["namespace"]
        root = f"/api/v1/namespaces/{namespace}/{kind}"
        looked = [(name, await self._home.client.get(f"{root}/{name}")) for name in sorted(names)]
        return {name: found for name, found in looked if found is not None}

    async def _start(
        self, container: dict[str, Any], made: dict[str, dict[str, Any]], hosts: Path
    ) -> None:
        while True:
            try:
                process = await self._process(container, made, hosts)
                break
            except NotYet as missing:
                await self._wait(missing, [container], _AGAIN_S)
        name: str = container["name"]
        failed = await process.start()
        self.logs[name] = process.log
        if failed:
            argv0 = process.spec["argv"][0]
            message = f'exec: "{argv0}": {failed}: unknown'
            self._states[name] = Ended(
                code=128,
                reason="StartError",
                message="failed to create containerd task: failed to create shim task: OCI runtime"
                f" create failed: runc create failed: unable to start container process: {message}",
            ).state(container_id(self.pod, name))
            return
        self.running[name] = process
        self._states[name] = {"running": {"startedAt": process.started_at}}
        probe = container.get("readinessProbe", {}).get("tcpSocket")
        if probe:
            self._unready.add(name)
            self._probes.append(asyncio.create_task(self._probe(name, probe["port"], process)))

    async def _process(
        self, container: dict[str, Any], made: dict[str, dict[str, Any]], hosts: Path
    ) -> Process:
        found = await self._objects("configmaps", env.needed_configmaps(container))
        data = {name: one.get("data", {}) for name, one in found.items()}
        return Process.of(
            self.pod,
            container,
            env.environment(container, data, self._field, Process.base_env(self.pod)),
            mounts=[
                *volumes.mounts(container, made),
                {"source": str(hosts), "target": "/etc/hosts", "read_only": False},
            ],
            folder=self._folder,
        )

    def _field(self, path: str) -> str:
        now_known = {"podIP": self._ip, "hostIP": "127.0.0.1"}
        return env.pod_field({**self.pod, "status": now_known}, path)

    async def _all_ended(self) -> None:
        for name, process in list(self.running.items()):
            self._states[name] = (await process.ended()).state(container_id(self.pod, name))

    async def _stop(self) -> None:
        """TERM to all, then KILL to those that are left when the grace period is over."""
        meta, spec = self.pod["metadata"], self.pod["spec"]
        grace_s = meta.get("deletionGracePeriodSeconds", spec["terminationGracePeriodSeconds"])
        for process in self.running.values():
            process.terminate()
        try:
            await asyncio.wait_for(self._all_ended(), grace_s)
        except TimeoutError:
            for process in self.running.values():
                process.kill()
            await self._all_ended()

    async def _finish(self) -> None:
        self.running.clear()
        for name, state in self._states.items():
            if "waiting" in state:
                self._states[name] = _never_ran(self.pod, name)
        codes = [state["terminated"]["exitCode"] for state in self._states.values()]
        if self._overdue:
            message = "Pod was active on the node longer than the specified deadline"
            await self._report("Failed", "DeadlineExceeded", message)
        else:
            await self._report("Failed" if any(codes) else "Succeeded")

    async def _lost(self) -> None:
        """It ran under a kubelet before this one: the machine was off in between."""
        for one in self._containers:
            self._states[one["name"]] = _never_ran(self.pod, one["name"])
        await self._report("Failed")

    async def _expire(self, deadline_s: int) -> None:
        await asyncio.sleep(deadline_s)
        self._overdue = True
        self._stopping.set()

    async def _wait(self, missing: NotYet, containers: list[dict[str, Any]], for_s: float) -> None:
        for one in containers:
            self._states[one["name"]] = waiting(missing.reason, missing.message)
        await self._report("Pending")
        await self._unless_stopped(asyncio.sleep(for_s))

    async def _report(self, phase: str, reason: str = "", message: str = "") -> None:
        status = pod_status(
            self.pod,
            phase,
            self._states,
            ip=self._ip,
            started_at=self._started_at,
            reason=reason,
            message=message,
            last=self._last,
            restarts=self._restarts,
            unready=self._unready,
        )
        await self._home.client.patch_status(self._path, status, self.uid)

    async def _unless_stopped(self, work: Awaitable[T]) -> T:
        """The result of `work`; raises Stopped, and cancels it, if the pod must stop first."""
        task = asyncio.ensure_future(work)
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            stopping.cancel()
            return task.result()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        raise Stopped


def _never_ran(pod: Mapping[str, Any], name: str) -> State:
    return Ended(
        code=137,
        reason="ContainerStatusUnknown",
        message="The container could not be located when the pod was terminated",
    ).state(container_id(pod, name))
