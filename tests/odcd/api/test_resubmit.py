"""Jobs that have ended are submitted again as new jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve

OWN = {
    "id", "submitted_at", "state", "reason", "end_detail", "partition_id", "attempt", "eligible_at",
    "started_at", "ended_at", "node_names", "exit_code", "signal", "ended_by", "array_job_id",
}  # fmt: skip
"""Columns of a job that tell what became of it."""

AMOUNTS = st.lists(
    st.sampled_from([
        "--nodes=1", "--nodes=2", "--nodes=1-3", "--ntasks=2", "--ntasks=4", "--ntasks-per-node=2",
        "--gpus=2", "--gpus-per-node=1", "--gres=gpu:2", "--gres=gpu:h100:2", "--gpus-per-task=1",
        "--cpus-per-task=3", "--cpus-per-gpu=2", "--mem=0", "--mem=1000", "--mem-per-cpu=100",
        "--mem-per-gpu=500", "--exclusive", "--tmp=10", "--switches=1", "--switches=1@60",
        "--nodelist=n1,n2", "--exclude=n3", "--nice=5", "--time=10", "--time=UNLIMITED",
        "--signal=B:10@60", "--no-requeue", "--array=0-9%2", "--array=1,3,5", "--open-mode=append",
        "--output=x-%j", "--comment=a b", "--mail-type=END,FAIL", "--mail-user=a@example.org",
    ]),
    max_size=6, unique_by=lambda option: option.split("=")[0],
)  # fmt: skip


async def resubmit(
    service: Service, selector: object, *, peer: Any = ALICE, key: str = "", **body: Any
) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    async with service.client(peer) as client:
        return await client.post(f"/v1/jobs/{selector}/resubmit", json=body, headers=headers)


async def cancel(service: Service, selector: object) -> None:
    async with service.client(ALICE) as client:
        answer = await client.post(f"/v1/jobs/{selector}/cancel", json={})
    assert answer.status_code == 200, answer.text


async def again(service: Service, selector: object, **more: Any) -> int:
    answer = await resubmit(service, selector, **more)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def request_of(service: Service, job_id: int) -> dict[str, Any]:
    """Everything that the job asks for."""
    text = await service.database.fetchval(
        "select jsonb_build_object('job', to_jsonb(j), 'shape', to_jsonb(s) - 'id', 'array', "
        "(select jsonb_build_array(a.task_min, a.task_max, a.task_count, a.throttle) "
        "from odc.array_job as a where a.job_id = j.id), 'tasks', p.tasks, 'mail', "
        "(select jsonb_build_array(m.kinds, m.address) from odc.job_mail as m "
        "where m.job_id = j.id)) from odc.job as j left join odc.pending as p on p.job_id = j.id "
        "join odc.shape as s on s.id = coalesce(j.shape_id, p.shape_id) where j.id = $1",
        job_id,
    )
    found = json.loads(text)
    found["job"] = {name: value for name, value in found["job"].items() if name not in OWN}
    return found


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(options=AMOUNTS)
def test_a_resubmitted_job_requests_the_same(database_url: str, options: list[str]) -> None:
    async def work(service: Service) -> None:
        body = {"argv": [*options, "--wrap", "true"], "work_dir": "/tmp",
                "environment": {"COLOUR": "red", "LINES": "a\nb"}}  # fmt: skip
        async with service.client(ALICE) as client:
            answer = await client.post("/v1/submit-argv", json=body)
        if answer.status_code != 201:
            return
        first = answer.json()["id"]
        before = await request_of(service, first)
        await cancel(service, first)
        second = await again(service, first)
        assert second != first
        after = await request_of(service, second)
        # One node or several: only the first says where the script runs.
        for one in (before, after):
            one["job"]["options"].pop("launch", None)
        assert after == before, options

    serve(database_url, work, nodes=4)


def test_a_job_runs_again_under_a_new_number(database_url: str) -> None:
    async def work(service: Service) -> None:
        first = await service.submit(ALICE, name="train", environment={"A": "1"})
        await service.plan()
        await service.end(first, exit_code=3)
        second = await again(service, first, hold=True)
        async with service.client(ALICE) as client:
            jobs = {
                job["id"]: job
                for one in (first, second)
                for job in (await client.get(f"/v1/jobs/{one}")).json()["jobs"]
            }
        assert (jobs[first]["state"], jobs[first]["exit_code"]) == ("FAILED", 3)
        assert (jobs[second]["name"], jobs[second]["state"], jobs[second]["reason"]) == (
            "train", "PENDING", "JobHeldUser",
        )  # fmt: skip
        events = await service.database.fetch("select job_id, kind from odc.event order by id")
        assert (second, "submitted") in {(row["job_id"], row["kind"]) for row in events}

    serve(database_url, work)


@pytest.mark.parametrize(
    ("selector", "tasks"), [("{}", "{[0,6)}"), ("{}_3", "{[3,4)}"), ("{}_[1,4-5]", "{[1,2),[4,6)}")]
)
def test_tasks_of_an_array_become_an_array(database_url: str, selector: str, tasks: str) -> None:
    async def work(service: Service) -> None:
        array = await service.submit(ALICE, array="0-5", gpus=8)
        [started] = await service.plan()
        await service.end(started, exit_code=1)
        await cancel(service, array)
        found = await request_of(service, await again(service, selector.format(array)))
        assert found["tasks"] == tasks

    serve(database_url, work)


def test_only_the_owner_resubmits_and_only_what_has_ended(database_url: str) -> None:
    async def work(service: Service) -> None:
        pending = await service.submit(ALICE, array="0-3", gpus=8)
        refused = await resubmit(service, pending)
        assert (refused.status_code, refused.json()["code"]) == (409, "OD012")
        await cancel(service, f"{pending}_2")
        refused = await resubmit(service, pending)
        assert (refused.status_code, refused.json()["code"]) == (409, "OD012")
        await cancel(service, pending)
        for peer in (BOB, OPERATOR):
            refused = await resubmit(service, pending, peer=peer)
            assert (refused.status_code, refused.json()["code"]) == (403, "OD013")
        refused = await resubmit(service, 4_000_000)
        assert (refused.status_code, refused.json()["code"]) == (404, "OD006")
        refused = await resubmit(service, f"{pending}_9")
        assert (refused.status_code, refused.json()["code"]) == (404, "OD006")
        assert await service.database.fetchval("select count(*) from odc.pending") == 0

    serve(database_url, work)


def test_a_repeated_request_makes_one_job(database_url: str) -> None:
    async def work(service: Service) -> None:
        first = await service.submit(ALICE)
        await cancel(service, first)
        ids = [await again(service, first, key="k") for _ in range(2)]
        assert ids[0] == ids[1]

    serve(database_url, work)


def test_the_rules_of_today_apply(database_url: str) -> None:
    async def work(service: Service) -> None:
        first = await service.submit(ALICE, time_limit_s=3600)
        await cancel(service, first)
        await service.database.execute("update odc.partition set max_time_limit_s = 60")
        refused = await resubmit(service, first)
        assert (refused.status_code, refused.json()["code"]) == (422, "OD009")

    serve(database_url, work)


@pytest.mark.parametrize("kind", ["terminal", "components", "reservation", "forgotten"])
def test_what_cannot_be_resubmitted_says_so(database_url: str, kind: str) -> None:
    async def work(service: Service) -> None:
        more: dict[str, Any] = {"terminal": {"pty": True, "spool_output": True}}.get(kind, {})
        if kind == "components":
            more = {"gpus": None, "components": [{"gpus": 1}, {"node_count": 1}]}
        if kind == "reservation":
            async with service.client(ALICE) as client:
                made = await client.post("/v1/reservations", json={"gpu_type": "h100", "hours": 1})
            first = made.json()["id"]
        else:
            first = await service.submit(ALICE, **more)
        await cancel(service, first)
        if kind == "forgotten":
            await service.database.execute("delete from odc.job_text")
        refused = await resubmit(service, first)
        assert (refused.status_code, refused.json()["code"]) == (409, "OD012"), refused.text
        assert refused.json()["hint"]

    serve(database_url, work)
