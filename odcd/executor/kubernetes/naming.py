"""Names, labels and annotations of the objects that odc makes in a cluster, and how to read
them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from odcd.executor.kubernetes.objects import Pod
from odcd.records.dispatch import Dispatch

DOMAIN = "odc.dev"
JOB_ID = f"{DOMAIN}/job-id"
ATTEMPT = f"{DOMAIN}/attempt"
RANK = f"{DOMAIN}/rank"
USER = f"{DOMAIN}/user"
PARTITION = f"{DOMAIN}/partition"
GPU_TYPE = f"{DOMAIN}/gpu-type"
TERM = f"{DOMAIN}/term"
JOB_NAME = f"{DOMAIN}/job-name"
ACCOUNT = f"{DOMAIN}/account"
WORK_DIR = f"{DOMAIN}/work-dir"
MEMBERS = f"{DOMAIN}/members"
NODE = f"{DOMAIN}/node"
"""The node that the pod is pinned to."""
STARTED_AT = f"{DOMAIN}/started-at"
"""When the database placed the attempt; distinguishes it from another attempt of the same name."""
KIND = f"{DOMAIN}/kind"
RESERVATION = "reservation"
CALLS = f"{DOMAIN}/calls"
"""The job may call Slurm's commands in this pod."""
GATE = f"{DOMAIN}/gang"
NETWORK = f"{DOMAIN}/network"
OWN_NETWORK = "own"
"""The value of NETWORK for pods that only members of the same gang reach. Pods of older daemons
lack the label: a policy lets them reach each other until they end."""
DISK = "odc-volume-"
"""The prefix of disk claims; the rest is the number of the volume in the database."""

NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
MANAGED_BY = "app.kubernetes.io/managed-by"
OURS = {NAME: "odc", COMPONENT: "job", MANAGED_BY: "odcd"}

IN_USE = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
"""Annotations of pods: Karpenter and the Cluster Autoscaler do not remove their nodes."""

MAX_LABEL = 63
MARK_LENGTH = 10
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_POD = re.compile(r"^odc-([0-9]{1,18})-([0-9]{1,9})-([0-9]{1,6})$")

Attempt = tuple[int, int]
"""Job, attempt."""
Key = tuple[int, int, int]
"""Job, attempt, rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespaces:
    """batch: jobs that the baseline Pod Security level admits. dev: jobs that need more rights,
    which an admission policy restricts instead."""

    batch: str = "gpu-batch"
    dev: str = "gpu-dev"

    def __contains__(self, name: str) -> bool:
        return name in (self.batch, self.dev)


def pod_name(job_id: int, attempt: int, rank: int) -> str:
    return f"odc-{job_id}-{attempt}-{rank}"


def script_name(dispatch: Dispatch) -> str:
    """The name of the ConfigMap with an attempt's script. It differs for an attempt of the same
    number in another or restored database, whose ConfigMap may still exist."""
    seed = f"{dispatch.script_digest} {dispatch.started_at.isoformat()}"
    mark = hashlib.sha256(seed.encode()).hexdigest()[:MARK_LENGTH]
    return f"odc-{dispatch.job_id}-{dispatch.attempt}-{mark}"


def key_of(pod: Pod) -> Key | None:
    """The member that a pod belongs to; None: the pod is not odc's."""
    if pod.metadata.labels.get(MANAGED_BY) != "odcd":
        return None
    found = _POD.match(pod.metadata.name)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def log_facts(pod: Pod) -> dict[str, object]:
    """A pod in the log, with its job, its node and its user as far as they are known."""
    key, labels = key_of(pod), pod.metadata.labels
    facts = {
        "pod": pod.key,
        "job_id": key[0] if key else None,
        "node": pod.spec.node_name,
        "user": pod.metadata.annotations.get(USER) or labels.get(USER),
    }
    return {name: value for name, value in facts.items() if value}


def member_facts(key: Key) -> dict[str, object]:
    """A member in the log, of which no pod is known."""
    return {"job_id": key[0], "attempt": key[1], "rank": key[2]}


def is_dev_server(pod: Pod) -> bool:
    """Whether the pod belongs to a dev server."""
    return pod.metadata.labels.get(KIND) == RESERVATION


def has_disk(pod: Pod) -> bool:
    """Whether the pod's home is a disk. The disk may not exist yet while the pod waits for it."""
    claims = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return any(claim is not None and claim.claim_name.startswith(DISK) for claim in claims)


def label(text: str) -> str:
    """Convert a text to a label value: invalid characters become a dash, cut to 63 characters. The
    annotation of the same name has the full text."""
    return _UNSAFE.sub("-", text)[:MAX_LABEL].strip("-._")


def labels(job_id: int, attempt: int, rank: int | None) -> dict[str, str]:
    own = {JOB_ID: str(job_id), ATTEMPT: str(attempt)}
    return OURS | own | ({} if rank is None else {RANK: str(rank)})


def host_domain(namespace: str, cluster_domain: str) -> str:
    return f"{service(namespace)}.{namespace}.svc.{cluster_domain}"


def service(namespace: str) -> str:
    """The headless service that gives the pods of a namespace their host names."""
    return f"{namespace}-headless"
