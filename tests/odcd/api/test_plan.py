"""The plan, its changes, what-if with sbatch options, and replays over HTTP."""

from __future__ import annotations

import msgspec
import pytest

from odcd.api.answers.plan import Plan, PlanDiff, Replayed
from odcd.api.answers.submit import WhatIf
from tests.odcd.api.service import Service, serve


@pytest.mark.long
def test_the_plan_is_shown_compared_and_replayed(database_url: str) -> None:
    async def work(service: Service) -> None:
        running = await service.submit(gpus=8, time_limit_s=600)
        await service.plan()
        waiting = await service.submit(gpus=8, time_limit_s=600)
        await service.plan()
        async with service.client() as client:
            answer = await client.get("/v1/plan")
            moment = service.api.clock.now().isoformat()
            plan = msgspec.json.decode(answer.content, type=Plan)
            [planned] = plan.jobs
            assert (planned.id, planned.node_names, plan.pass_id) == (waiting, ["n1"], 2)
            assert planned.planned_start_at is not None
            then = await client.get("/v1/plan", params={"as_of": moment})
            assert msgspec.json.decode(then.content, type=Plan).jobs == [planned]

            await service.end(running)
            await service.plan()
            answer = await client.get("/v1/plan/diff", params={"from": moment})
            diff = msgspec.json.decode(answer.content, type=PlanDiff)
            assert (diff.from_.pass_id, diff.to.pass_id) == (2, 3)
            [moved] = diff.jobs
            assert (moved.id, moved.change, moved.moves[-1].cause) == (
                waiting,
                "started",
                "started",
            )
            same = await client.get("/v1/plan/diff", params={"from": "2", "to": "3"})
            assert same.content == answer.content

            for pass_id in (1, 2, 3):
                answer = await client.get(f"/v1/passes/{pass_id}/replay")
                replay = msgspec.json.decode(answer.content, type=Replayed)
                assert (replay.equal, replay.chain, replay.differences) == (True, True, [])
            for depth in (0, 5, 1_000_000):
                answer = await client.get(
                    "/v1/passes/2/replay", params={"policy": "saf", "plan_depth": depth}
                )
                assert answer.status_code == 200, answer.text
            replay = msgspec.json.decode(answer.content, type=Replayed)
            assert replay.policy.then != replay.policy.now

    serve(database_url, work)


def test_a_heterogeneous_job_is_planned_with_its_components(database_url: str) -> None:
    async def work(service: Service) -> None:
        await service.submit(gpus=8, time_limit_s=600)
        await service.plan()
        components = [{"cpus_per_task": 2}, {"gpus_per_node": 4}]
        await service.submit(gpus=None, components=components, time_limit_s=600)
        await service.plan()
        async with service.client() as client:
            plan = msgspec.json.decode((await client.get("/v1/plan")).content, type=Plan)
        [planned] = plan.jobs
        assert [one.gpus_per_node for one in planned.components or []] == [0, 4]

    serve(database_url, work)


@pytest.mark.parametrize(
    ("path", "query", "status", "code"),
    [
        ("/v1/passes/7/replay", {}, 404, "OD030"),
        ("/v1/passes/last/replay", {}, 404, "OD030"),
        ("/v1/passes/99999999999999999999/replay", {}, 404, "OD030"),
        ("/v1/passes/1/replay", {"policy": "lifo"}, 404, "OD029"),
        ("/v1/passes/1/replay", {"plan_depth": "-1"}, 400, "OD010"),
        ("/v1/plan/diff", {}, 400, "OD010"),
        ("/v1/plan/diff", {"from": "noon"}, 400, "OD010"),
        ("/v1/plan/diff", {"from": "2026-07-01T12:00:00"}, 400, "OD010"),
        ("/v1/plan/diff", {"from": "1999-07-01T12:00:00Z"}, 404, "OD030"),
        ("/v1/plan/diff", {"from": "1", "to": "2"}, 404, "OD030"),
        ("/v1/plan", {"as_of": "2999-07-01T12:00:00Z"}, 400, "OD010"),
    ],
)
def test_unknown_plans_and_jobs_are_refused(
    database_url: str, path: str, query: dict[str, str], status: int, code: str
) -> None:
    async def work(service: Service) -> None:
        await service.submit(gpus=8)
        await service.plan()
        async with service.client() as client:
            answer = await client.get(path, params=query)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert answer.json()["hint"]

    serve(database_url, work)


def test_what_if_accepts_sbatch_options(database_url: str) -> None:
    async def work(service: Service) -> None:
        await service.submit(gpus=8, time_limit_s=600)
        await service.plan()
        async with service.client() as client:
            argv = [["-N", "1", "--gres=gpu:h100:8", "-t", t] for t in ("1:00:00", "4:00:00")]
            answer = await client.post("/v1/plan/what-if", json={"argv": [*argv, ["-N", "2"]]})
            assert answer.status_code == 200, answer.text
            alternatives = msgspec.json.decode(answer.content, type=WhatIf).jobs
            assert [job.time_limit_s for job in alternatives[:2]] == [3600, 14400]
            assert all(job.start_at and job.node_names == ["n1"] for job in alternatives[:2])
            assert alternatives[2].refused is not None
            await service.database.execute("update odc.partition set state = 'DOWN'")
            answer = await client.post("/v1/plan/what-if", json={"argv": argv[:1]})
            [down] = msgspec.json.decode(answer.content, type=WhatIf).jobs
            assert (down.reason, down.start_at, down.promised) == ("PartitionDown", None, False)
            assert down.text == (
                "the job would be accepted, and wait while its partition is down (PartitionDown)"
            )
            await service.database.execute("update odc.partition set state = 'UP'")
            for body in ({}, {"argv": argv, "jobs": [{"script": "#!/bin/sh\n", "work_dir": "/"}]}):
                answer = await client.post("/v1/plan/what-if", json=body)
                assert answer.json()["code"] == "OD010"
            answer = await client.post("/v1/plan/what-if", json={"argv": [["--nodes=x"]]})
            assert answer.json()["code"] == "OD010"
            assert "nodes" in answer.json()["detail"]

    serve(database_url, work)


def test_what_if_says_when_a_licence_lets_the_job_start(database_url: str) -> None:
    async def work(service: Service) -> None:
        await service.database.execute("insert into odc.licence values ('matlab', 1)")
        await service.submit(gpus=1, time_limit_s=600, licences={"matlab": 1})
        await service.plan()
        async with service.client() as client:
            argv = [["--gres=gpu:h100:1", "-t", "10", "-L", "matlab"]]
            answer = await client.post("/v1/plan/what-if", json={"argv": argv})
            [job] = msgspec.json.decode(answer.content, type=WhatIf).jobs
            assert (job.limit, job.promised) == ("Licenses", True)
            assert job.text == (
                "the job would wait for licences in use, and start at "
                f"{job.start_at} at the latest on n1"
            )

    serve(database_url, work)
