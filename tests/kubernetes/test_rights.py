"""The rights that the shipped roles grant on a real API server, and those they do not grant."""

from __future__ import annotations

import pytest

from tests.support.builders.pods import NAMESPACES
from tests.support.harness.kube import Kube

JOB = [
    "system:serviceaccount:gpu-batch:job",
    "system:serviceaccount:gpu-dev:job",
    "system:serviceaccount:gpu-builds:build",
]
PLACES = ("gpu-controlplane", "kube-system", "default")
NEEDED = [
    *[f"{verb} nodes" for verb in ("get", "list", "watch")],
    *[f"{verb} pods --all-namespaces" for verb in ("get", "list", "watch")],
    *[
        f"{permission} --namespace={namespace}"
        for namespace in NAMESPACES
        for permission in (
            "create pods",
            "patch pods",
            "delete pods",
            "get pods --subresource=log",
            "get pods --subresource=exec",
            "create pods --subresource=exec",
            "create configmaps",
            "create networkpolicies.networking.k8s.io",
            f"get services/{namespace}-headless",
            "get serviceaccounts/job",
        )
    ],
    "create secrets --namespace=gpu-dev",
    *[f"{verb} persistentvolumes" for verb in ("create", "get", "delete")],
    *[f"{verb} persistentvolumeclaims --namespace=gpu-dev" for verb in ("create", "get", "delete")],
    "list events --namespace=gpu-dev",
    "watch events --namespace=gpu-dev",
    "get pods --subresource=portforward --namespace=gpu-dev",
    "create pods --subresource=portforward --namespace=gpu-dev",
    *[f"{verb} jobs.batch --namespace=gpu-builds" for verb in ("create", "get", "list", "delete")],
    "create configmaps --namespace=gpu-builds",
    "create secrets --namespace=gpu-builds",
    "get pods --subresource=log --namespace=gpu-builds",
    "list events --namespace=gpu-builds",
    "get serviceaccounts/build --namespace=gpu-builds",
    "get priorityclasses/odc-job",
    "get namespaces/gpu-dev",
    "create selfsubjectaccessreviews",
]
REFUSED = [
    "* *",
    "* * --all-namespaces",
    *[
        f"{verb} secrets {place}"
        for verb in ("get", "list", "watch", "create", "patch", "delete")
        for place in (
            "--all-namespaces",
            *[f"--namespace={each}" for each in ("gpu-controlplane", "gpu-builds", *NAMESPACES)],
        )
        if (verb, place)
        not in (("create", "--namespace=gpu-dev"), ("create", "--namespace=gpu-builds"))
    ],
    "list events --namespace=gpu-batch",
    "create events --namespace=gpu-dev",
    *[
        f"{permission} --namespace={namespace}"
        for namespace in PLACES
        for permission in (
            "create pods",
            "delete pods",
            "create pods --subresource=exec",
            "get pods --subresource=exec",
            "get pods --subresource=log",
            "get configmaps",
        )
    ],
    *[
        f"{permission} --namespace={namespace}"
        for namespace in NAMESPACES
        for permission in (
            "deletecollection pods",
            "update pods",
            "get configmaps",
            "list configmaps",
            "patch pods --subresource=ephemeralcontainers",
            "create pods --subresource=attach",
            "create pods --subresource=binding",
            "create serviceaccounts --subresource=token",
            "create rolebindings",
            "get services/other",
            "create jobs.batch",
            *[
                f"{verb} networkpolicies.networking.k8s.io"
                for verb in ("get", "list", "update", "patch", "delete", "deletecollection")
            ],
        )
    ],
    "create networkpolicies.networking.k8s.io --namespace=gpu-controlplane",
    "create networkpolicies.networking.k8s.io --namespace=gpu-builds",
    *[
        f"{permission} --namespace=gpu-builds"
        for permission in (
            "create pods",
            "delete pods",
            "patch jobs.batch",
            "get configmaps",
            "get pods --subresource=exec",
            "create pods --subresource=exec",
        )
    ],
    "create pods --subresource=portforward --namespace=gpu-batch",
    "get pods --subresource=portforward --namespace=gpu-batch",
    *[f"{verb} persistentvolumes" for verb in ("list", "update", "patch", "deletecollection")],
    *[
        f"{verb} persistentvolumeclaims --namespace=gpu-dev"
        for verb in ("list", "update", "patch", "deletecollection")
    ],
    "create persistentvolumeclaims --namespace=gpu-batch",
    "create persistentvolumeclaims --namespace=default",
    "patch nodes",
    "delete nodes",
    "get nodes --subresource=proxy",
    "create clusterrolebindings",
    "impersonate users",
    "get namespaces/gpu-controlplane",
    "get validatingadmissionpolicies/odc-pods",
    "patch validatingadmissionpolicies/odc-pods",
    "list namespaces",
]


@pytest.mark.parametrize("permission", NEEDED)
def test_odcd_may(odcd: Kube, permission: str) -> None:
    assert odcd.can(permission)


@pytest.mark.parametrize("permission", REFUSED)
def test_odcd_may_not(odcd: Kube, permission: str) -> None:
    assert not odcd.can(permission)


@pytest.mark.parametrize("user", JOB)
def test_a_job_may_do_nothing(installed: Kube, user: str) -> None:
    """The rest are rights of every user: to ask for one's own identity and for the list of APIs."""
    for namespace in ("gpu-controlplane", "gpu-batch", "gpu-dev", "gpu-builds", "default"):
        listed = installed.as_user(user).do(
            "auth", "can-i", "--list", "--no-headers", f"--namespace={namespace}"
        )
        lines = [line.split() for line in listed.splitlines()]
        # A line names a resource, or begins with the paths it is about: [/healthz].
        resources = {line[0] for line in lines if not line[0].startswith("[")}
        assert {each.partition(".")[2] for each in resources} <= {
            "authentication.k8s.io",
            "authorization.k8s.io",
        }
        paths = [line for line in lines if line[0].startswith("[")]
        assert all(line[-1] == "[get]" for line in paths)


@pytest.mark.parametrize("user", JOB)
@pytest.mark.parametrize(
    "permission",
    [
        "get secrets --namespace=gpu-controlplane",
        "list secrets --all-namespaces",
        "list pods --namespace=gpu-batch",
        "create pods --namespace=gpu-dev",
        "create pods --subresource=exec --namespace=gpu-batch",
        "get pods --subresource=exec --namespace=gpu-dev",
        "get configmaps --namespace=gpu-batch",
    ],
)
def test_a_job_may_not(installed: Kube, user: str, permission: str) -> None:
    assert not installed.as_user(user).can(permission)
