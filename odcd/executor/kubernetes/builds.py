"""Builds as Jobs of a cluster: create, observe and delete them. Every call can be repeated."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from odcd.builds.settings import LIMIT
from odcd.builds.steps import clean, error_of, step_of
from odcd.errors import RunnerDown, WrongState
from odcd.executor.kubernetes import naming
from odcd.executor.kubernetes.build_jobs import (
    COMPONENT,
    CONTAINER,
    REPOSITORY,
    BuildPlace,
    Json,
    context_of,
    credential_of,
    job_name,
    job_of,
)
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.objects import (
    Condition,
    Event,
    Meta,
    Object,
    Pod,
    Terminated,
)
from odcd.records.build import Build, BuildLook

log = logging.getLogger(__name__)

JOB_OF = "batch.kubernetes.io/job-name"
TAIL_LINES = 500
CONFLICT, NOT_FOUND = 409, 404
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


Sign = Callable[[Build], str]


class _JobStatus(Object):
    conditions: tuple[Condition, ...] = ()


class _Job(Object):
    metadata: Meta = msgspec.field(default_factory=Meta)
    status: _JobStatus = msgspec.field(default_factory=_JobStatus)

    def condition(self, kind: str) -> Condition | None:
        for one in self.status.conditions:
            if one.type == kind and one.status == "True":
                return one
        return None

    @property
    def over(self) -> bool:
        return self.condition("Complete") is not None or self.condition("Failed") is not None


class _Jobs(Object):
    items: tuple[_Job, ...] = ()


class _Pods(Object):
    items: tuple[Pod, ...] = ()


class _Events(Object):
    items: tuple[Event, ...] = ()


class BuildJobs:
    """See odcd.builds.worker.Builder."""

    def __init__(
        self, cluster: Cluster, place: BuildPlace, leads: Callable[[], bool],
        sign: Sign | None = None,
    ) -> None:  # fmt: skip
        """leads: whether it is certain that no other daemon leads. sign: returns the configuration
        with the credential of a build; None: builds have no credential of their own."""
        self._sign = sign
        self._cluster = cluster
        self._place = place
        self._leads = leads
        namespace = place.settings.namespace
        self._jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._core = f"/api/v1/namespaces/{namespace}"
        self._ours = f"{naming.MANAGED_BY}=odcd,{naming.COMPONENT}={COMPONENT}"

    async def close(self) -> None:
        await self._cluster.close()

    async def survey(self, builds: Sequence[Build]) -> dict[int, BuildLook]:
        jobs = msgspec.json.decode(await self._list(self._jobs), type=_Jobs).items
        named = {job_name(build): build for build in builds}
        for job in jobs:
            if job.metadata.name not in named and not job.over:
                await self._remove(job)
        known = [job for job in jobs if job.metadata.name in named]
        pods: dict[str, list[Pod]] = {}
        if known:
            found = msgspec.json.decode(await self._list(f"{self._core}/pods"), type=_Pods)
            for pod in found.items:
                pods.setdefault(pod.metadata.labels.get(JOB_OF, ""), []).append(pod)
        looks = await asyncio.gather(
            *(self._look(named[j.metadata.name], j, pods.get(j.metadata.name, [])) for j in known)
        )
        return {named[job.metadata.name].id: look for job, look in zip(known, looks, strict=True)}

    async def _list(self, path: str) -> bytes:
        try:
            return await self._cluster.get(path, [("labelSelector", self._ours)])
        except ApiRefused as error:
            raise RunnerDown(
                f"builds cannot be listed: {error.message}",
                "`odcd doctor --executor kubernetes` shows what the cluster lacks.",
            ) from error

    async def _remove(self, job: _Job) -> None:
        """Delete a Job that no one waits for, but never one that a later leader made."""
        term = job.metadata.annotations.get(naming.TERM, "")
        if job.metadata.deletion_timestamp is not None or not self._leads():
            return
        if term.isdecimal() and int(term) > self._place.term:
            return
        log.info("build.removed", extra={"job": job.metadata.name})
        options: Json = {
            "propagationPolicy": "Background",
            "preconditions": {"uid": job.metadata.uid},
        }
        try:
            await self._cluster.delete(f"{self._jobs}/{job.metadata.name}", options)
        except ApiRefused as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise RunnerDown(f"a build cannot be removed: {error.message}") from error

    async def begin(self, build: Build, context: bytes) -> None:
        # The Job first, so that it can own the ConfigMap; its pod waits for the ConfigMap.
        uid = await self._make(self._jobs, job_of(build, self._place))
        own = self._place.settings
        if own.key is not None:
            if self._sign is None:
                raise WrongState(
                    f"builds have no credential to push with: {own.key} could not be read",
                    "Operators create the Secret odc-build-key, and restart odcd.",
                )
            secret = credential_of(build, own, self._sign(build), uid)
            await self._make(f"{self._core}/secrets", secret)
        await self._make(f"{self._core}/configmaps", context_of(build, own, context, uid))

    async def _make(self, path: str, body: Json) -> str:
        """Create an object and return its uid. If it exists, return the uid of the Job of that
        name."""
        try:
            answer = await self._cluster.post(path, body)
        except ApiRefused as error:
            if error.status == CONFLICT and error.reason == "AlreadyExists":
                return await self._uid_of_job(body["metadata"]["name"])
            if error.passing or error.reason == "Conflict":
                raise RunnerDown(f"a build cannot be created: {error.message}") from error
            raise WrongState(
                f"Kubernetes refuses to build it: {error.message}",
                "`odcd doctor --executor kubernetes` shows what the cluster lacks.",
            ) from error
        return msgspec.json.decode(answer, type=_Job).metadata.uid

    async def _uid_of_job(self, name: str) -> str:
        try:
            answer = await self._cluster.get(f"{self._jobs}/{name}")
        except ApiRefused as error:
            raise RunnerDown(f"a build cannot be read: {error.message}") from error
        return msgspec.json.decode(answer, type=_Job).metadata.uid

    # -- observation -----------------------------------------------------------------------------

    async def _look(self, build: Build, job: _Job, pods: list[Pod]) -> BuildLook:
        pods.sort(key=lambda pod: pod.metadata.creation_timestamp or _LONG_AGO)
        last = pods[-1] if pods else None
        log_text = None if last is None else await self._log(last)
        if job.condition("Complete") is not None:
            image = next((found for pod in pods if (found := _image_of(pod))), None)
            if image is None:
                return BuildLook(
                    state="lost", error="it did not report the image that it built", log=log_text
                )
            # As the Job was made: an older odcd may have made it.
            repository = job.metadata.annotations.get(REPOSITORY, build.target)
            return BuildLook(state="done", image=f"{repository}@{image}", log=log_text)
        failed = job.condition("Failed")
        if failed is not None:
            return BuildLook(state="failed", error=_why(failed, last, log_text), log=log_text)
        step = step_of(log_text) if log_text else None
        if step is None:
            step = await self._no_pod(job) if last is None else _wait_of(last)
        return BuildLook(state="going", step=step, log=log_text)

    async def _no_pod(self, job: _Job) -> str | None:
        """The reason why Kubernetes does not create the Job's pod, if it reports one."""
        of_job = f"involvedObject.uid={job.metadata.uid},reason=FailedCreate"
        try:
            body = await self._cluster.get(f"{self._core}/events", [("fieldSelector", of_job)])
        except (ApiRefused, RunnerDown):
            return None
        events = msgspec.json.decode(body, type=_Events).items
        return f"its pod cannot be created: {events[-1].message}"[:300] if events else None

    async def _log(self, pod: Pod) -> str | None:
        """The end of the log; None: there is none, or it is unavailable now."""
        path = f"{self._core}/pods/{pod.metadata.name}/log"
        try:
            body = await self._cluster.get(
                path, [("container", CONTAINER), ("tailLines", TAIL_LINES)]
            )
        except (ApiRefused, RunnerDown):
            return None
        return clean(body.decode(errors="replace")) or None


def _ended(pod: Pod) -> Terminated | None:
    for status in pod.status.container_statuses:
        if status.name == CONTAINER:
            return status.state.terminated
    return None


def _image_of(pod: Pod) -> str | None:
    ended = _ended(pod)
    found = _DIGEST.search(ended.message) if ended is not None and ended.exit_code == 0 else None
    return found[0] if found else None


def _why(failed: Condition, pod: Pod | None, log_text: str | None) -> str:
    ended = None if pod is None else _ended(pod)
    # Kubelet's excerpt of the log belongs to this end, and exists even if the log is unavailable.
    excerpt = error_of((ended.message if ended is not None else "") or log_text or "")
    why = failed.message
    if failed.reason == "DeadlineExceeded":
        why = f"it did not finish within {LIMIT // timedelta(minutes=1)} minutes"
    elif (ended is not None and ended.reason == "OOMKilled") or _out_of_memory(pod):
        why = "it ran out of memory"
    elif pod is not None and pod.status.reason:
        why = f"{pod.status.reason}: {pod.status.message}"
    elif excerpt:
        return excerpt
    return f"{why}\n{excerpt}".strip() if excerpt else why


def _out_of_memory(pod: Pod | None) -> bool:
    """Whether BuildKit, which runs next to the container that ended, ran out of memory."""
    return pod is not None and any(
        state.terminated is not None and state.terminated.reason == "OOMKilled"
        for status in pod.status.init_container_statuses
        for state in (status.state, status.last_state)
    )


def _wait_of(pod: Pod) -> str | None:
    """The reason why a pod's container does not run yet."""
    for status in pod.status.container_statuses:
        if status.state.waiting is not None and status.state.waiting.reason:
            waiting = status.state.waiting
            return f"{waiting.reason} {waiting.message}".strip()[:200]
    for one in pod.status.conditions:
        if one.type == "PodScheduled" and one.status == "False":
            return f"its build waits for a node: {one.message}"[:200]
    return None
