"""POST /v1/jobs, /v1/jobs/batch and /v1/submit-argv."""

from __future__ import annotations

import asyncio

import httpx
import msgspec
import pytest

from odcd.api.answers import submit as submit_answers
from odcd.api.answers.submit import Preview
from odcd.errors import DatabaseDown
from odcd.jobs.submission import Prepared
from tests.odcd.api.service import ALICE, BOB, BODY, Service, serve


def test_a_submitted_job_belongs_to_its_submitter_and_wakes_the_planner(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(ALICE) as client:
            answer = await client.post("/v1/jobs", json={**BODY, "name": "train"})
            assert answer.status_code == 201
            assert answer.headers["content-type"] == "application/json"
            assert service.woken == [1]
            [job] = (await client.get(f"/v1/jobs/{answer.json()['id']}")).json()["jobs"]
            assert (job["name"], job["uid"], job["user"]) == ("train", ALICE.uid, str(ALICE.uid))

    serve(database_url, work)


def test_a_refusal_is_a_problem_with_code_values_and_hint(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            answer = await client.post("/v1/jobs", json={**BODY, "partitions": ["h1000"]})
            assert answer.status_code == 404
            assert answer.headers["content-type"] == "application/problem+json"
            problem = answer.json()
            assert (problem["code"], problem["title"], problem["status"]) == (
                "OD001",
                "UnknownPartition",
                404,
            )
            assert '"h1000"' in problem["detail"]
            assert "main" in problem["hint"]
            assert service.woken == []

    serve(database_url, work)


def test_the_same_submit_under_one_key_makes_one_job(database_url: str) -> None:
    async def work(service: Service) -> None:
        key = {"Idempotency-Key": "k1"}
        async with service.client() as client:
            answers = await asyncio.gather(
                *(client.post("/v1/jobs", json=BODY, headers=key) for _ in range(5))
            )
            assert {answer.status_code for answer in answers} == {201}
            assert len({answer.json()["id"] for answer in answers}) == 1
            listed = (await client.get("/v1/jobs")).json()["jobs"]
            assert len(listed) == 1
            other = await client.post("/v1/jobs", json={**BODY, "name": "other"}, headers=key)
            assert (other.status_code, other.json()["code"]) == (409, "OD014")
        async with service.client(BOB) as client:
            assert (await client.post("/v1/jobs", json=BODY, headers=key)).status_code == 201

    serve(database_url, work)


def test_a_key_is_one_to_200_characters(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            answer = await client.post(
                "/v1/jobs", json=BODY, headers={"Idempotency-Key": "k" * 201}
            )
            assert (answer.status_code, answer.json()["code"]) == (400, "OD010")
            answer = await client.post(
                "/v1/jobs", json=BODY, headers={"Idempotency-Key": "k" * 200}
            )
            assert answer.status_code == 201

    serve(database_url, work)


def test_a_batch_is_accepted_completely_and_in_order(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            jobs = [{**BODY, "name": f"j{i}"} for i in range(30)]
            answer = await client.post("/v1/jobs/batch", json={"jobs": jobs})
            assert answer.status_code == 201
            ids = answer.json()["ids"]
            listed = (await client.get("/v1/jobs", params={"fields": "id,name"})).json()["jobs"]
            assert listed == [{"id": i, "name": f"j{n}"} for n, i in enumerate(ids)]

    serve(database_url, work)


def test_a_batch_with_one_bad_job_is_refused_whole_and_names_it(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            for bad, status in (
                ({"gpu_type": "h1000"}, 404),
                ({"work_dir": "here"}, 400),
                ({"gpus": 904}, 422),
            ):
                jobs = [BODY, {**BODY, **bad}, BODY]
                answer = await client.post("/v1/jobs/batch", json={"jobs": jobs})
                assert answer.status_code == status, answer.text
                assert "job 1 of the batch" in answer.json()["detail"]
            assert (await client.get("/v1/jobs", params={"ended": "true"})).json()["jobs"] == []

    serve(database_url, work)


def _argv(*argv: str, **more: object) -> dict[str, object]:
    return {"argv": list(argv), "work_dir": "/tmp", **more}


def test_a_command_line_is_accepted_after_the_server_requested_its_script(
    database_url: str,
) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            request = _argv("--gpus", "2", "train.sh", "arg")
            answer = await client.post("/v1/submit-argv", json=request)
            assert answer.status_code == 409
            assert (answer.json()["title"], answer.json()["script_path"]) == (
                "ScriptNeeded",
                "train.sh",
            )
            script = "#!/bin/sh\n#SBATCH --job-name=hello\ntrue\n"
            answer = await client.post("/v1/submit-argv", json={**request, "script": script})
            assert answer.status_code == 201
            submitted = answer.json()
            assert list(submitted) == [
                "id",
                "wait",
                "parsable",
                "quiet",
                "json",
                "pty",
                "warnings",
                "folders",
            ]
            [job] = (await client.get(f"/v1/jobs/{submitted['id']}")).json()["jobs"]
            assert (job["name"], job["gpus"], job["work_dir"]) == ("hello", 2, "/tmp")
            stored = await client.get(f"/v1/jobs/{submitted['id']}/script")
            assert stored.text == script

    serve(database_url, work)


def test_lines_of_options_are_refused_where_they_are_not_read(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            job = {"script": "#!/bin/sh\n#SBATCH --gpus=8\ntrue\n", "work_dir": "/tmp"}
            for path, body in (("/v1/jobs", job), ("/v1/jobs/batch", {"jobs": [job]})):
                answer = await client.post(path, json=body)
                assert answer.status_code == 400
                assert "line 2 of the script has options" in answer.json()["detail"]
                assert "/v1/submit-argv" in answer.json()["hint"]
            late = {**job, "script": "#!/bin/sh\n##SBATCH x\ntrue\n#SBATCH --gpus=8\n"}
            assert (await client.post("/v1/jobs", json=late)).status_code == 201

    serve(database_url, work)


def test_client_options_are_returned_in_the_answer(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            argv = _argv("--parsable", "--wait", "--wrap", "true")
            answer = (await client.post("/v1/submit-argv", json=argv)).json()
            assert (answer["parsable"], answer["wait"]) == (True, True)
            argv = _argv("true", command="run")
            assert (await client.post("/v1/submit-argv", json=argv)).json()["wait"] is True

    serve(database_url, work)


def test_test_only_shows_nodes_and_start_and_submits_nothing(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:

            async def preview_of(*argv: str) -> Preview:
                request = _argv("--test-only", *argv, "--wrap", "true")
                answer = await client.post("/v1/submit-argv", json=request)
                assert answer.status_code == 200, answer.text
                return msgspec.json.decode(answer.content, type=submit_answers.TestOnly).test_only

            now = await preview_of("--gpus", "2")
            assert now.text == "the job would start now on n1"
            assert (now.node_names, now.gpus_per_node, now.time_limit_s) == (["n1"], 2, 86_400)
            await service.submit(gpus=8, time_limit_s=600)
            await service.plan()
            later = await preview_of("--gpus", "2")
            assert later.start_at is not None
            assert later.text == f"the job would start at {later.start_at} at the latest on n1"
            await service.submit(gpus=8)
            behind = await preview_of("--gpus", "2")
            assert behind.start_at is not None
            assert behind.start_at > later.start_at, "after the one that waits already"
            for option, text in (
                ("--hold", "held"),
                ("--begin=now+1hour", "start after"),
                ("--dependency=singleton", "wait for"),
            ):
                kept_back = await preview_of(option)
                assert text in kept_back.text
                assert kept_back.start_at is None
            refused = _argv("--test-only", "--gpus", "h1000:1", "--wrap", "true")
            assert (await client.post("/v1/submit-argv", json=refused)).json()["code"] == "OD005"
            assert len((await client.get("/v1/jobs", params={"ended": "true"})).json()["jobs"]) == 2
            assert service.woken == [1, 1]

    serve(database_url, work)


def test_a_preview_of_preemption_names_the_victims_and_submits_nothing(database_url: str) -> None:
    async def work(service: Service) -> None:
        await service.database.execute(
            "insert into odc.qos (name, preempts) values ('urgent', '{1}')"
        )
        request = _argv("--preview-preemption", "--gpus", "8", "-q", "urgent", "--wrap", "true")

        async def preview_for(client: httpx.AsyncClient) -> submit_answers.TestOnly:
            answer = await client.post("/v1/submit-argv", json=request)
            assert answer.status_code == 200, answer.text
            return msgspec.json.decode(answer.content, type=submit_answers.TestOnly)

        async with service.client() as client:
            nobody = (await preview_for(client)).test_only
            assert nobody.text == "the job would start now on n1, without preempting any job"
            victim = await service.submit(gpus=8)
            await service.plan()
            preview = await preview_for(client)
            assert preview.preview_preemption
            [one] = preview.test_only.victims
            assert (one.job_id, one.mode) == (victim, "requeue")
            assert one.lost_gpu_s < 8 * 60, "what ran a moment ago loses next to nothing"
            assert one.text.startswith(f"job {victim} of {one.user} (QOS normal) after ")
            starts = preview.test_only.start_at
            assert preview.test_only.text == (
                f"the job would start at {starts} at the latest on n1, preempting 1 job:\n"
                f"  {one.text}"
            )
            [job] = (await client.get("/v1/jobs")).json()["jobs"]
            assert (job["id"], job["preemption"]) == (victim, None)

    serve(database_url, work)


def test_a_wrong_option_is_refused_by_name(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            answer = await client.post("/v1/submit-argv", json=_argv("--no-such-thing"))
            assert answer.status_code == 400
            assert "--no-such-thing" in answer.json()["detail"]

    serve(database_url, work)


def test_the_submit_options_are_listed_for_help_and_completion(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            options = (await client.get("/v1/submit-options")).json()["options"]
            assert {"long": "job-name", "short": "J"}.items() <= next(
                option for option in options if option["long"] == "job-name"
            ).items()

    serve(database_url, work)


def test_no_submit_is_confirmed_while_the_database_is_down(database_url: str) -> None:
    class Away:
        async def submit(self, prepared: Prepared) -> list[object]:
            raise DatabaseDown("PostgreSQL cannot be reached", "Try again.")

    async def work(service: Service) -> None:
        async with service.client() as client:
            answer = await client.post("/v1/jobs", json=BODY)
            assert (answer.status_code, answer.json()["code"]) == (503, "OD023")
            assert answer.headers["retry-after"] == "1"

    serve(database_url, work, batcher=Away())


@pytest.mark.parametrize("count", [2_000])
def test_a_large_batch_gets_one_answer(database_url: str, count: int) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            answer = await client.post("/v1/jobs/batch", json={"jobs": [BODY] * count})
            assert len(answer.json()["ids"]) == count
            page = (await client.get("/v1/jobs", params={"limit": "10000", "fields": "id"})).json()
            assert [job["id"] for job in page["jobs"]] == answer.json()["ids"]
            assert page["next"] is None

    serve(database_url, work)


def test_a_job_whose_dependency_can_never_be_met_is_accepted_with_a_warning(
    database_url: str,
) -> None:
    async def work(service: Service) -> None:
        failed = await service.submit()
        assert await service.plan() == [failed]
        await service.end(failed, exit_code=1)
        running = await service.submit()
        never = {**BODY, "dependency": f"afterok:{failed}"}
        soon = {**BODY, "dependency": f"afterok:{running}"}
        line = {"argv": [f"--dependency=afterok:{failed}", "--wrap=true"], "work_dir": "/tmp"}
        async with service.client() as client:
            one = (await client.post("/v1/jobs", json=never)).json()
            two = (await client.post("/v1/jobs/batch", json={"jobs": [soon, never]})).json()
            argv = (await client.post("/v1/submit-argv", json=line)).json()
            assert (await client.post("/v1/jobs", json=soon)).json()["warnings"] == []
        for job_id, warnings in (
            (one["id"], one["warnings"]),
            (two["ids"][1], two["warnings"]),
            (argv["id"], argv["warnings"]),
        ):
            assert warnings == [
                f"job {job_id} can never start: it needed job {failed} to end successfully "
                "(afterok); that job is FAILED; it waits until you cancel it or change its "
                "dependency"
            ]

    serve(database_url, work)
