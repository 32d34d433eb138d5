"""Creates and removes the pods of attempts. Every call can be repeated.

All pods of a gang are created before the first may start: a scheduling gate holds them back until
all pods, their network policy and the script exist.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from odcd.errors import RunnerDown
from odcd.executor.kubernetes import networks
from odcd.executor.kubernetes.attempt_objects import (
    dev_server_objects,
    inline_script,
    script_of,
)
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.dev_server_pods import keeps_entrypoint
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.launch import may_call
from odcd.executor.kubernetes.naming import STARTED_AT, Key, log_facts, pod_name
from odcd.executor.kubernetes.node_ports import name_of, port_in, service_of
from odcd.executor.kubernetes.objects import Object, Pod
from odcd.executor.kubernetes.pods import Json, PodSettings, namespace_of, pod_of
from odcd.records.dev_server import DevServerKeys
from odcd.records.dispatch import Dispatch

log = logging.getLogger(__name__)

AT_ONCE = 32
CONFLICT = 409
NOT_FOUND = 404


class _Made(Object):
    class Meta(Object):
        uid: str

    metadata: Meta


class PodWriter:
    def __init__(
        self, cluster: Cluster, settings: PodSettings, leads: Callable[[], bool] = lambda: True
    ) -> None:
        """leads: whether it is certain that no other daemon leads; otherwise nothing is created."""
        self._cluster = cluster
        self._settings = settings
        self._leads = leads
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def make(
        self, dispatch: Dispatch, texts: Mapping[str, str], offers: Mapping[str, NodeOffer],
        but: Collection[int] = (), keys: DevServerKeys | None = None,
    ) -> int | None:  # fmt: skip
        """Create the pods, the network and the script of an attempt, then lift the scheduling
        gates. Return the node port of a dev server, if enabled.

        but: ranks that started or ended since the order was sent; their pods may be gone, and would
        run a second time. keys: of a dev server. Raises ApiRefused for the first rejected request,
        or RunnerDown.
        """
        submitted = msgspec.json.decode(texts[dispatch.environment_digest], type=dict[str, str])
        namespace = namespace_of(dispatch, offers, self._settings.namespaces)
        inline = inline_script(dispatch, texts)
        calls = may_call(dispatch, texts[dispatch.script_digest])
        pods = [
            pod_of(dispatch, member, submitted, offers, self._settings, inline, calls=calls)
            for member in dispatch.members
            if member.state == "starting" and member.rank not in but
        ]
        made = await _all(self._make_pod(namespace, pod) for pod in pods)
        uids = [uid for uid, _ in made]
        # If rank 0 has started, its script exists: no member starts without it.
        if dispatch.members[0].state == "starting" and 0 not in but:
            if networks.has_network(dispatch):
                names = [pod["metadata"]["name"] for pod in pods]
                owners = dict(zip(names, uids, strict=True))
                policy = networks.policy_of(dispatch, namespace, owners)
                await self._make(networks.path_of(namespace), policy)
            if keys is not None:
                storage = self._settings.storage
                beside = dev_server_objects(dispatch, keys, namespace, uids[0], storage)
            elif inline is None or not made[0][1]:
                # A pod that exists already may be of an earlier release, and need it.
                script = texts[dispatch.script_digest]
                beside = [("configmaps", script_of(dispatch, script, namespace, uids[0]))]
            else:
                beside = []
            for place, body in beside:
                await self._make(f"/api/v1/namespaces/{namespace}/{place}", body)
        if len(dispatch.members) > 1:
            await _all(self._open_gate(namespace, pod["metadata"]["name"]) for pod in pods)
        if self._settings.node_ports and keys is not None and not keeps_entrypoint(dispatch):
            return await self._make_port(dispatch, namespace, uids[0]) if uids else None
        return None

    async def _make_port(self, dispatch: Dispatch, namespace: str, owner_uid: str) -> int | None:
        """Return None if the API server has no port left or refuses: SSH through the daemon does
        not need it."""
        path = f"/api/v1/namespaces/{namespace}/services"
        try:
            answer = await self._make(path, service_of(dispatch, namespace, owner_uid))
            return port_in(answer or await self._cluster.get(f"{path}/{name_of(dispatch)}"))
        except ApiRefused as error:
            log.warning("kubernetes.no_port", extra={**dispatch.log_facts, "why": str(error)})
            return None

    async def _make_pod(self, namespace: str, pod: Json) -> tuple[str, bool]:
        """Create the pod. Return its uid, or that of the existing one, and whether it is new."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        answer = await self._make(path, pod)
        if answer is not None:
            return msgspec.json.decode(answer, type=_Made).metadata.uid, True
        name: str = pod["metadata"]["name"]
        found = await self.find(namespace, name)
        placed_at = pod["metadata"]["annotations"][STARTED_AT]
        if found is None or found.metadata.annotations.get(STARTED_AT) != placed_at:
            # A pod of another database, or of this one before it was restored.
            if found is not None:
                log.warning("kubernetes.name_taken", extra=log_facts(found))
                await self.remove(found, 0)
            raise RunnerDown(f"another pod has the name {name}", "It is being removed.")
        return found.metadata.uid, False

    async def _make(self, path: str, body: Json) -> bytes | None:
        """Return None if the object exists."""
        async with self._turns:
            if not self._leads():
                # Another leader may have removed a pod of this name after it ran.
                raise RunnerDown("it is not certain that this daemon still leads")
            try:
                return await self._cluster.post(path, body)
            except ApiRefused as error:
                if error.status != CONFLICT or error.reason != "AlreadyExists":
                    raise
                return None

    async def _open_gate(self, namespace: str, name: str) -> None:
        async with self._turns:
            await self._cluster.patch(
                f"/api/v1/namespaces/{namespace}/pods/{name}", {"spec": {"schedulingGates": None}}
            )

    async def remove(self, pod: Pod, grace_s: float, *, unchanged: bool = False) -> bool:
        """grace_s: from TERM to KILL; 0 removes the pod without asking its node. unchanged: only if
        the pod is still as we saw it, so that one that started meanwhile continues. Return whether
        it is being removed. Raises ApiRefused, RunnerDown."""
        conditions = {"uid": pod.metadata.uid}
        if unchanged:
            conditions["resourceVersion"] = pod.metadata.resource_version
        options = {"preconditions": conditions, "gracePeriodSeconds": math.ceil(grace_s)}
        path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
        async with self._turns:
            try:
                await self._cluster.delete(path, options)
            except ApiRefused as error:
                if error.status == NOT_FOUND:
                    return True
                if error.status != CONFLICT or not (unchanged or await self._is_gone(pod)):
                    raise
                return not unchanged
        return True

    async def _is_gone(self, pod: Pod) -> bool:
        """Whether the pod is gone, or another one has its name."""
        found = await self.find(pod.metadata.namespace, pod.metadata.name)
        return found is None or found.metadata.uid != pod.metadata.uid

    async def find(self, namespace: str, name: str) -> Pod | None:
        """Return None if the API server reports that there is none. Raises ApiRefused,
        RunnerDown."""
        try:
            body = await self._cluster.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        except ApiRefused as error:
            if error.status == NOT_FOUND:
                return None
            raise
        return msgspec.json.decode(body, type=Pod)

    async def find_member(self, key: Key) -> Pod | None:
        """Find the member's pod in either namespace. See find()."""
        for namespace in (self._settings.namespaces.batch, self._settings.namespaces.dev):
            pod = await self.find(namespace, pod_name(*key))
            if pod is not None:
                return pod
        return None


async def _all(calls: Any) -> list[Any]:
    """Return all results; raise the first error after all calls have ended."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers
