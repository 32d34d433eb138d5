"""The pods of jobs as odcd makes them, written out by hand: what admission must let pass."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MIGRATION = Path(__file__).parents[2] / "sql" / "migrations" / "0001_queue.sql"
ROW = re.compile(
    r"^\s*\('(?P<name>[\w-]+)',\s*'[^']*',\s*(?P<gpus>\d+),\s*\S+,\s*(?P<cpus>\d+),"
    r"\s*(?P<mem_mib>\d+),\s*(?P<efa>\d+),\s*'(?P<instance>[\w.-]+)'\)",
    re.M,
)
EFA_LEAST_GPUS = 8
"""Only types whose nodes are joined by EFA into one machine get it: a whole node of eight GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuType:
    name: str
    gpus: int
    cpus: int
    mem_mib: int
    efa: int


def gpu_types() -> list[GpuType]:
    """The types that a new database knows, read off its migration."""
    text = MIGRATION.read_text("utf-8")
    table = text[text.index("insert into gpu_type") :].partition(";")[0]
    return [
        GpuType(
            name=row["name"],
            gpus=int(row["gpus"]),
            cpus=int(row["cpus"]),
            mem_mib=int(row["mem_mib"]),
            efa=int(row["efa"]),
        )
        for row in ROW.finditer(table)
    ]


def a_pod(
    gpu_type: GpuType, gpus: int, *, job: int = 7, attempt: int = 1, rank: int = 0, gang: int = 1
) -> dict[str, Any]:
    """One member; whole nodes of an EFA type are in gpu-dev, all else in gpu-batch."""
    whole = gpus == gpu_type.gpus
    efa = gpu_type.efa if whole and gpus >= EFA_LEAST_GPUS else 0
    namespace = "gpu-dev" if efa else "gpu-batch"
    name, held = f"odc-{job}-{attempt}-{rank}", f"odc-{job}-{attempt}"
    share = 1.0 if whole else gpus / gpu_type.gpus
    memory = f"{int(gpu_type.mem_mib * share * 0.9) - (5120 if efa else 0)}Mi"
    cpus = max(1, int(gpu_type.cpus * share) - 1)
    resources = {"cpu": str(cpus), "memory": memory}
    volumes: list[dict[str, Any]] = [
        {"name": "job", "configMap": {"name": held, "defaultMode": 0o555}},
        {"name": "run", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": memory}},
        {"name": "home", "emptyDir": {}},
    ]
    mounts = [
        {"name": "job", "mountPath": "/odc/job", "readOnly": True},
        {"name": "run", "mountPath": "/odc/run"},
        {"name": "shm", "mountPath": "/dev/shm"},
        {"name": "home", "mountPath": "/home/alice"},
    ]
    capabilities: dict[str, list[str]] = {"drop": ["ALL"]}
    if gpus:
        resources["nvidia.com/gpu"] = str(gpus)
    if efa:
        resources |= {"vpc.amazonaws.com/efa": str(efa), "hugepages-2Mi": "5120Mi"}
        volumes.append({"name": "hugepages", "emptyDir": {"medium": "HugePages-2Mi"}})
        mounts.append({"name": "hugepages", "mountPath": "/dev/hugepages"})
        capabilities["add"] = ["IPC_LOCK"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                "app.kubernetes.io/name": "odc",
                "app.kubernetes.io/component": "job",
                "app.kubernetes.io/managed-by": "odcd",
                "odc.dev/job-id": str(job),
                "odc.dev/attempt": str(attempt),
                "odc.dev/rank": str(rank),
                "odc.dev/user": "alice",
                "odc.dev/partition": "main",
                "odc.dev/gpu-type": gpu_type.name,
            },
            "annotations": {"odc.dev/user": "alice@example.com", "odc.dev/term": "3"},
        },
        "spec": {
            "hostname": name,
            "subdomain": f"{namespace}-headless",
            "serviceAccountName": "job",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "shareProcessNamespace": True,
            "priorityClassName": "odc-job",
            "terminationGracePeriodSeconds": 30,
            "affinity": _pinned_to(f"{gpu_type.name}-node-{rank}"),
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
            ],
            **({"schedulingGates": [{"name": "odc.dev/gang"}]} if gang > 1 else {}),
            "securityContext": {
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "job",
                    "image": "registry.example.com/train:2026.11",
                    "command": ["/odc/job/script"],
                    "envFrom": [{"configMapRef": {"name": held}}],
                    "env": [{"name": "ODC_RANK", "value": str(rank)}],
                    "resources": {
                        "limits": {k: v for k, v in resources.items() if k != "cpu"},
                        "requests": resources,
                    },
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": capabilities,
                    },
                    "volumeMounts": mounts,
                }
            ],
            "volumes": volumes,
        },
    }


def changed(pod: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy with one thing different, as in changed(pod, "spec/containers/0/image", "x").

    None takes it away; an index one past the end appends; ~1 is a slash within a key.
    """
    copied = copy.deepcopy(pod)
    parts = [part.replace("~1", "/") for part in path.split("/")]
    *way, last = [int(part) if part.isdigit() else part for part in parts]
    place: Any = copied
    for part in way:
        place = place[part] if isinstance(part, int) else place.setdefault(part, {})
    if value is None:
        del place[last]
    elif isinstance(place, list) and last == len(place):
        place.append(value)
    else:
        place[last] = value
    return copied


def _pinned_to(node: str) -> dict[str, Any]:
    only = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = [{"matchFields": [only]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


H100 = next(each for each in gpu_types() if each.name == "h100")
SMALL = a_pod(H100, 1)
WHOLE = a_pod(H100, 8)
NAMESPACES = {"gpu-batch": SMALL, "gpu-dev": WHOLE}
