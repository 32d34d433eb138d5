"""The manifests of k8s/ as they are written: pods of odc are restricted, tokens and roles are few.

tests/kubernetes/test_manifests.py reads them as kubectl renders them, and
tests/kubernetes/test_restricted.py has an API server's Pod Security admission judge the pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "k8s"
NODES_OWN = frozenset({"nvidia-device-plugin", "aws-efa-k8s-device-plugin", "dcgm-exporter"})
"""They work on the node itself, in separate namespaces."""
LEVELS = {
    "gpu-controlplane": "restricted",
    "gpu-batch": "baseline",
    "gpu-dev": "privileged",
    "gpu-builds": "privileged",
}
"""The level that Pod Security enforces; docs/operating/security.md gives the reasons for the last
two."""
FENCED = {"gpu-dev": "odc-pods", "gpu-builds": "odc-builds"}
"""In privileged namespaces, a policy of odc admits only its own pods."""


def manifests() -> Iterator[dict[str, Any]]:
    for path in sorted(FOLDER.rglob("*.yaml")):
        # In Python it takes a tenth of all of pytest's collection.
        for one in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
            if isinstance(one, dict) and "kind" in one and "metadata" in one:
                yield one


ALL = list(manifests())
PODS = {
    one["metadata"]["name"]: one["spec"]["template"]["spec"]
    for one in ALL
    if one["kind"] in ("Deployment", "StatefulSet", "DaemonSet", "Job")
}
OURS = sorted(PODS.keys() - NODES_OWN)


def test_the_manifests_are_found() -> None:
    assert {"odcd", "odc-db", "registry-builds"} <= PODS.keys()


@pytest.mark.parametrize("name", OURS)
def test_a_pod_of_odc_is_restricted(name: str) -> None:
    pod = PODS[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"].get("runAsUser", 1) > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for field in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"):
        assert not pod.get(field), field
    assert {key for volume in pod.get("volumes", []) for key in volume} <= {
        "name", "configMap", "emptyDir", "persistentVolumeClaim", "secret", "projected",
    }  # fmt: skip
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        rights = container["securityContext"]
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["readOnlyRootFilesystem"] is True
        assert rights["capabilities"] == {"drop": ["ALL"]}
        assert not rights.get("privileged")
        assert rights.get("seccompProfile", {"type": "RuntimeDefault"})["type"] == "RuntimeDefault"


@pytest.mark.parametrize("name", sorted(PODS))
def test_only_odcd_mounts_a_token(name: str) -> None:
    assert PODS[name].get("automountServiceAccountToken", True) is (name == "odcd")


def test_namespaces_enforce_a_level_of_a_version() -> None:
    found = {
        one["metadata"]["name"]: one["metadata"].get("labels", {})
        for one in ALL
        if one["kind"] == "Namespace"
    }
    prefix = "pod-security.kubernetes.io/enforce"
    for name, level in LEVELS.items():
        assert found[name][prefix] == level, name
        assert found[name][f"{prefix}-version"].startswith("v1."), name


@pytest.mark.parametrize(("namespace", "policy"), FENCED.items())
def test_a_privileged_namespace_has_a_policy_that_denies(namespace: str, policy: str) -> None:
    [found] = [
        one["spec"]
        for one in ALL
        if one["kind"] == "ValidatingAdmissionPolicyBinding" and one["spec"]["policyName"] == policy
    ]
    assert "Deny" in found["validationActions"]
    [term] = found["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert namespace in term["values"]
    [rules] = [
        one["spec"]
        for one in ALL
        if one["kind"] == "ValidatingAdmissionPolicy" and one["metadata"]["name"] == policy
    ]
    assert rules["failurePolicy"] == "Fail"


def test_roles_are_narrow() -> None:
    """No wildcard, no secret read, nothing by which rights grow; cluster-wide only what must be."""
    for one in ALL:
        if one["kind"] not in ("Role", "ClusterRole"):
            continue
        for rule in one["rules"]:
            names = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert "*" not in names, one["metadata"]["name"]
            assert not {"escalate", "bind", "impersonate", "deletecollection"} & names
            assert not {"serviceaccounts/token", "pods/ephemeralcontainers", "nodes/proxy"} & names
            if "secrets" in rule["resources"]:
                assert rule["verbs"] == ["create"], one["metadata"]["name"]
            if one["kind"] == "ClusterRole" and {"pods/exec", "pods", "pods/attach"} & names:
                assert set(rule["verbs"]) <= {"get", "list", "watch"}, one["metadata"]["name"]


def test_no_image_is_named_latest() -> None:
    for pod in PODS.values():
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            name = container["image"].rpartition("/")[2]
            assert name == "odcd" or name.startswith("ODC_") or "@sha256:" in name or ":" in name, (
                name
            )
            assert not name.endswith(":latest")
