"""Lists of jobs, single jobs, and waiting for their end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx
import msgspec

from odcd.api.answers.jobs import Explanation, JobList
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve


def test_a_list_of_jobs_matches_the_document(database_url: str) -> None:
    async def work(service: Service) -> None:
        first, second = await service.submit(gpus=8), await service.submit(gpus=8)
        await service.plan()
        async with service.client() as client:
            answer = await client.get("/v1/jobs")
            listed = msgspec.json.decode(answer.content, type=JobList)
            assert [(job.id, job.state) for job in listed.jobs] == [
                (first, "CONFIGURING"),
                (second, "PENDING"),
            ]
            assert listed.jobs[1].why[0].text
            assert listed.next is None

    serve(database_url, work)


def test_a_started_job_shows_the_files_it_writes(database_url: str) -> None:
    async def work(service: Service) -> None:
        usual = await service.submit()
        own = await service.submit(name="train", stdout="%x-%j.out", stderr="/var/%N.err")
        array = await service.submit(array="3")
        waits = await service.submit(hold=True, stdout="%j.out")
        spooled = await service.submit(spool_output=True)
        await service.plan()
        async with service.client() as client:

            async def files(job_id: int) -> tuple[str | None, str | None]:
                [job] = (await client.get(f"/v1/jobs/{job_id}")).json()["jobs"]
                stdout: str | None = job["stdout"]
                return stdout and stdout.removeprefix(job["work_dir"]), job["stderr"]

            assert await files(usual) == (f"/slurm-{usual}.out", None)
            assert await files(own) == (f"/train-{own}.out", "/var/n1.err")
            assert await files(array) == (f"/slurm-{array}_3.out", None)
            assert await files(waits) == ("%j.out", None)
            assert await files(spooled) == (None, None)

    serve(database_url, work)


def test_a_list_shows_the_files_that_its_jobs_write(database_url: str) -> None:
    async def work(service: Service) -> None:
        own = await service.submit(name="train", stdout="%x-%j.out", stderr="/var/%N.err")
        array = await service.submit(array="3")
        spooled = await service.submit(spool_output=True)
        await service.plan()
        waits = await service.submit(hold=True, stdout="%j.out")
        expected = {
            own: f"/tmp/train-{own}.out", array: f"/tmp/slurm-{array}_3.out", spooled: None,
            waits: "%j.out",
        }  # fmt: skip
        async with service.client() as client:

            async def listed(**params: str) -> list[dict[str, Any]]:
                return (await client.get("/v1/jobs", params=params)).json()["jobs"]

            assert {job["id"]: job["stdout"] for job in await listed()} == expected
            some = await listed(fields="state,stdout,id")
            assert {job["id"]: job["stdout"] for job in some} == expected
            assert [list(job) for job in some] == [["state", "stdout", "id"]] * 4
            assert [list(job) for job in await listed(fields="id")] == [["id"]] * 4
            errors = await listed(fields="stderr", job=str(own), ended="true")
            assert errors == [{"stderr": "/var/n1.err"}]

    serve(database_url, work)


def test_pages_follow_the_cursor_to_the_end(database_url: str) -> None:
    async def work(service: Service) -> None:
        jobs = [await service.submit(gpus=8) for _ in range(5)]
        await service.plan()
        for ended, order in (("false", jobs), ("true", jobs[::-1])):
            async with service.client() as client:
                found: list[int] = []
                params: dict[str, str] = {"limit": "2", "fields": "id", "ended": ended}
                while True:
                    page = (await client.get("/v1/jobs", params=params)).json()
                    found += [job["id"] for job in page["jobs"]]
                    if page["next"] is None:
                        break
                    assert len(page["jobs"]) == 2
                    params["cursor"] = page["next"]
                assert found == order

    serve(database_url, work)


def test_filters_take_lists_by_commas(database_url: str) -> None:
    async def work(service: Service) -> None:
        a = await service.submit(ALICE, name="train")
        b = await service.submit(BOB, name="eval")
        c = await service.submit(BOB, name='it\'s, "quoted"')
        async with service.client() as client:

            async def ids(**params: str) -> list[int]:
                answer = await client.get("/v1/jobs", params={**params, "fields": "id"})
                return [job["id"] for job in answer.json()["jobs"]]

            assert await ids(user=str(BOB.uid)) == [b, c]
            assert await ids(user=f"{BOB.uid},{ALICE.uid}", name="eval,train") == [a, b]
            assert await ids(job=f"{a},{c}") == [a, c]
            assert await ids(state="pending") == [a, b, c]
            assert await ids(state="COMPLETED") == []
            assert await ids(partition="main", account="default", qos="normal") == [a, b, c]
            assert await ids(job="999") == []

    serve(database_url, work)


def test_a_filter_for_an_end_state_includes_ended_jobs(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        await service.plan()
        await service.end(job_id, exit_code=1)
        async with service.client() as client:
            listed = (await client.get("/v1/jobs", params={"state": "FAILED"})).json()["jobs"]
            assert [job["id"] for job in listed] == [job_id]
            assert (await client.get("/v1/jobs")).json()["jobs"] == []

    serve(database_url, work)


def test_why_lists_the_causes(database_url: str) -> None:
    async def work(service: Service) -> None:
        await service.submit(gpus=8)
        waiting = await service.submit(gpus=8)
        await service.plan()
        async with service.client(BOB) as client:
            answer = await client.get(f"/v1/jobs/{waiting}/why")
            explanation = msgspec.json.decode(answer.content, type=Explanation)
            assert (explanation.job_id, explanation.reason) == (waiting, "Resources")
            assert [cause.cause for cause in explanation.why] == ["node", "running_job"]

    serve(database_url, work)


def test_a_script_is_for_its_owner_and_operators(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit(script="#!/bin/sh\necho geheim ü\n")
        for peer, status in ((ALICE, 200), (OPERATOR, 200), (BOB, 403)):
            async with service.client(peer) as client:
                answer = await client.get(f"/v1/jobs/{job_id}/script")
                assert answer.status_code == status
                assert ("geheim ü" in answer.text) == (status == 200)

    serve(database_url, work)


def test_a_wait_ends_with_the_job(database_url: str) -> None:
    """API-13: clients need not poll every two seconds."""

    async def work(service: Service) -> None:
        job_id = await service.submit()
        await service.plan()
        async with service.client() as client:
            waiting = asyncio.create_task(client.get(f"/v1/jobs/{job_id}", params={"wait": "300"}))
            at_once = (await client.get(f"/v1/jobs/{job_id}", params={"wait": "0"})).json()
            assert at_once == {"jobs": [], "ended": False}
            await service.end(job_id, exit_code=3)
            async with asyncio.timeout(60):
                answer = (await waiting).json()
            assert answer == {
                "jobs": [
                    {
                        "id": job_id,
                        "array_task_id": None,
                        "state": "FAILED",
                        "exit_code": 3,
                        "signal": None,
                    }
                ],
                "ended": True,
            }
            again = await client.get(f"/v1/jobs/{job_id}", params={"wait": "300"})
            assert again.json() == answer

    serve(database_url, work)


def test_a_wait_for_an_array_ends_with_its_last_element(database_url: str) -> None:
    async def work(service: Service) -> None:
        array = await service.submit(array="0-2", gpus=4)
        first, second = await service.plan()
        async with service.client() as client:
            whole = asyncio.create_task(client.get(f"/v1/jobs/{array}", params={"wait": "300"}))
            task = asyncio.create_task(client.get(f"/v1/jobs/{array}_2", params={"wait": "300"}))
            for job_id in (first, second):
                await service.end(job_id)
            [third] = await service.plan()
            assert not whole.done()
            await service.end(third)
            async with asyncio.timeout(60):
                ended = (await whole).json()["jobs"]
                assert [job["id"] for job in ended] == sorted([first, second, third])
                [last] = (await task).json()["jobs"]
                assert (last["id"], last["array_task_id"]) == (third, 2)

    serve(database_url, work)


def test_a_wait_survives_a_lost_notification(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        await service.plan()
        async with service.client() as client:
            waiting = asyncio.create_task(client.get(f"/v1/jobs/{job_id}", params={"wait": "300"}))
            await client.get(f"/v1/jobs/{job_id}", params={"wait": "0"})
            service.hub.wake = lambda: None
            await service.end(job_id)
            async with asyncio.timeout(60):
                assert (await waiting).json()["ended"] is True

    serve(database_url, work)


def test_waits_end_when_the_daemon_stops(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        async with service.client() as client:
            waiting = asyncio.create_task(client.get(f"/v1/jobs/{job_id}", params={"wait": "300"}))
            await client.get(f"/v1/jobs/{job_id}")
            service.hub.close()
            async with asyncio.timeout(60):
                assert (await waiting).json() == {"jobs": [], "ended": False}

    serve(database_url, work)


def test_a_thousand_waits_share_one_query(database_url: str) -> None:
    async def work(service: Service) -> None:
        jobs = [await service.submit(gpus=0) for _ in range(10)]
        await service.plan()
        questions = 0
        real = service.store.events.list_settled

        async def counted(job_ids: list[int]) -> list[int]:
            nonlocal questions
            questions += 1
            return await real(job_ids)

        service.hub._store.list_settled = counted  # type: ignore[method-assign]
        async with service.client() as client:

            async def wait(job_id: int) -> httpx.Response:
                return await client.get(f"/v1/jobs/{job_id}", params={"wait": "300"})

            waits = [asyncio.create_task(wait(job_id)) for job_id in jobs * 10]
            for job_id in jobs:
                await service.end(job_id)
            async with asyncio.timeout(60):
                answers_ = await asyncio.gather(*waits)
            assert all(answer.json()["ended"] for answer in answers_)
            assert questions < 50

    serve(database_url, work)


def test_as_of_returns_jobs_and_nodes_as_they_were(database_url: str) -> None:
    async def work(service: Service) -> None:
        job = await service.submit(gpus=8, time_limit_s=600)
        before = datetime.now(UTC).isoformat()
        await service.plan()
        async with service.client() as client:

            async def at_that_time(path: str, key: str, **more: str) -> Any:
                answer = await client.get(path, params={"as_of": before, **more})
                assert answer.status_code == 200, answer.text
                return answer.json()[key]

            assert [j["state"] for j in await at_that_time("/v1/jobs", "jobs")] == ["PENDING"]
            assert [j["state"] for j in await at_that_time(f"/v1/jobs/{job}", "jobs")] == [
                "PENDING"
            ]
            assert await at_that_time(f"/v1/jobs/{job}/why", "state") == "PENDING"
            assert [n["gpus_used"] for n in await at_that_time("/v1/nodes", "nodes")] == [0]
            assert [n["gpus_used"] for n in (await client.get("/v1/nodes")).json()["nodes"]] == [8]

            for path, query in (
                ("/v1/nodes", {"as_of": "2999-01-01T00:00:00Z"}),
                ("/v1/nodes", {"as_of": "1999-01-01T00:00:00Z"}),
                ("/v1/nodes", {"as_of": "2026-01-01T00:00:00"}),
                ("/v1/jobs", {"as_of": "noon"}),
                (f"/v1/jobs/{job}", {"as_of": before, "wait": "1"}),
                (f"/v1/jobs/{job}/why", {"as_of": ""}),
            ):
                answer = await client.get(path, params=query)
                told_why = answer.json()
                assert (answer.status_code, told_why.get("code")) == (400, "OD010"), (path, query)
                assert told_why["hint"]

    serve(database_url, work)


def test_an_unknown_name_is_refused_instead_of_an_empty_list(database_url: str) -> None:
    async def work(service: Service) -> None:
        job = await service.submit()
        async with service.client() as client:

            async def code(path: str, **query: str) -> str | None:
                answer = await client.get(path, params=query)
                return None if answer.status_code == 200 else str(answer.json()["code"])

            assert await code("/v1/jobs", user="nobody-at-all") == "OD027"
            assert await code("/v1/jobs", user="root", state="RUNNING") is None
            assert await code("/v1/priority", id=str(job)) is None
            assert await code("/v1/priority", id="9999") == "OD006"
            assert await code("/v1/priority", user="nobody-at-all") == "OD027"
            assert await code("/v1/priority", partition="x") == "OD001"
            assert await code("/v1/priority", account="x") == "OD002"

    serve(database_url, work)
