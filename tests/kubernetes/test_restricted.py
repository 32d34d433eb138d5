"""Pod Security admission of a real API server judges the pods of odc: they are restricted."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.attack.test_manifests import OURS, PODS
from tests.support.harness.controlplane.api import Api
from tests.support.harness.kube import Kube

pytestmark = pytest.mark.long

RESTRICTED = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/enforce-version": "v1.34",
}
WRONG = {
    "privilege escalation": ("securityContext", "allowPrivilegeEscalation", True),
    "capabilities": ("securityContext", "capabilities", {"drop": []}),
    "root": ("securityContext", "runAsUser", 0),
    "seccomp": ("securityContext", "seccompProfile", {"type": "Unconfined"}),
}


@pytest.fixture
def restricted(installed: Kube, api: Api) -> Iterator[str]:
    """A namespace that admits restricted pods alone."""
    made = api.create(
        {"apiVersion": "v1", "kind": "Namespace",
         "metadata": {"generateName": "restricted-", "labels": RESTRICTED}}
    )  # fmt: skip
    name: str = made["metadata"]["name"]
    api.until(f"/api/v1/namespaces/{name}/serviceaccounts/default", lambda _: True)
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


def pod_of(name: str, namespace: str) -> dict[str, Any]:
    """As its controller would make it; the account is another namespace's."""
    spec = copy.deepcopy(PODS[name])
    for field in ("serviceAccountName", "priorityClassName", "affinity"):
        spec.pop(field, None)
    for claim in ("data", "images"):  # of a StatefulSet's templates
        if not any(volume["name"] == claim for volume in spec.get("volumes", [])):
            spec.setdefault("volumes", []).append({"name": claim, "emptyDir": {}})
    spec["restartPolicy"] = "Always"
    meta = {"namespace": namespace, "name": "judged"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@pytest.mark.parametrize("name", OURS)
def test_a_restricted_namespace_admits_the_pods_of_odc(
    installed: Kube, restricted: str, name: str
) -> None:
    assert installed.refusal(pod_of(name, restricted)) == ""


@pytest.mark.parametrize(("part", "field", "value"), WRONG.values(), ids=WRONG)
def test_a_restricted_namespace_refuses_a_weaker_daemon(
    installed: Kube, restricted: str, part: str, field: str, value: Any
) -> None:
    """The level is in force there, so that the test before this one says something."""
    pod = pod_of("odcd", restricted)
    pod["spec"]["containers"][0][part][field] = value
    assert 'violates PodSecurity "restricted:v1.34"' in installed.refusal(pod)
