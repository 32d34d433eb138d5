"""The size of an answer about an array does not grow with its tasks, or with the length of expanded
patterns."""

from __future__ import annotations

from typing import Any

import pytest

from tests.odcd.api.service import Service, serve

TASKS = 20


async def started(service: Service, **fields: Any) -> int:
    array = await service.submit(array=f"0-{TASKS - 1}", gpus=0, **fields)
    assert len(await service.plan()) == TASKS
    return array


async def pages(service: Service, job: int | str, **params: str) -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = []
    async with service.client() as client:
        while True:
            answer = await client.get(f"/v1/jobs/{job}", params=params)
            assert answer.status_code == 200, answer.text
            found.append(answer.json()["jobs"])
            if answer.json()["next"] is None:
                return found
            params["cursor"] = answer.json()["next"]


def test_patterns_make_no_answer_of_many_megabytes(database_url: str) -> None:
    """Before: 244 MB for 100 tasks, and the event loop stood still for 2.3 s."""

    async def work(service: Service) -> None:
        array = await started(service, name="\N{DUCK}" * 200)
        # As an older daemon stored it, which did not refuse it.
        await service.database.execute(
            "update odc.job set stdout = repeat('%x', 2048), stderr = repeat('/%x', 1300)"
        )
        async with service.client() as client:
            answer = await client.get(f"/v1/jobs/{array}")
        assert answer.status_code == 200
        assert len(answer.content) < TASKS * 16_000
        assert [job["stdout"] for job in answer.json()["jobs"]] == ["%x" * 2048] * TASKS

    serve(database_url, work)


@pytest.mark.parametrize("limit", ["1", "7", "20", "21"])
def test_an_array_is_shown_in_pages(database_url: str, limit: str) -> None:
    async def work(service: Service) -> None:
        array = await started(service, stdout="out-%a")
        now = service.api.clock.now().isoformat()
        [whole] = await pages(service, array)
        # The last task has the array's own id.
        assert [job["array_task_id"] for job in whole] == [TASKS - 1, *range(TASKS - 1)]
        assert [job["stdout"] for job in whole[:2]] == [f"/tmp/out-{TASKS - 1}", "/tmp/out-0"]
        for params in ({}, {"as_of": now}):
            found = await pages(service, array, limit=limit, **params)
            assert [len(page) for page in found[:-1]] == [int(limit)] * (len(found) - 1)
            assert [job["id"] for page in found for job in page] == [job["id"] for job in whole]
        some = await pages(service, f"{array}_[2-9:2,15]", limit=limit)
        assert [job["array_task_id"] for page in some for job in page] == [2, 4, 6, 8, 15]

    serve(database_url, work)


def test_an_answer_holds_as_many_rows_as_fit_and_at_least_one(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(service: Service) -> None:
        array = await started(service, comment="\N{DUCK}" * 4000)
        for max_bytes, rows in ((100_000, 5), (1, 1)):
            monkeypatch.setattr("odcd.api.paths.MAX_BYTES", max_bytes)
            found = await pages(service, array)
            assert {len(page) for page in found} == {rows}
            assert {job["array_task_id"] for page in found for job in page} == {*range(TASKS)}

    serve(database_url, work)


def test_pages_are_bounded_and_unknown_jobs_refused(database_url: str) -> None:
    async def work(service: Service) -> None:
        job = await service.submit()
        async with service.client() as client:
            for query in ("limit=0", "limit=1001", "cursor=-1", "cursor=x"):
                assert (await client.get(f"/v1/jobs/{job}?{query}")).status_code == 400
            empty = await client.get(f"/v1/jobs/{job}?cursor={2**62}")
            assert empty.json() == {"jobs": [], "next": None}
            assert (await client.get("/v1/jobs/99")).status_code == 404
            assert (await client.get(f"/v1/jobs/{job}_3")).status_code == 404

    serve(database_url, work)
