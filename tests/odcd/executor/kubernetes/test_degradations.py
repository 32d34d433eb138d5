"""What a cluster lacks is reported once, with what works less well."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, cast

import msgspec
import pytest

from odcd.executor.kubernetes.cluster import ApiRefused, Cluster, Status
from odcd.executor.kubernetes.degradations import (
    APIS,
    Degradation,
    find_degradations,
    log_degradations,
)
from odcd.executor.kubernetes.objects import Node
from odcd.executor.kubernetes.pods import PodSettings

Json = dict[str, Any]
SETTINGS = PodSettings(image="registry.example/job:1.0")
ABLE: Json = {
    "features": {"supplementalGroupsPolicy": True},
    "runtimeHandlers": [{"name": "", "features": {"userNamespaces": True}}],
    "nodeInfo": {"kernelVersion": "6.8.0-1021-aws"},
}


class Lacking:
    """An API server without some groups, resources and fields."""

    def __init__(self, *missing: str) -> None:
        self._missing = missing

    async def get(self, path: str) -> bytes:
        group = path.removeprefix("/apis/")
        if group in self._missing:
            raise ApiRefused(404, Status(reason="NotFound"), None)
        served = [name for name, _ in APIS.values() if name not in self._missing]
        return msgspec.json.encode({"resources": [{"name": name} for name in served]})

    async def post(self, path: str, body: Json, params: Any) -> bytes:
        assert params == [("dryRun", "All")], "nothing is created"
        kept = json.loads(json.dumps(body))
        for field in self._missing:
            kept["spec"].pop(field, None)
            kept["spec"]["securityContext"].pop(field, None)
        return json.dumps(kept).encode()


def a_node(name: str, status: Json) -> Node:
    return msgspec.convert({"metadata": {"name": name}, "status": status}, Node)


def found(cluster: Lacking, *nodes: Node) -> list[Degradation]:
    return asyncio.run(find_degradations(cast("Cluster", cluster), SETTINGS, nodes))


def test_a_cluster_with_everything_lacks_nothing() -> None:
    assert found(Lacking(), a_node("one", ABLE)) == []


POLICIES = "the API networkpolicies.networking.k8s.io/v1"


@pytest.mark.parametrize(
    ("missing", "lacks", "effect"),
    [
        ("networking.k8s.io/v1", POLICIES, "reach each other"),
        ("networkpolicies", POLICIES, "instance metadata"),
        (
            "validatingadmissionpolicies",
            "the API validatingadmissionpolicies.admissionregistration.k8s.io/v1",
            "may have any rights",
        ),
        ("schedulingGates", "the feature gate PodSchedulingReadiness", "members of a gang"),
        ("hostUsers", "the feature gate UserNamespacesSupport", "root on its node"),
        ("supplementalGroupsPolicy", "the feature gate SupplementalGroupsPolicy", "the groups"),
    ],
)
def test_a_missing_api_or_feature_gate_is_named_with_what_is_worse(
    missing: str, lacks: str, effect: str
) -> None:
    [one] = found(Lacking(missing), a_node("one", ABLE))
    assert one.lacks.startswith(lacks)
    assert effect in one.effect


def test_nodes_without_a_feature_are_counted_and_named() -> None:
    nodes = [a_node(f"old-{number}", {}) for number in range(5)]
    groups, users = found(Lacking(), a_node("new", ABLE), *nodes)
    assert groups.lacks.startswith("5 of 6 nodes (old-0, old-1, old-2 and 2 more): supplemental")
    assert users.lacks.startswith("5 of 6 nodes (old-0, old-1, old-2 and 2 more): user namespaces")


def test_the_daemon_logs_each_of_them_and_continues(caplog: pytest.LogCaptureFixture) -> None:
    cluster = cast("Cluster", Lacking("hostUsers"))
    with caplog.at_level(logging.WARNING):
        asyncio.run(log_degradations(cluster, SETTINGS, [a_node("one", ABLE)]))
    [record] = caplog.records
    assert record.message == "kubernetes.degraded"
    assert "UserNamespacesSupport" in record.__dict__["lacks"]


def test_an_api_server_that_refuses_to_answer_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Refusing(Lacking):
        async def get(self, path: str) -> bytes:
            raise ApiRefused(403, Status(message="forbidden"), None)

    asyncio.run(log_degradations(cast("Cluster", Refusing()), SETTINGS, []))
    assert [record.message for record in caplog.records] == ["kubernetes.features_unknown"]
