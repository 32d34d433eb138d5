"""Checks that a cluster can build images from users' Dockerfiles, without changing it."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from odcd.builds.settings import BuildSettings
from odcd.doctor.host import Finding
from odcd.errors import BadRequest
from odcd.executor.kubernetes.build_jobs import BuildPlace, credential_of, job_of
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.records.build import Build

MANIFESTS = "Apply the manifests: kubectl apply --server-side -k k8s/overlays/production"
_EXAMPLE = Build(
    id=0, attempt=0, digest="0" * 64, target="registry.example/builds", dockerfile="Dockerfile",
    uid=0, made=False, started_at=datetime.fromtimestamp(0, UTC),
)  # fmt: skip


async def _credential(cluster: Cluster, own: BuildSettings) -> Finding:
    """Check the credential of builds: its key, and the right to pass it to them."""
    built = f"images are built for {own.registry}"
    if own.key is None:
        if own.secret is None:
            return Finding(about="builds", verdict="ok", text=built)
        return Finding(
            about="builds",
            verdict="note",
            text=f"{built}, and all builds push with one credential: there is no cache",
            hint="ODC_BUILD_KEY gives each build its own: docs/operating/security.md#builds",
        )
    from odcd.executor.kubernetes.build_credentials import read_key

    try:
        read_key(own.key)
        secret = credential_of(_EXAMPLE, own, '{"auths": {}}', "0")
        path = f"/api/v1/namespaces/{own.namespace}/secrets"
        await cluster.post(path, secret, [("dryRun", "All")])
    except (ApiRefused, BadRequest) as error:
        text = f"builds have no credential to push with: {error.message}"
        hint = error.hint if isinstance(error, BadRequest) else MANIFESTS
        return Finding(about="builds", verdict="bad", text=text, hint=hint)
    return Finding(about="builds", verdict="ok", text=f"{built}, each with a credential of its own")


async def examine_builds(cluster: Cluster, own: BuildSettings) -> AsyncIterator[Finding]:
    """Check that the cluster would accept the Job of a build, and reject a Job that is not a
    build."""
    if own.registry is None:
        yield Finding(
            about="builds",
            verdict="note",
            text="--dockerfile is refused: no registry is set for built images",
            hint="Set ODC_BUILD_REGISTRY, and ODC_BUILD_SECRET for the credential to push with.",
        )
        return
    path = f"/apis/batch/v1/namespaces/{own.namespace}/jobs"
    job = job_of(_EXAMPLE, BuildPlace(settings=own, term=0))
    try:
        await cluster.get(path, [("limit", 1)])
        await cluster.post(path, job, [("dryRun", "All")])
    except ApiRefused as error:
        if "only odcd makes" in error.message:
            yield Finding(
                about="builds",
                verdict="note",
                text="not tried: only odcd's own account may create Jobs of builds",
            )
            return
        yield Finding(
            about="builds",
            verdict="bad",
            text=f"the Job of a build would be refused: {error.message}",
            hint=f"It needs k8s/base/builds.yaml. {MANIFESTS}",
        )
        return
    yield await _credential(cluster, own)
    strange = copy.deepcopy(job)
    strange["spec"]["activeDeadlineSeconds"] = 86_400
    try:
        await cluster.post(path, strange, [("dryRun", "All")])
    except ApiRefused:
        return
    yield Finding(
        about="fences",
        verdict="bad",
        text=f"a Job that is not a build would be admitted in {own.namespace}",
        hint=f"The policies odc-build-jobs and odc-builds are missing, or not bound. {MANIFESTS}",
    )
