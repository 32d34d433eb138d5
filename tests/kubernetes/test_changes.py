"""Users who may change and enter existing pods of odc, on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.builders.pods import H100, a_pod
from tests.support.harness.kube import ODCD, Kube


@pytest.fixture
def running(odcd: Kube) -> Iterator[dict[str, Any]]:
    """An existing pod of odc, gated."""
    pod = a_pod(H100, 8, job=9, gang=2)
    odcd.do("create", "-f", "-", given=pod)
    yield pod
    odcd.run("delete", "--grace-period=0", "--ignore-not-found", "-f", "-", given=pod)


def patched(kube: Kube, pod: dict[str, Any], patch: str) -> str:
    metadata = pod["metadata"]
    done = kube.run(
        "patch", "pod", metadata["name"], f"--namespace={metadata['namespace']}",
        "--type=json", f"--patch={patch}",
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stderr


def test_odcd_can_remove_the_scheduling_gate(odcd: Kube, running: dict[str, Any]) -> None:
    assert patched(odcd, running, '[{"op": "remove", "path": "/spec/schedulingGates"}]') == ""


@pytest.mark.parametrize(
    "patch",
    [
        '[{"op": "remove", "path": "/spec/schedulingGates"}]',
        '[{"op": "replace", "path": "/spec/containers/0/image", "value": "mine:1"}]',
        '[{"op": "replace", "path": "/metadata/labels/odc.dev~1user", "value": "bob"}]',
        '[{"op": "replace", "path": "/metadata/annotations/odc.dev~1term", "value": "9"}]',
        '[{"op": "remove", "path": "/metadata/annotations/odc.dev~1term"}]',
        '[{"op": "add", "path": "/metadata/annotations/odc.dev~1other", "value": "9"}]',
    ],
    ids=["gate", "image", "label", "annotation", "annotation gone", "annotation more"],
)
def test_other_users_cannot_change_a_pod(
    installed: Kube, running: dict[str, Any], patch: str
) -> None:
    assert "only odcd makes and changes pods" in patched(installed, running, patch)


def test_the_control_plane_can_set_finalizers_and_foreign_annotations(
    installed: Kube, running: dict[str, Any]
) -> None:
    for patch in (
        '[{"op": "add", "path": "/metadata/annotations/example.com~1ip", "value": "192.0.2.1"}]',
        '[{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/x"]}]',
        '[{"op": "remove", "path": "/metadata/finalizers"}]',
    ):
        assert patched(installed, running, patch) == ""


def test_administrators_may_delete_a_pod(installed: Kube, running: dict[str, Any]) -> None:
    installed.do("delete", "--grace-period=0", "-f", "-", given=running)


@pytest.mark.parametrize(
    ("user", "why"), [(None, "only odcd"), (ODCD, "cannot update")], ids=["admin", "odcd"]
)
def test_no_user_can_add_a_container_to_a_pod(
    installed: Kube, running: dict[str, Any], user: str | None, why: str
) -> None:
    """As `kubectl debug` does. RBAC refuses odcd before admission runs."""
    kube = installed.as_user(user) if user else installed
    path = _path(running)
    there = json.loads(installed.do("get", "--raw", path))
    there["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "debug:1"}]
    done = kube.run("replace", "--raw", f"{path}/ephemeralcontainers", "-f", "-", given=there)
    assert done.returncode != 0
    assert why in done.stderr


@pytest.mark.parametrize(
    "way", ["exec?command=true&stdout=true", "attach?stdout=true", "portforward"]
)
def test_an_administrator_is_sent_to_odcctl(
    installed: Kube, running: dict[str, Any], way: str
) -> None:
    done = installed.run("create", "--raw", f"{_path(running)}/{way}", "-f", "-", given={})
    assert "only odcd connects to pods in gpu-dev" in done.stderr
    assert "odcctl logs" in done.stderr


def test_odcd_may_exec_in_a_pod(odcd: Kube, running: dict[str, Any]) -> None:
    """As far as the pod, which is on no node yet."""
    way = "exec?command=true&stdout=true"
    done = odcd.run("create", "--raw", f"{_path(running)}/{way}", "-f", "-", given={})
    assert "does not have a host assigned" in done.stderr


def _path(pod: dict[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
