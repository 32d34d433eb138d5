"""Which pods the jobs' namespaces let in, on a real API server: odcd's own, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders.pods import (
    DEV_SERVER,
    H100,
    NAMESPACES,
    SMALL,
    WHOLE,
    GpuType,
    a_pod,
    changed,
    gpu_types,
)
from tests.support.harness.kube import Kube, as_list


@pytest.mark.parametrize("part", ["one GPU", "whole node"])
@pytest.mark.parametrize("gpu_type", gpu_types(), ids=lambda each: each.name)
def test_a_pod_of_every_gpu_type_is_admitted(odcd: Kube, gpu_type: GpuType, part: str) -> None:
    pod = a_pod(gpu_type, gpu_type.gpus if part == "whole node" else min(1, gpu_type.gpus), gang=2)
    created = odcd.run("create", "-f", "-", given=pod)
    try:
        assert (created.returncode, created.stderr) == (0, "")
    finally:
        odcd.run(
            "delete", "--grace-period=0", "--wait=true", "--ignore-not-found", "-f", "-", given=pod
        )


@pytest.mark.parametrize("part", ["one GPU", "whole node"])
@pytest.mark.parametrize("gpu_type", gpu_types(), ids=lambda each: each.name)
def test_a_dev_server_of_every_gpu_type_is_admitted(
    odcd: Kube, gpu_type: GpuType, part: str
) -> None:
    """POD-01: root in its container, and nothing of the node."""
    gpus = gpu_type.gpus if part == "whole node" else min(1, gpu_type.gpus)
    assert odcd.refusal(a_pod(gpu_type, gpus, gang=2, dev_server=True)) == ""


def test_a_dev_server_that_keeps_its_entrypoint_is_admitted(odcd: Kube) -> None:
    """IMG-18"""
    assert odcd.refusal(a_pod(H100, 1, dev_server=True, ask={"preserve_entrypoint": True})) == ""


PROFILING: dict[str, object] = {"labels": {"nsight": "true"}}


def test_sys_admin_is_for_dev_servers_on_nodes_for_profiling(odcd: Kube) -> None:
    """SEC-05: which their node selector makes sure of."""
    pod = a_pod(H100, 1, dev_server=True, ask=PROFILING)
    assert "SYS_ADMIN" in str(pod)
    assert odcd.refusal(pod) == ""
    for changes in ({"nsight": "false"}, {}):
        assert "capability" in odcd.refusal(changed(pod, "spec/nodeSelector", changes))
    without = a_pod(H100, 0, dev_server=True, ask=PROFILING)
    assert "SYS_ADMIN" not in str(without)
    cheat = changed(without, "spec/containers/0/securityContext/capabilities/add/12", "SYS_ADMIN")
    assert "capability" in odcd.refusal(changed(cheat, "spec/nodeSelector", {"nsight": "true"}))
    batch = changed(WHOLE, "spec/containers/0/securityContext/capabilities/add", ["SYS_ADMIN"])
    assert "capability" in odcd.refusal(changed(batch, "spec/nodeSelector", {"nsight": "true"}))


# The differences from one of our dev servers.
STRANGE_DEV_SERVER: dict[str, tuple[str, object, str]] = {
    "a job's label": ("metadata/labels/odc.dev~1kind", "batch", "one container"),
    "a job's container": ("spec/containers/0/name", "job", "one container"),
    "another's keys": (
        "spec/volumes/5", {"name": "keys", "secret": {"secretName": "odc-8-1-0123456789"}},
        "volumes are",
    ),
    "the database's secret": (
        "spec/volumes/5", {"name": "keys", "secret": {"secretName": "odc-db-app"}}, "volumes are",
    ),
    "hostPath": ("spec/volumes/5", {"name": "keys", "hostPath": {"path": "/"}}, "volumes are"),
    "privileged": ("spec/containers/0/securityContext/privileged", True, "privileged"),
    "SYS_ADMIN": (
        "spec/containers/0/securityContext/capabilities/add/12", "SYS_ADMIN", "capability",
    ),
    "NET_RAW": ("spec/containers/0/securityContext/capabilities/add/12", "NET_RAW", "capability"),
    "IPC_LOCK without EFA": (
        "spec/containers/0/securityContext/capabilities/add/12", "IPC_LOCK", "capability",
    ),
    "capabilities kept": (
        "spec/containers/0/securityContext/capabilities/drop", ["NET_RAW"], "drops ALL",
    ),
    "a user": ("spec/securityContext/runAsUser", 1000, "runs as its user"),
    "unconfined": ("spec/securityContext/seccompProfile/type", "Unconfined", "eccomp"),
    "restarts always": ("spec/restartPolicy", "Always", "restart policy"),
    "another's port": (
        "spec/containers/0/readinessProbe/tcpSocket", {"port": 22}, "port 2222",
    ),
    "another's host": (
        "spec/containers/0/readinessProbe/tcpSocket", {"port": 2222, "host": "10.0.0.1"},
        "port 2222",
    ),
    "a command as probe": (
        "spec/containers/0/readinessProbe",
        {"exec": {"command": ["true"]}}, "port 2222",
    ),
    "host's network": ("spec/hostNetwork", True, "host"),
    "with a token": ("spec/automountServiceAccountToken", True, "has no token"),
}  # fmt: skip


@pytest.mark.parametrize("how", STRANGE_DEV_SERVER)
def test_a_dev_server_that_differs_is_refused_with_the_reason(odcd: Kube, how: str) -> None:
    path, value, reason = STRANGE_DEV_SERVER[how]
    refusal = odcd.refusal(changed(DEV_SERVER, path, value))
    assert reason in refusal, refusal or "admitted"


def test_a_dev_server_is_refused_where_jobs_are(odcd: Kube) -> None:
    strange = changed(changed(DEV_SERVER, "metadata/namespace", "gpu-batch"), "spec/subdomain",
                      "gpu-batch-headless")  # fmt: skip
    assert odcd.refusal(strange)


def container(pod: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    return changed(pod, f"spec/containers/0/{path}", value)


# The difference from one of our pods, and the text of the refusal.
STRANGE: dict[str, tuple[str, object, str]] = {
    "another name": ("metadata/name", "train", "odc-<job>-<attempt>-<rank>"),
    "another job's label": ("metadata/labels/odc.dev~1job-id", "8", "odc-<job>-<attempt>-<rank>"),
    "another hostname": ("spec/hostname", "x", "odc-<job>-<attempt>-<rank>"),
    "another subdomain": ("spec/subdomain", "x", "subdomain"),
    "without managed-by": ("metadata/labels/app.kubernetes.io~1managed-by", None, "labelled"),
    "another account": ("spec/serviceAccountName", "default", "service account job|not found"),
    "with a token": ("spec/automountServiceAccountToken", True, "has no token"),
    "host's network": ("spec/hostNetwork", True, "host"),
    "host's processes": ("spec/hostPID", True, "host|HostPID"),
    "host's IPC": ("spec/hostIPC", True, "host"),
    "host's port": ("spec/containers/0/ports", [{"containerPort": 80, "hostPort": 80}], "host"),
    "DNS of its own": ("spec/dnsConfig", {"nameservers": ["192.0.2.1"]}, "cluster's DNS"),
    "two containers": (
        "spec/containers/1",
        {"name": "b", "image": "b:1", "securityContext": {"allowPrivilegeEscalation": False}},
        "one container",
    ),
    "init container": ("spec/initContainers", [{"name": "b", "image": "b:1"}], "one container"),
    "container's name": ("spec/containers/0/name", "main", "one container"),
    "privileged": (
        "spec/containers/0/securityContext",
        {"privileged": True, "capabilities": {"drop": ["ALL"]}},
        "privileged",
    ),
    "escalation": (
        "spec/containers/0/securityContext/allowPrivilegeEscalation",
        True,
        "may not escalate",
    ),
    "escalation unsaid": (
        "spec/containers/0/securityContext/allowPrivilegeEscalation",
        None,
        "may not escalate",
    ),
    "capabilities kept": (
        "spec/containers/0/securityContext/capabilities/drop",
        ["NET_RAW"],
        "drops ALL",
    ),
    "container's user": ("spec/containers/0/securityContext/runAsUser", 0, "leaves user"),
    "container's profile": (
        "spec/containers/0/securityContext/seccompProfile",
        {"type": "Unconfined"},
        "seccomp|profiles to the pod",
    ),
    "root": ("spec/securityContext/runAsUser", 0, "neither of them 0"),
    "root's group": ("spec/securityContext/runAsGroup", 0, "neither of them 0"),
    "no user": ("spec/securityContext/runAsUser", None, "neither of them 0"),
    "unconfined": ("spec/securityContext/seccompProfile/type", "Unconfined", "eccomp"),
    "sysctl": (
        "spec/securityContext/sysctls",
        [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
        "runs as its user",
    ),
    "hostPath": (
        "spec/volumes/0",
        {"name": "script", "hostPath": {"path": "/etc"}},
        "hostPath|volumes are",
    ),
    "secret": (
        "spec/volumes/0",
        {"name": "script", "secret": {"secretName": "odc-db-app"}},
        "volumes are",
    ),
    "token by volume": (
        "spec/volumes/0",
        {"name": "script", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        "volumes are",
    ),
    "another job's script": (
        "spec/volumes/0",
        {"name": "script", "configMap": {"name": "odc-8-1-0123456789"}},
        "volumes are",
    ),
    "memory without a size": (
        "spec/volumes/3/emptyDir",
        {"medium": "Memory"},
        "volumes are",
    ),
    "another job's environment": (
        "spec/containers/0/envFrom",
        [{"configMapRef": {"name": "odc-8-1-0123456789"}}],
        "the environment comes",
    ),
    "environment of a secret": (
        "spec/containers/0/envFrom",
        [{"secretRef": {"name": "odc-db-app"}}],
        "the environment comes",
    ),
    "variable of a secret": (
        "spec/containers/0/env",
        [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "the environment comes",
    ),
    "all GPUs by variable": (
        "spec/containers/0/env",
        [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
        "NVIDIA_VISIBLE_DEVICES",
    ),
    "bound already": ("spec/nodeName", "h100-node-0", "pinned"),
    "not pinned": ("spec/affinity", {}, "pinned"),
    "two terms": (
        "spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/1",
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        "pinned",
    ),
    "another scheduler": ("spec/schedulerName", "mine", "pinned"),
    "tolerates all": ("spec/tolerations/0", {"operator": "Exists"}, "tolerations"),
    "another gate": ("spec/schedulingGates", [{"name": "example.com/x"}], "gate"),
    "another priority": ("spec/priorityClassName", None, "priority class"),
    "system's priority": ("spec/priorityClassName", "odc-system", "priority class"),
    "restarts": ("spec/restartPolicy", "OnFailure", "restart policy"),
    "service links": ("spec/enableServiceLinks", True, "service links"),
    "no memory limit": ("spec/containers/0/resources/limits/memory", None, "memory"),
    "latest": ("spec/containers/0/image", "train:latest", "tag"),
    "no tag": ("spec/containers/0/image", "registry.example.com:5000/train", "tag"),
    "hook": (
        "spec/containers/0/lifecycle",
        {"preStop": {"exec": {"command": ["true"]}}},
        "no hooks",
    ),
}


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("how", STRANGE)
def test_a_pod_that_differs_is_refused_with_the_reason(
    odcd: Kube, namespace: str, how: str
) -> None:
    path, value, reason = STRANGE[how]
    refusal = odcd.refusal(changed(NAMESPACES[namespace], path, value))
    assert any(part in refusal for part in reason.split("|")), refusal or "admitted"


@pytest.mark.parametrize(
    ("pod", "path", "value", "reason"),
    [
        (SMALL, "resources/limits/vpc.amazonaws.com~1efa", "1", "gpu-dev"),
        (WHOLE, "securityContext/capabilities/add", ["IPC_LOCK", "SYS_ADMIN"], "IPC_LOCK"),
        (WHOLE, "securityContext/capabilities/add", ["SYS_PTRACE"], "IPC_LOCK"),
        (SMALL, "securityContext/capabilities/add", ["IPC_LOCK"], "IPC_LOCK"),
    ],
    ids=[
        "EFA in gpu-batch",
        "another capability too",
        "another capability",
        "IPC_LOCK without EFA",
    ],
)
def test_efa_and_its_capability_go_together(
    odcd: Kube, pod: dict[str, Any], path: str, value: object, reason: str
) -> None:
    strange = container(pod, path, value)
    if "efa" in path:
        strange = container(strange, path.replace("limits", "requests"), value)
    assert reason in odcd.refusal(strange)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_pod_requests_cpus(odcd: Kube, namespace: str) -> None:
    strange = container(NAMESPACES[namespace], "resources/limits/cpu", None)
    assert "requests CPU" in odcd.refusal(container(strange, "resources/requests/cpu", None))


def test_efa_comes_with_gpus(odcd: Kube) -> None:
    strange = container(WHOLE, "resources/limits/nvidia.com~1gpu", None)
    strange = container(strange, "resources/requests/nvidia.com~1gpu", None)
    assert "EFA comes with GPUs" in odcd.refusal(strange)


def test_a_claim_of_the_sites_template_is_admitted(odcd: Kube) -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    assert odcd.refusal(changed(SMALL, "spec/volumes/4", claim)) == ""


def test_an_image_by_digest_is_admitted(odcd: Kube) -> None:
    image = f"registry.example.com:5000/train@sha256:{'a' * 64}"
    assert odcd.refusal(container(SMALL, "image", image)) == ""


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize(
    "user", [None, "system:serviceaccount:kube-system:replicaset-controller"], ids=["admin", "rs"]
)
def test_a_pod_not_created_by_odcd_is_refused(
    installed: Kube, namespace: str, user: str | None
) -> None:
    kube = installed.as_user(user) if user else installed
    assert f"only odcd makes and changes pods in {namespace}" in kube.refusal(NAMESPACES[namespace])


def test_pods_in_other_namespaces_are_not_checked(installed: Kube) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "any", "namespace": "odc-elsewhere"},
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    }
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "odc-elsewhere"},
    }
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": "odc-elsewhere"},
    }
    installed.do(
        "apply",
        "--server-side",
        "--force-conflicts",
        "-f",
        "-",
        given=as_list([namespace, account]),
    )
    assert installed.refusal(pod) == ""
