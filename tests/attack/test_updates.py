"""An update gives a job nothing that its user could not have requested at submit."""

from __future__ import annotations

from typing import Any

from tests.odcd.api.service import ALICE, OPERATOR, Service, serve


async def made(service: Service, path: str, body: Any, method: str = "POST") -> None:
    async with service.client(OPERATOR) as client:
        answer = await client.request(method, path, json=body)
    assert answer.status_code < 300, answer.text


async def update(service: Service, job_id: int, **changes: Any) -> tuple[str, str | None]:
    """Outcome and code."""
    async with service.client(ALICE) as client:
        answer = await client.patch(f"/v1/jobs/{job_id}", json=changes)
    assert answer.status_code == 200, answer.text
    (job,) = answer.json()["jobs"]
    return job["outcome"], job["code"]


async def partition_of(service: Service, job_id: int) -> str:
    return await service.database.fetchval(
        "select string_agg(p.name, ',') from odc.job as j "
        "join odc.partition as p on p.id = any (j.partition_ids) where j.id = $1",
        job_id,
    )


def test_an_update_reaches_no_partition_that_is_closed_to_the_user(database_url: str) -> None:
    """Before: a job that was submitted to a partition of its account could be moved to any other,
    of a higher tier for example."""

    async def work(service: Service) -> None:
        await made(service, "/v1/partitions", {"name": "vip", "all_nodes": True, "tier": 3})
        await made(service, "/v1/accounts", {"name": "lab"})
        member = {"user": "alice", "uid": ALICE.uid, "partition": "main", "default": True}
        await made(service, "/v1/accounts/lab/users", member)
        await made(service, "/v1/accounting", {"enforce": True}, "PATCH")
        job_id = await service.submit(partitions=["main"])
        for changes in (
            {"partitions": ["vip"]}, {"partitions": ["main", "vip"]},
            {"partitions": ["vip"], "account": "lab"}, {"partitions": ["vip"], "qos": "normal"},
        ):  # fmt: skip
            assert await update(service, job_id, **changes) == ("refused", "OD026"), changes
        assert await partition_of(service, job_id) == "main"
        assert await update(service, job_id, partitions=["main"]) == ("updated", None)

    serve(database_url, work)


def test_an_update_uses_no_qos_that_is_closed_there(database_url: str) -> None:
    async def work(service: Service) -> None:
        await made(service, "/v1/partitions", {"name": "vip", "all_nodes": True, "tier": 3})
        await made(service, "/v1/qos", {"name": "high", "restricted": True})
        await made(service, "/v1/accounts", {"name": "lab"})
        for part, qos in (("main", ["normal", "high"]), ("vip", ["normal"])):
            member = {"user": "alice", "uid": ALICE.uid, "partition": part, "qos": qos}
            await made(service, "/v1/accounts/lab/users", member)
        job_id = await service.submit(partitions=["main"], account="lab", qos="high")
        assert await update(service, job_id, partitions=["vip"]) == ("refused", "OD026")
        moved = await update(service, job_id, partitions=["vip"], qos="normal")
        assert moved == ("updated", None)

    serve(database_url, work)


def test_an_update_keeps_the_nodes_that_a_partition_gives_a_job(database_url: str) -> None:
    """Before: max_nodes was checked only at submit."""

    async def work(service: Service) -> None:
        await made(service, "/v1/partitions", {"name": "one", "all_nodes": True, "max_nodes": 1})
        job_id = await service.submit(partitions=["main"], node_count=2, gpus=2)
        assert await update(service, job_id, partitions=["one"]) == ("refused", "OD009")
        assert await partition_of(service, job_id) == "main"

    serve(database_url, work, nodes=2)
