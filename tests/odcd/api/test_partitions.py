"""Partitions, policies and fragmentation over HTTP."""

from __future__ import annotations

import msgspec
import pytest

from odcd.api.answers.nodes import Fragmentation
from odcd.api.answers.partitions import Partition, PartitionList, Policy, PolicyList
from tests.odcd.api.service import ALICE, OPERATOR, Service, serve


def test_an_operator_makes_and_changes_partitions_and_policies(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(OPERATOR) as client:
            terms = {"name": "short", "ordering": "sjf", "max_wait": "2-0", "backfill": "sjbf"}
            answer = await client.post("/v1/policies", json=terms)
            assert answer.status_code == 201
            policy = msgspec.json.decode(answer.content, type=Policy)
            assert (policy.max_wait_s, policy.plan_depth) == (172_800, 1)
            answer = await client.patch("/v1/policies/short", json={"max_wait": "UNLIMITED"})
            assert answer.json()["max_wait_s"] is None

            partition = {
                "name": "quick", "all_nodes": True, "tier": 3, "policy": "short",
                "max_time_limit": "1:00:00",
            }  # fmt: skip
            answer = await client.post("/v1/partitions", json=partition)
            assert answer.status_code == 201, answer.text
            made = msgspec.json.decode(answer.content, type=Partition)
            assert (made.max_time_limit_s, made.policy, made.node_names) == (3600, "short", ["n1"])
            woken = len(service.woken)
            answer = await client.patch("/v1/partitions/quick", json={"plan_depth": 4})
            assert (answer.json()["plan_depth"], len(service.woken)) == (4, woken + 1)
            assert (await client.get("/v1/partitions/quick")).json() == answer.json()
            listed = await client.get("/v1/partitions")
            partitions = msgspec.json.decode(listed.content, type=PartitionList).partitions
            assert [p.name for p in partitions] == ["main", "quick"]

            assert (await client.get("/v1/policies/short")).json()["partitions"] == ["quick"]
            assert (await client.delete("/v1/policies/short")).json()["code"] == "OD028"
            await client.patch("/v1/partitions/quick", json={"policy": "odc"})
            assert (await client.delete("/v1/policies/short")).status_code == 200
            listed = await client.get("/v1/policies")
            policies = msgspec.json.decode(listed.content, type=PolicyList).policies
            assert "short" not in {p.name for p in policies}
            answer = await client.delete("/v1/partitions/quick")
            assert (answer.status_code, answer.json()["name"]) == (200, "quick")
            assert (await client.get("/v1/partitions/quick")).json()["code"] == "OD001"

    serve(database_url, work)


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("PATCH", "/v1/partitions/main", {"plan_depth": -1}, "OD010"),
        ("PATCH", "/v1/partitions/main", {"policy": "lifo"}, "OD029"),
        ("PATCH", "/v1/partitions/main", {"max_time_limit": "soon"}, "OD010"),
        ("PATCH", "/v1/partitions/main", {"max_time_limit": "5", "max_time_limit_s": 5}, "OD010"),
        ("PATCH", "/v1/partitions/main", {"max_time_limit": "0"}, "OD010"),
        ("PATCH", "/v1/policies/odc", {"max_wait": "0:00"}, "OD010"),
        ("PATCH", "/v1/policies/odc", {"max_wait": "-1"}, "OD010"),
        ("PATCH", "/v1/partitions/main", {"nodes": 5}, "OD010"),
        ("PATCH", "/v1/partitions/x", {"tier": 2}, "OD001"),
        ("GET", "/v1/partitions/x", None, "OD001"),
        ("POST", "/v1/policies", {"name": "p", "ordering": "lifo"}, "OD010"),
        ("POST", "/v1/policies", {"name": "p", "ordering": "sjf", "max_wait_s": 0}, "OD010"),
        ("POST", "/v1/policies", {"name": "p"}, "OD010"),
        ("GET", "/v1/policies/p", None, "OD029"),
        ("DELETE", "/v1/policies/p", None, "OD029"),
    ],
)
def test_invalid_changes_are_refused(
    database_url: str, method: str, path: str, body: object, code: str
) -> None:
    async def work(service: Service) -> None:
        async with service.client(OPERATOR) as client:
            answer = await client.request(method, path, json=body)
            assert answer.json()["code"] == code, answer.text

    serve(database_url, work)


def test_other_users_can_read_but_not_change_partitions(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(ALICE) as client:
            assert (await client.get("/v1/policies")).status_code == 200
            answer = await client.patch("/v1/partitions/main", json={"tier": 2})
            assert (answer.status_code, answer.json()["code"]) == (403, "OD013")
            answer = await client.get("/v1/cluster/fragmentation")
            [kind] = msgspec.json.decode(answer.content, type=Fragmentation).types
            assert (kind.gpu_type, kind.gpus_free, kind.largest_gang) == ("h100", 8, 1)

    serve(database_url, work)
