"""POST, PATCH and DELETE of /v1/nodes: operators declare nodes of the local executor."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpx
import pytest

from odcd.executor.declaring import Declaring
from tests.odcd.api.service import ALICE, OPERATOR, Service, serve

NODE: dict[str, Any] = {"name": "m1", "gpu_type": "h100", "gpus": 4}


async def names(client: httpx.AsyncClient) -> list[str]:
    return [node["name"] for node in (await client.get("/v1/nodes")).json()["nodes"]]


def test_a_node_is_declared_changed_and_deleted(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(OPERATOR) as client:
            made = await client.post("/v1/nodes", json={**NODE, "features": ["nvme"]})
            assert made.status_code == 201
            # The type's share: half of a node of 8 GPUs.
            assert (made.json()["cpus"], made.json()["features"]) == (96, ["nvme"])
            again = await client.post("/v1/nodes", json={**NODE, "features": ["nvme"]})
            assert again.json() == made.json()
            changed = await client.patch("/v1/nodes/m1", json={"mem_mib": 1000, "features": []})
            assert (changed.json()["mem_mib"], changed.json()["features"]) == (1000, [])
            assert changed.json()["cpus"] == 96
            deleted = await client.delete("/v1/nodes/m1")
            assert (deleted.status_code, deleted.json()["name"]) == (200, "m1")
            assert await names(client) == ["n1"]
            assert (await client.delete("/v1/nodes/m1")).status_code == 404
        assert len(service.woken) == 4

    serve(database_url, work)


def test_of_two_sessions_at_once_one_declares_the_node(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(OPERATOR) as client:
            same = await asyncio.gather(*(client.post("/v1/nodes", json=NODE) for _ in range(4)))
            assert {answer.status_code for answer in same} == {201}
            sizes = [{**NODE, "name": "m2", "gpus": gpus} for gpus in (1, 2, 3)]
            others = await asyncio.gather(*(client.post("/v1/nodes", json=one) for one in sizes))
            assert sorted(answer.status_code for answer in others) == [201, 409, 409]
            gone = await asyncio.gather(*(client.delete("/v1/nodes/m1") for _ in range(3)))
            assert sorted(answer.status_code for answer in gone) == [200, 404, 404]

    serve(database_url, work)


WRONG: list[dict[str, Any]] = [
    {"gpus": -1}, {"gpus": 63}, {"gpus": "4"}, {"cpus": 0}, {"cpus": -5}, {"mem_mib": -1},
    {"name": ""}, {"name": "a b"}, {"name": "-x"}, {"name": "x" * 201}, {"gpu_type": "a/b"},
    {"gpu_type": "unknown"}, {"features": ["a b"]}, {"features": "nvme"}, {"unknown": 1},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_bad_input_declares_nothing(database_url: str, wrong: dict[str, Any]) -> None:
    async def work(service: Service) -> None:
        async with service.client(OPERATOR) as client:
            answer = await client.post("/v1/nodes", json={**NODE, **wrong})
            assert answer.status_code in (400, 422), answer.text
            assert await names(client) == ["n1"]
            if "name" not in wrong and wrong != {"gpu_type": "unknown"}:
                changed = await client.patch("/v1/nodes/n1", json=wrong)
                assert changed.status_code in (400, 422), changed.text

    serve(database_url, work)


def test_a_refused_name_says_which_characters_are_allowed(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(OPERATOR) as client:
            answer = await client.post("/v1/nodes", json={**NODE, "name": "bad_name!"})
            assert answer.json()["detail"] == 'name "bad_name!" is not a node name'
            assert answer.json()["hint"] == (
                "Use letters, digits and the characters . _ -, and begin with a letter or a digit."
            )
            answer = await client.post("/v1/nodes", json={**NODE, "features": ["a b"]})
            assert "regex" not in answer.text
            assert "letters, digits" in answer.json()["hint"]

    serve(database_url, work)


def test_a_change_is_a_state_or_properties(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(OPERATOR) as client:
            for body in ({}, {"reason": "x"}, {"cpus": 4, "reason": "x"},
                         {"state": "DRAIN", "reason": "x", "cpus": 4}):  # fmt: skip
                answer = await client.patch("/v1/nodes/n1", json=body)
                assert (answer.status_code, answer.json()["code"]) == (400, "OD010"), body

    serve(database_url, work)


REFUSED: list[tuple[Declaring, str, str]] = [
    (Declaring(on_cluster=True), "m1", "the Kubernetes cluster reports the nodes"),
    (Declaring(fixed=frozenset({"m1"})), "m1", "is declared by --node or ODC_NODES"),
    (Declaring(other_hosts=tuple), "m1", "is another machine"),
    (Declaring(), socket.gethostname().partition(".")[0].lower(), "is this machine"),
]


@pytest.mark.parametrize(("declaring", "name", "why"), REFUSED, ids=[one[2] for one in REFUSED])
def test_nodes_that_have_another_source_are_not_declared(
    database_url: str, declaring: Declaring, name: str, why: str
) -> None:
    async def work(service: Service) -> None:
        async with service.client(OPERATOR) as client:
            answer = await client.post("/v1/nodes", json={**NODE, "name": name})
            assert (answer.status_code, answer.json()["code"]) == (409, "OD012")
            assert why in answer.json()["detail"]
        async with service.client(ALICE) as client:
            answer = await client.post("/v1/nodes", json={**NODE, "name": name})
            assert (answer.status_code, answer.json()["code"]) == (403, "OD013")

    serve(database_url, work, declaring=declaring)
