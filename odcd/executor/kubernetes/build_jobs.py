"""A build as a Kubernetes Job: a client of BuildKit, with rootless BuildKit next to it.

The two containers share no processes. The Dockerfile's commands run in BuildKit's container. The
registry's credential is in the client's, which answers BuildKit's requests for it. Builds run on
nodes without GPUs. k8s/base/admission-builds.yaml admits this shape and no other.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from odcd.builds.repositories import repository_of, shared_push
from odcd.builds.settings import LIMIT, BuildSettings
from odcd.executor.kubernetes import naming
from odcd.executor.kubernetes.build import PROGRAM, WRONG
from odcd.executor.kubernetes.launch import literal
from odcd.records.build import Build

CONTAINER = "build"
"""The client: its log is the build's log."""
BUILDKIT = "buildkit"
SERVICE_ACCOUNT = "build"
PRIORITY_CLASS = "odc-job"
COMPONENT = "build"
BUILD_ID = f"{naming.DOMAIN}/build-id"
REPOSITORY = f"{naming.DOMAIN}/repository"
"""The repository of the image, by the name that nodes pull from."""
TRIES_AGAIN = 2
KEPT_S = 3600
"""How long a finished Job stays, for operators who want to inspect it."""
ARCH = "amd64"
UID = 1000
"""The user that rootless BuildKit's image is made for."""
PLACE = "/odc/build"
CREDENTIALS = "/odc/registry"
SOCKET = "/odc/buildkit"
CLIENT_REQUESTS = {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "1Gi"}
CLIENT_LIMITS = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "4Gi"}
REQUESTS = {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "50Gi"}
LIMITS = {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "500Gi"}
STATE = "/home/user/.local/share/buildkit"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlace:
    """gpu_instances: the cloud's instance types with GPUs, on which no builds run."""

    settings: BuildSettings
    term: int
    gpu_instances: Sequence[str] = ()


def job_name(build: Build) -> str:
    """The name includes a hash of the build, because a restored database may reuse build ids."""
    mark = hashlib.sha256(f"{build.digest} {build.target}".encode()).hexdigest()
    return f"odc-build-{build.id}-{build.attempt}-{mark[: naming.MARK_LENGTH]}"


def labels(build: Build) -> dict[str, str]:
    return {
        naming.NAME: "odc",
        naming.COMPONENT: COMPONENT,
        naming.MANAGED_BY: "odcd",
        BUILD_ID: str(build.id),
        naming.ATTEMPT: str(build.attempt),
    }


def job_of(build: Build, place: BuildPlace) -> Json:
    own = place.settings
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(build),
            "namespace": own.namespace,
            "labels": labels(build),
            "annotations": {
                naming.TERM: str(place.term),
                f"{naming.DOMAIN}/digest": build.digest,
                REPOSITORY: repository_of(build, own),
            },
        },
        "spec": {
            "activeDeadlineSeconds": round(LIMIT.total_seconds()),
            "backoffLimit": TRIES_AGAIN,
            "ttlSecondsAfterFinished": KEPT_S,
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "FailJob",
                        "onExitCodes": {
                            "containerName": CONTAINER, "operator": "In", "values": [WRONG]
                        },
                    },
                    # Its node failed, or was needed for another pod: that does not count as a try.
                    {
                        "action": "Ignore",
                        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                    },
                ]
            },
            "template": {
                "metadata": {"labels": labels(build), "annotations": naming.IN_USE},
                "spec": _pod(build, place),
            },
        },
    }  # fmt: skip


def context_of(build: Build, own: BuildSettings, context: bytes, owner_uid: str) -> Json:
    """The ConfigMap owned by the Job. owner_uid: the Job's."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": job_name(build),
            "namespace": own.namespace,
            "labels": labels(build),
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": job_name(build),
                    "uid": owner_uid,
                }
            ],
        },
        "immutable": True,
        "data": {"build.sh": PROGRAM},
        "binaryData": {"context.tar.gz": b64encode(context).decode()},
    }


def credential_of(build: Build, own: BuildSettings, config: str, owner_uid: str) -> Json:
    """The Secret with the build's own credential, owned by the Job. config: of BuildKit's
    client."""
    made = context_of(build, own, b"", owner_uid)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": made["metadata"],
        "immutable": True,
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": config},
    }


def _pod(build: Build, place: BuildPlace) -> Json:
    own = place.settings
    volumes: list[Json] = [
        {"name": "context", "configMap": {"name": job_name(build), "defaultMode": 0o444}},
        {"name": "work", "emptyDir": {}},
        {"name": "state", "emptyDir": {}},
        {"name": "socket", "emptyDir": {}},
    ]
    secret = job_name(build) if own.key is not None else own.secret
    if secret is not None:
        key = {"key": ".dockerconfigjson", "path": "config.json"}
        named = {"secretName": secret, "defaultMode": 0o440, "items": [key]}
        volumes.append({"name": "registry", "secret": named})
    return {
        "restartPolicy": "Never",
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": PRIORITY_CLASS,
        "terminationGracePeriodSeconds": 5,
        "affinity": _nodes(place),
        "securityContext": {"fsGroup": UID, "fsGroupChangePolicy": "OnRootMismatch"},
        **({"hostUsers": False} if own.user_namespaces else {}),
        **({"imagePullSecrets": [{"name": own.secret}]} if own.secret else {}),
        # A sidecar: it ends with the client.
        "initContainers": [_buildkit(own)],
        "containers": [_client(build, own)],
        "volumes": volumes,
    }


def _buildkit(own: BuildSettings) -> Json:
    """Runs the Dockerfile's commands. It has neither the credential nor a volume that contains
    it."""
    return {
        "name": BUILDKIT,
        "image": own.image,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        # Its process sandbox needs privileges that builds do not have: docs/operating/security.md
        "args": ["--addr", f"unix://{SOCKET}/buildkitd.sock", "--oci-worker-no-process-sandbox"],
        "resources": {"requests": REQUESTS, "limits": LIMITS},
        # BuildKit needs this to be root in its own user namespace, and only there.
        "securityContext": {
            "runAsUser": UID,
            "runAsGroup": UID,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": True,
            "seccompProfile": {"type": "Unconfined"},
            "appArmorProfile": {"type": "Unconfined"},
        },
        "volumeMounts": [
            {"name": "state", "mountPath": STATE},
            {"name": "socket", "mountPath": SOCKET},
        ],
    }


def _client(build: Build, own: BuildSettings) -> Json:
    repository = repository_of(build, own, push=True)
    variables = {
        "ODC_IMAGE": f"{repository}:{build.digest[:32]}",
        "ODC_REPOSITORY": build.target,
        "ODC_PUSHED_TO": shared_push(build, own),
        "ODC_DOCKERFILE": build.dockerfile,
        "ODC_PLATFORM": f"linux/{ARCH}",
        "ODC_REGISTRY_HTTP": "on" if own.registry_http else "off",
        "BUILDKIT_HOST": f"unix://{SOCKET}/buildkitd.sock",
    }
    mounts: list[Json] = [
        {"name": "context", "mountPath": PLACE, "readOnly": True},
        {"name": "work", "mountPath": "/scratch"},
        {"name": "socket", "mountPath": SOCKET},
    ]
    if own.key is not None:
        # The layers of this user's last build. Only with a credential of each build's own can no
        # other build write there.
        variables["ODC_CACHE"] = f"{repository}:cache"
    if own.key is not None or own.secret is not None:
        variables["DOCKER_CONFIG"] = CREDENTIALS
        mounts.append({"name": "registry", "mountPath": CREDENTIALS, "readOnly": True})
    return {
        "name": CONTAINER,
        "image": own.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", f"{PLACE}/build.sh"],
        "env": [{"name": name, "value": literal(text)} for name, text in variables.items()],
        "resources": {"requests": CLIENT_REQUESTS, "limits": CLIENT_LIMITS},
        "securityContext": {
            "runAsUser": UID,
            "runAsGroup": UID,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _nodes(place: BuildPlace) -> Json:
    expressions: list[Json] = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": [ARCH]},
        {"key": "nvidia.com/gpu.present", "operator": "NotIn", "values": ["true"]},
    ]
    if place.gpu_instances:
        types = sorted(place.gpu_instances)
        expressions.append(
            {"key": "node.kubernetes.io/instance-type", "operator": "NotIn", "values": types}
        )
    for label in place.settings.nodes:
        key, _, value = label.partition("=")
        expressions.append({"key": key, "operator": "In", "values": [value]})
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
