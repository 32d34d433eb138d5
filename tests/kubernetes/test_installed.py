"""odcd with the rights and under the policies of k8s/: real daemon, real API server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.harness.controlplane.children import free_port
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.daemon import Odc
from tests.support.harness.kube import Kube

PATIENCE_S = 60


@pytest.fixture
def served(
    odc: Odc, empty_database_url: str, shared_plane: ControlPlane, installed: Kube
) -> Iterator[Odc]:
    """odcd as the service account odcd, and odcctl as alice, who has a token."""
    config = odc.work / "kubeconfig"
    config.write_text(shared_plane.account_kubeconfig("gpu-controlplane", "odcd").read_text())
    config.chmod(0o644)
    address = f"127.0.0.1:{free_port()}"
    odc.environment["ODC_IMAGE"] = "registry.example.com/train:1"
    serve = ("serve", "--dsn", empty_database_url, "--executor", "kubernetes")
    with odc.serving(*serve, "--kubeconfig", str(config), "--listen", address):
        token = odc.odcd("token", "alice", "--uid", "5001", "--dsn", empty_database_url).stdout
        odc.environment |= {"ODC_SERVER": f"http://{address}", "ODC_TOKEN": token.strip()}
        yield odc


def within(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def known(odc: Odc) -> set[str]:
    found = json.loads(odc.odcctl("nodes", "--json").stdout)["nodes"]
    return {node["name"] for node in found if node["state"] in ("IDLE", "MIXED")}


def submit(odc: Odc, *options: str) -> str:
    return odc.odcctl("submit", "--parsable", *options, "--wrap", "true").stdout.strip()


def until(odc: Odc, job: str, *states: str) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        (shown,) = json.loads(odc.odcctl("show", job, "--json").stdout)["jobs"]
        if shown["state"] in states:
            return shown
        assert time.monotonic() < deadline, shown
        time.sleep(0.2)


def pods(kube: Kube, namespace: str, job: str) -> list[dict[str, Any]]:
    return kube.get("pods", f"--namespace={namespace}", f"--selector=odc.dev/job-id={job}")["items"]


@pytest.mark.parametrize(
    ("options", "namespace", "count"),
    [
        (("--gres=gpu:h100:1",), "gpu-batch", 1),
        (("--gres=gpu:h100:8", "-N2"), "gpu-dev", 2),
        (("-c", "1", "-p", "main"), "gpu-batch", 1),
    ],
    ids=["one GPU", "a gang with EFA", "no GPU"],
)
def test_a_job_runs_and_is_cancelled(
    served: Odc,
    installed: Kube,
    nodes: Callable[..., list[str]],
    options: tuple[str, ...],
    namespace: str,
    count: int,
) -> None:
    names = nodes(h100=2)
    within(lambda: known(served) >= set(names))
    job = submit(served, *options)
    until(served, job, "RUNNING")
    made = pods(installed, namespace, job)
    assert len(made) == count
    of_job = f"--selector=odc.dev/job-id={job}"
    held = installed.get("configmap", of_job, f"--namespace={namespace}")["items"]
    owners = [one["metadata"]["ownerReferences"][0]["name"] for one in held]
    assert owners == ([f"odc-{job}-1-0"] if count > 1 else []), "a short script is in its pod"
    assert "hello from kwok" in served.odcctl("logs", job).stdout
    served.odcctl("cancel", job)
    until(served, job, "CANCELLED")
    within(lambda: pods(installed, namespace, job) == [])
    # It was written before the job was asked to end, and remains after the pod is gone.
    assert "hello from kwok" in served.odcctl("logs", job).stdout


def test_doctor_finds_no_problem_after_an_install(
    served: Odc, installed: Kube, nodes: Callable[..., list[str]]
) -> None:
    nodes(h100=1)
    config = served.work / "kubeconfig"
    done = served.odcd(
        "doctor", "--executor", "kubernetes", "--kubeconfig", config, "--json", check=False
    )
    checks = json.loads(done.stdout)["checks"]
    assert [each for each in checks if each["verdict"] == "bad"] == []
    about = {each["about"] for each in checks if each["verdict"] == "ok"}
    assert {"rights", "objects", "admission"} <= about, checks
    [builds] = [each for each in checks if each["about"] == "builds"]
    assert (builds["verdict"], "ODC_BUILD_REGISTRY" in builds["hint"]) == ("note", True)
    [fences] = [each for each in checks if each["about"] == "fences"]
    assert fences["verdict"] == "note"


def test_missing_features_of_nodes_are_logged_once_and_reported_by_doctor(
    served: Odc, nodes: Callable[..., list[str]]
) -> None:
    """Nodes of KWOK support neither groups that are strict nor user namespaces."""
    names = nodes(h100=1)
    path = served.home.with_name(f"{served.home.name}.log")

    def logged() -> int:
        return path.read_text().count("kubernetes.degraded")

    within(lambda: logged() >= 2)
    within(lambda: known(served) >= set(names))
    until(served, submit(served, "--gres=gpu:h100:1"), "RUNNING")
    assert logged() == 2
    done = served.odcd(
        "doctor", "--executor", "kubernetes", "--kubeconfig", served.work / "kubeconfig", "--json",
        check=False,
    )  # fmt: skip
    checks = json.loads(done.stdout)["checks"]
    features = [each for each in checks if each["about"] == "features"]
    assert {each["verdict"] for each in features} == {"note"}
    assert len(features) == 2
    for each, feature in zip(
        features, ("supplementalGroupsPolicy", "user namespaces"), strict=True
    ):
        assert feature in each["text"]
        assert names[0] in each["text"]
    [network] = [each for each in checks if each["about"] == "network"]
    assert "--canaries" in network["text"]


def test_doctor_checks_whether_images_can_be_built(served: Odc) -> None:
    """SEC-07"""
    served.environment["ODC_BUILD_REGISTRY"] = "registry.example/builds"
    config = served.work / "kubeconfig"
    doctor = ("doctor", "--executor", "kubernetes", "--kubeconfig", config, "--json")

    def checks() -> dict[str, str]:
        checks = json.loads(served.odcd(*doctor, check=False).stdout)["checks"]
        [builds] = [each for each in checks if each["about"] == "builds"]
        return builds

    assert checks() == {
        "about": "builds", "verdict": "ok", "text": "images are built for registry.example/builds",
        "hint": None,
    }  # fmt: skip
    served.environment["ODC_NAMESPACE_BUILDS"] = "elsewhere"
    assert checks()["verdict"] == "bad"


@pytest.mark.parametrize(
    ("binding", "what"), [("odc-pods", "a pod that odcd never"), ("odc-build-jobs", "a Job that")]
)
def test_doctor_reports_missing_admission_policies(
    served: Odc, installed: Kube, nodes: Callable[..., list[str]], binding: str, what: str
) -> None:
    nodes(h100=1)
    served.environment["ODC_BUILD_REGISTRY"] = "registry.example/builds"
    config = served.work / "kubeconfig"
    name = f"validatingadmissionpolicybinding/{binding}"
    kept = installed.get(name)
    installed.do("delete", name)
    doctor = ("doctor", "--executor", "kubernetes", "--kubeconfig", config, "--json")
    try:
        found: list[dict[str, str]] = []

        def missing() -> bool:
            # The API server applies policies after a while.
            checks = json.loads(served.odcd(*doctor, check=False).stdout)["checks"]
            found[:] = [
                each for each in checks if (each["about"], each["verdict"]) == ("fences", "bad")
            ]
            return bool(found)

        within(missing)
        assert found[0]["text"].startswith(what)
    finally:
        for field in ("resourceVersion", "uid", "creationTimestamp", "generation"):
            kept["metadata"].pop(field, None)
        installed.do("create", "--filename=-", given=kept)
