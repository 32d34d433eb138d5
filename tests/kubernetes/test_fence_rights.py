"""The component `fence` lets odcd set and remove its taint of a node, and change nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odcd.clock import SystemClock
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.elastic_nodes import TAINT as REMOVING
from odcd.executor.kubernetes.elastic_nodes import KubernetesElasticNodes
from odcd.executor.kubernetes.out_of_service import TAINT, OutOfService
from tests.support.builders.manifests import FOLDER
from tests.support.harness.controlplane.api import Api, Manifest, Refused
from tests.support.harness.controlplane.children import wait_until
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.kube import ODCD, Kube

pytestmark = pytest.mark.long
NODE = "fenced"
PATH = f"/api/v1/nodes/{NODE}"
SITE = {"key": "site", "effect": "NoSchedule"}


@pytest.fixture
def node(installed: Kube, kubectl: Path, api: Api) -> Iterator[str]:
    component = FOLDER / "components" / "fence"
    files = [
        arg for name in ("accounts", "admission") for arg in ("-f", component / f"{name}.yaml")
    ]
    installed.do("apply", *files)
    api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
                "spec": {"taints": [SITE]}})  # fmt: skip
    yield NODE
    api.delete(PATH)
    installed.do("delete", "--ignore-not-found", *files)


def taints(api: Api) -> list[Manifest]:
    found: list[Manifest] = api.get(PATH)["spec"].get("taints", [])
    return [{"key": one["key"], "effect": one["effect"]} for one in found if
            one["key"] != "node.kubernetes.io/not-ready"]  # fmt: skip


def set_ready(api: Api, ready: str) -> None:
    body = {"status": {"conditions": [{"type": "Ready", "status": ready, "reason": "Test"}]}}
    api.patch(f"{PATH}/status", body)


def test_a_fenced_node_is_tainted_and_reopened_with_odcds_own_rights(
    node: str, plane: ControlPlane, api: Api
) -> None:
    account = plane.account_kubeconfig("gpu-controlplane", "odcd")

    async def change(how: str) -> None:
        cluster = await Cluster.connect(account)
        try:
            await getattr(OutOfService(cluster, SystemClock()), how)(node)
        finally:
            await cluster.close()

    own = {"key": TAINT["key"], "effect": TAINT["effect"]}
    set_ready(api, "Unknown")
    asyncio.run(change("taint"))
    assert own in taints(api)
    assert SITE in taints(api)
    set_ready(api, "True")
    asyncio.run(change("untaint"))
    assert own not in taints(api)
    assert SITE in taints(api)


def test_a_node_that_is_to_be_removed_is_closed_and_reopened_with_odcds_own_rights(
    node: str, plane: ControlPlane, api: Api
) -> None:
    account = plane.account_kubeconfig("gpu-controlplane", "odcd")

    async def change(how: str) -> None:
        cluster = await Cluster.connect(account)
        try:
            await getattr(KubernetesElasticNodes(cluster), how)(node)
        finally:
            await cluster.close()

    own = {"key": REMOVING["key"], "effect": REMOVING["effect"]}
    for _ in range(2):
        asyncio.run(change("close_off"))
        assert taints(api).count(own) == 1
    for _ in range(2):
        asyncio.run(change("reopen"))
        assert own not in taints(api)
        assert SITE in taints(api)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [SITE, {"key": "other", "effect": "NoSchedule"}]}},
        {"spec": {"taints": []}},
        {"spec": {"taints": [SITE, {**TAINT, "value": "other"}]}},
        {"spec": {"taints": [SITE, {**REMOVING, "effect": "NoExecute"}]}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
    ],
    ids=[
        "cordon",
        "another-taint",
        "no-taints",
        "another-value",
        "another-effect",
        "label",
        "annotation",
    ],
)
def test_odcd_changes_nothing_else_of_a_node(
    node: str, installed: Kube, change: dict[str, Any]
) -> None:
    def refused() -> bool:
        try:
            installed.api.patch(PATH, change, user=ODCD, dryRun="All")
        except Refused as refusal:
            return "odcd changes" in refusal.message or "out-of-service of odcd" in refusal.message
        return False

    wait_until(refused, "the policy to come into force")
