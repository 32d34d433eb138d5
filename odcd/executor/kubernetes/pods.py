"""A member as a pod."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from odcd.executor.kubernetes import dev_server_pods, identity, naming
from odcd.executor.kubernetes.environment import pod_environment
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.launch import JOB, RUN, command, literal
from odcd.executor.kubernetes.naming import Namespaces
from odcd.executor.kubernetes.pod_settings import PodSettings as PodSettings
from odcd.executor.kubernetes.shares import Share, share_of
from odcd.executor.kubernetes.tolerations import tolerations_of
from odcd.records.dispatch import Dispatch, Member

CONTAINER = "job"
SERVICE_ACCOUNT = "job"
PRIORITY_CLASS = "odc-job"
DEFAULT_MODE = 0o555
HOME = "/home"
RUN_MIB = 1024
"""For the script, if it was compressed, and small files of odc's own."""

Json = dict[str, Any]


def whole_seconds(grace: timedelta) -> int:
    """Round up to a pod's grace period, which is at least 1 s."""
    return max(1, math.ceil(grace.total_seconds()))


def namespace_of(dispatch: Dispatch, offers: Mapping[str, NodeOffer], own: Namespaces) -> str:
    """The namespace of an attempt. Members with EFA may lock memory, which the baseline level of
    the batch namespace forbids, like many rights that a dev server needs."""
    if dispatch.is_dev_server:
        return own.dev
    efa = any(share_of(m, _offer(m, offers)).efa for m in dispatch.members)
    return own.dev if efa else own.batch


def pod_of(
    dispatch: Dispatch,
    member: Member,
    submitted: Mapping[str, str],
    offers: Mapping[str, NodeOffer],
    settings: PodSettings,
    script: str | None = None,
    *,
    calls: bool = False,
) -> Json:
    """submitted: the environment as it was submitted. offers: of the nodes, by name. script: of a
    job, if it is part of the pod; None: it is in a ConfigMap. calls: it may call Slurm's
    commands."""
    namespace = namespace_of(dispatch, offers, settings.namespaces)
    offer = _offer(member, offers)
    # A dev server that exceeds a limit of storage would lose its home.
    share = share_of(member, offer, dispatch.tmp_mib, limited=not dispatch.is_dev_server)
    home = f"{HOME}/{naming.label(dispatch.user) or 'job'}"
    if dispatch.is_dev_server:
        home = dev_server_pods.HOME
        # The submitted environment belongs to the daemon's machine.
        submitted = {}
    variables = pod_environment(
        dispatch, member, submitted, cluster=settings.cluster_name, namespace=namespace,
        cluster_domain=settings.cluster_domain, home=home, efa=share.efa > 0,
    )  # fmt: skip
    spec = _spec(dispatch, member, share, namespace, settings)
    spec["tolerations"] = tolerations_of(settings.tolerated, offer.own_taints)
    if dispatch.is_dev_server:
        _add_dev_server(spec, dispatch, member, share, variables, namespace, settings)
    else:
        image = str(dispatch.options.get("image") or settings.image or "")
        calls = calls and member.rank == 0
        words = command(dispatch, member, script, calls=calls)
        spec["containers"] = [_container(dispatch, share, words, variables, image, home)]
        if script is not None:
            _leave_out(spec, "script")
        groups = settings.groups_of(dispatch)
        spec["securityContext"] = identity.security_context_of(dispatch, offer, groups)
    if len(dispatch.members) > 1:
        # No member starts before all pods exist.
        spec["schedulingGates"] = [{"name": naming.GATE}]
    metadata = _metadata(dispatch, member, namespace)
    if calls and member.rank == 0:
        metadata["annotations"][naming.CALLS] = "true"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    pod = settings.template_of(dispatch).apply(pod)
    if settings.user_namespaces and identity.has_own_users(dispatch, share, offer, spec):
        spec["hostUsers"] = False
    return pod


def _metadata(dispatch: Dispatch, member: Member, namespace: str) -> Json:
    return {
        "name": naming.pod_name(*dispatch.key, member.rank),
        "namespace": namespace,
        "labels": naming.labels(*dispatch.key, member.rank)
        | {
            naming.USER: naming.label(dispatch.user),
            naming.PARTITION: naming.label(dispatch.partition),
            naming.GPU_TYPE: naming.label(member.gpu_type),
            naming.NETWORK: naming.OWN_NETWORK,
        }
        | ({naming.KIND: naming.RESERVATION} if dispatch.is_dev_server else {}),
        "annotations": {
            **naming.IN_USE,
            naming.USER: dispatch.user,
            naming.JOB_NAME: dispatch.name,
            naming.ACCOUNT: dispatch.account,
            naming.PARTITION: dispatch.partition,
            naming.WORK_DIR: dispatch.work_dir,
            naming.TERM: str(dispatch.term),
            naming.MEMBERS: str(len(dispatch.members)),
            naming.NODE: member.node,
            naming.STARTED_AT: dispatch.started_at.isoformat(),
        },
    }


def _spec(
    dispatch: Dispatch, member: Member, share: Share, namespace: str, settings: PodSettings
) -> Json:
    """The part that pods of jobs and of dev servers share; it has no containers yet."""
    return {
        "hostname": naming.pod_name(*dispatch.key, member.rank),
        "subdomain": naming.service(namespace),
        "dnsConfig": {"searches": [naming.host_domain(namespace, settings.cluster_domain)]},
        "restartPolicy": "OnFailure" if dispatch.is_dev_server else "Never",
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "shareProcessNamespace": True,
        "priorityClassName": PRIORITY_CLASS,
        "terminationGracePeriodSeconds": settings.grace_s,
        "affinity": _on(member.node),
        "containers": [],
        "volumes": _volumes(dispatch, share, dev_server_pods.home_of(dispatch, member)),
    }


def _add_dev_server(
    spec: Json, dispatch: Dispatch, member: Member, share: Share, variables: Mapping[str, str],
    namespace: str, settings: PodSettings,
) -> None:  # fmt: skip
    """Add the parts that only a dev server's pod has."""
    domain = naming.host_domain(namespace, settings.cluster_domain)
    environment = dev_server_pods.environment_of(
        dispatch, member, variables, domain, settings.storage
    )
    image = str(dispatch.options.get("image") or settings.dev_image or "")
    spec["containers"] = [
        dev_server_pods.container_of(dispatch, share, environment, image, settings.storage)
    ]
    spec["securityContext"] = dev_server_pods.security_context_of(dispatch)
    if dev_server_pods.profiles(dispatch, share):
        # The scheduler and kubelet enforce it too: the pod has rights that others must not have.
        spec["nodeSelector"] = {dev_server_pods.PROFILING: "true"}
    if dev_server_pods.keeps_entrypoint(dispatch):
        # The image's program may require to be process 1.
        spec["shareProcessNamespace"] = False
    spec["volumes"] += dev_server_pods.volumes_of(dispatch, settings.storage)


def _leave_out(spec: Json, volume: str) -> None:
    [container] = spec["containers"]
    container["volumeMounts"] = [m for m in container["volumeMounts"] if m["name"] != volume]
    spec["volumes"] = [v for v in spec["volumes"] if v["name"] != volume]


def _container(
    dispatch: Dispatch, share: Share, words: Sequence[str], variables: Mapping[str, str],
    image: str, home: str,
) -> Json:  # fmt: skip
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": words,
        "workingDir": dispatch.work_dir,
        "env": [{"name": key, "value": literal(value)} for key, value in variables.items()],
        "resources": {"requests": share.requests, "limits": share.limits},
        "securityContext": _security(share),
        "volumeMounts": _mounts(share, home),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _offer(member: Member, offers: Mapping[str, NodeOffer]) -> NodeOffer:
    return offers.get(member.node) or NodeOffer(gpus=member.node_gpus, efa=0, hugepages_mib=0)


def _on(node: str) -> Json:
    """Pin the pod like DaemonSets do: the scheduler still binds it, so kubelet, volumes and devices
    are checked."""
    by_name = {"key": "metadata.name", "operator": "In", "values": [node]}
    selector = {"nodeSelectorTerms": [{"matchFields": [by_name]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def _security(share: Share) -> Json:
    capabilities: Json = {"drop": ["ALL"]}
    if share.efa:
        capabilities["add"] = ["IPC_LOCK"]
    return {"allowPrivilegeEscalation": False, "capabilities": capabilities}


def _mounts(share: Share, home: str) -> list[Json]:
    mounts: list[Json] = [
        {"name": "script", "mountPath": JOB, "readOnly": True},
        {"name": "run", "mountPath": RUN},
        {"name": "home", "mountPath": home},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    if share.hugepages_mib:
        mounts.append({"name": "hugepages", "mountPath": "/dev/hugepages"})
    return mounts


def _volumes(dispatch: Dispatch, share: Share, home: Json) -> list[Json]:
    script = {"name": naming.script_name(dispatch), "defaultMode": DEFAULT_MODE}
    volumes: list[Json] = [
        {"name": "script", "configMap": script},
        {"name": "run", "emptyDir": {"sizeLimit": f"{RUN_MIB}Mi"}},
        {"name": "home", **_limited(home, share)},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{share.shm_mib}Mi"}},
    ]
    if share.hugepages_mib:
        volumes.append({"name": "hugepages", "emptyDir": {"medium": "HugePages-2Mi"}})
    return volumes


def _limited(volume: Json, share: Share) -> Json:
    if "emptyDir" in volume and share.disk_mib:
        return {"emptyDir": {**volume["emptyDir"], "sizeLimit": f"{share.disk_mib}Mi"}}
    return volume
