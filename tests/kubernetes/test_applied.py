"""k8s/ applied to a real API server."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.builders.manifests import (
    FOLDER,
    OVERLAYS,
    Manifest,
    applicable,
    apply,
    pod_spec,
)
from tests.support.harness.controlplane.plane import Cluster, ControlPlane
from tests.support.harness.kube import Kube, as_list


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_applies_and_applied_again_changes_nothing(kube: Kube, name: str) -> None:
    manifests = applicable(kube.kubectl, FOLDER / "overlays" / name)
    apply(kube, manifests)
    before = _state(kube, manifests)
    apply(kube, manifests)
    assert _state(kube, manifests) == before
    # Rights that one overlay gives to odcd are not in the others.
    given = as_list([each for each in manifests if each["kind"] != "Namespace"])
    kube.do("delete", "--wait=false", "--ignore-not-found", "-f", "-", given=given)


@pytest.mark.parametrize("name", OVERLAYS)
def test_pods_of_an_overlay_pass_pod_security(installed: Kube, kubectl: Path, name: str) -> None:
    manifests = applicable(kubectl, FOLDER / "overlays" / name)
    apply(installed, [m for m in manifests if m["kind"] in ("Namespace", "ServiceAccount")])
    refusals = {
        each["metadata"]["name"]: installed.refusal(_pod_of(each))
        for each in manifests
        if pod_spec(each)
    }
    assert set(refusals.values()) == {""}, refusals


def test_expressions_of_policies_fit_the_types(installed: Kube, cluster: Cluster) -> None:
    """The controller manager checks them against the schemas of what they match."""
    until = time.monotonic() + 120
    while True:
        policies = installed.get("validatingadmissionpolicies")["items"]
        ours = [p for p in policies if p["metadata"]["name"].startswith("odc-")]
        statuses = {p["metadata"]["name"]: p.get("status", {}) for p in ours}
        if all("typeChecking" in status for status in statuses.values()):
            break
        if time.monotonic() > until:
            assert not isinstance(cluster, ControlPlane), "ours has a controller manager"
            pytest.skip("this cluster has no controller manager to check them")
        time.sleep(0.2)
    assert {
        name: warnings
        for name, status in statuses.items()
        if (warnings := status["typeChecking"].get("expressionWarnings"))
    } == {}


def _state(kube: Kube, manifests: list[Manifest]) -> list[Manifest]:
    """The objects of the manifests on the server, without the fields that controllers write."""
    found = kube.get("-f", "-", given=as_list(manifests))["items"]
    for each in found:
        each.pop("status", None)
        each["metadata"].pop("resourceVersion")
        each["metadata"].get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
    return found


def _pod_of(workload: Manifest) -> Manifest:
    """The pod its controller would make."""
    template = workload["spec"]["template"]
    claims = [each["metadata"]["name"] for each in workload["spec"].get("volumeClaimTemplates", [])]
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    spec = template["spec"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": workload["metadata"]["name"],
            "namespace": workload["metadata"]["namespace"],
            "labels": template["metadata"]["labels"],
        },
        "spec": spec | {"volumes": [*spec.get("volumes", []), *volumes]},
    }
