"""Cancel, hold, release, requeue and update, and who may use them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from odcd.api.answers.jobs import Jobs, Outcome, Outcomes
from odcd.api.answers.nodes import Node, NodeList
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve

LATER = "2040-01-01T00:00:00Z"


async def change(
    service: Service, path: str, body: Any = None, *, peer: Any = ALICE, method: str = "POST"
) -> list[Outcome]:
    async with service.client(peer) as client:
        answer = await client.request(method, path, json=body)
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=Outcomes).jobs


async def state(service: Service, job_id: int) -> str:
    async with service.client() as client:
        [job] = (await client.get(f"/v1/jobs/{job_id}")).json()["jobs"]
    return job["state"]


def test_cancel_ends_a_pending_job_and_signals_a_running_one(database_url: str) -> None:
    async def work(service: Service) -> None:
        running, pending = await service.submit(gpus=8), await service.submit(gpus=8)
        await service.plan()
        [outcome] = await change(service, f"/v1/jobs/{pending}/cancel")
        assert (outcome.job_id, outcome.outcome) == (pending, "cancelled")
        [outcome] = await change(service, f"/v1/jobs/{running}/cancel", {})
        assert outcome.outcome == "cancelling"
        assert await state(service, pending) == "CANCELLED"
        [outcome] = await change(service, f"/v1/jobs/{pending}/cancel")
        assert outcome.outcome == "ended"

    serve(database_url, work)


def test_only_the_owner_and_operators_change_a_job(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit(ALICE)
        for path, body in (
            ("cancel", {}),
            ("hold", {}),
            ("release", {}),
            ("requeue", {"hold": True}),
            ("checkpoint", {}),
        ):
            [outcome] = await change(service, f"/v1/jobs/{job_id}/{path}", body, peer=BOB)
            assert (outcome.outcome, outcome.code) == ("refused", "OD013")
            assert outcome.message
            assert outcome.hint
        [outcome] = await change(
            service, f"/v1/jobs/{job_id}", {"name": "x"}, peer=BOB, method="PATCH"
        )
        assert outcome.code == "OD013"
        assert await state(service, job_id) == "PENDING"
        [outcome] = await change(service, f"/v1/jobs/{job_id}/cancel", {}, peer=OPERATOR)
        assert outcome.outcome == "cancelled"

    serve(database_url, work)


def test_filters_select_only_the_users_own_jobs(database_url: str) -> None:
    async def work(service: Service) -> None:
        mine = await service.submit(ALICE, name="train")
        other = await service.submit(ALICE, name="eval")
        theirs = await service.submit(BOB, name="train")
        outcomes = await change(service, "/v1/jobs/cancel", {"name": "train,x"})
        assert [outcome.job_id for outcome in outcomes] == [mine]
        outcomes = await change(service, "/v1/jobs/cancel", {"all": True})
        assert [outcome.job_id for outcome in outcomes] == [other]
        outcomes = await change(service, "/v1/jobs/cancel", {"user": str(BOB.uid)})
        assert outcomes == []
        outcomes = await change(service, "/v1/jobs/cancel", {"user": str(BOB.uid)}, peer=OPERATOR)
        assert [outcome.job_id for outcome in outcomes] == [theirs]

    serve(database_url, work)


def test_filters_given_with_ids_narrow_them_down(database_url: str) -> None:
    async def work(service: Service) -> None:
        running, pending = await service.submit(gpus=8), await service.submit(gpus=8, name="x")
        await service.plan()
        both = [str(running), str(pending)]
        for narrow in ({"user": "nobody"}, {"name": "y"}, {"state": "COMPLETING"}):
            assert await change(service, "/v1/jobs/cancel", {"ids": both, **narrow}) == []
        outcomes = await change(service, "/v1/jobs/cancel", {"ids": both, "state": "PENDING"})
        assert [outcome.job_id for outcome in outcomes] == [pending]
        outcomes = await change(
            service, "/v1/jobs/cancel", {"ids": both, "partition": "main", "state": "CONFIGURING"}
        )
        assert [(outcome.job_id, outcome.outcome) for outcome in outcomes] == [
            (running, "cancelling")
        ]

    serve(database_url, work)


def test_unknown_jobs_are_refused_and_known_ones_in_the_same_request_are_changed(
    database_url: str,
) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        outcomes = await change(service, "/v1/jobs/hold", {"ids": [str(job_id), "999", "998_3"]})
        results = sorted((outcome.job_id, outcome.outcome, outcome.code) for outcome in outcomes)
        assert results == [
            (job_id, "held", None),
            (998, "refused", "OD006"),
            (999, "refused", "OD006"),
        ]

    serve(database_url, work)


def test_a_job_is_held_and_released(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        [outcome] = await change(service, f"/v1/jobs/{job_id}/hold")
        assert outcome.outcome == "held"
        assert await service.plan() == []
        service.woken.clear()
        [outcome] = await change(service, "/v1/jobs/release", {"ids": [str(job_id)]})
        assert outcome.outcome == "released"
        assert service.woken == [1]
        assert await service.plan() == [job_id]

    serve(database_url, work)


def test_a_running_job_is_requeued(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        await service.plan()
        [outcome] = await change(service, "/v1/jobs/requeue", {"ids": [str(job_id)], "hold": True})
        assert outcome.outcome.startswith("requeu")
        await service.end(job_id, exit_code=1)
        async with service.client() as client:
            [job] = (await client.get(f"/v1/jobs/{job_id}")).json()["jobs"]
        assert (job["state"], job["reason"], job["restarts"]) == ("PENDING", "JobHeldUser", 1)

    serve(database_url, work)


def test_array_tasks_are_named_as_in_slurm(database_url: str) -> None:
    async def work(service: Service) -> None:
        array = await service.submit(array="0-9", gpus=8)
        [running] = await service.plan()
        outcomes = await change(service, f"/v1/jobs/{array}_[0-1,5]/cancel")
        assert {(o.outcome, o.array_tasks) for o in outcomes} == {
            ("cancelling", None),
            ("cancelled", "1,5"),
        }
        async with service.client() as client:
            jobs = (await client.get(f"/v1/jobs/{array}")).json()["jobs"]
        assert {job["array_tasks"] for job in jobs} == {None, "2-4,6-9", "1,5"}
        assert any(job["id"] == running for job in jobs)
        assert {job["array_job_id"] for job in jobs} == {array}

    serve(database_url, work)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"time_limit_s": 60}, {"time_limit_s": 60}),
        ({"time_limit": "2:00:00"}, {"time_limit_s": 7200}),
        ({"name": "new"}, {"name": "new"}),
        ({"comment": "why"}, {"comment": "why"}),
        ({"comment": None}, {"comment": None}),
        ({"nice": 7}, {"nice": 7}),
        ({"partitions": ["main"]}, {"partition": "main"}),
        ({"begin_at": LATER}, {"begin_at": LATER, "reason": "BeginTime"}),
        ({"begin_at": None}, {"begin_at": None}),
        ({"deadline_at": LATER, "name": "d"}, {"name": "d"}),
        ({"dependency": "afterany:1"}, {"dependency": "afterany:1", "reason": "Dependency"}),
    ],
    ids=lambda value: "-".join(value),
)
def test_an_update_is_shown_at_once(database_url: str, body: Any, shown: Any) -> None:
    async def work(service: Service) -> None:
        await service.submit(hold=True)
        job_id = await service.submit(comment="old")
        [outcome] = await change(service, f"/v1/jobs/{job_id}", body, method="PATCH")
        assert (outcome.outcome, outcome.message) == ("updated", None)
        async with service.client() as client:
            [job] = (await client.get(f"/v1/jobs/{job_id}")).json()["jobs"]
        assert {name: job[name] for name in shown} == shown

    serve(database_url, work)


@pytest.mark.parametrize(("change_by", "limit_s"), [("+30", 9000), ("-1:00:00", 3600)])
def test_a_time_limit_with_a_sign_is_added(database_url: str, change_by: str, limit_s: int) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit(time_limit_s=7200)
        body = {"time_limit": change_by}
        await change(service, f"/v1/jobs/{job_id}", body, method="PATCH")
        async with service.client() as client:
            [job] = (await client.get(f"/v1/jobs/{job_id}")).json()["jobs"]
        assert job["time_limit_s"] == limit_s

    serve(database_url, work)


def test_an_array_throttle_is_changed_and_removed(database_url: str) -> None:
    async def work(service: Service) -> None:
        array = await service.submit(array="0-9%1")
        for throttle, tasks in ((3, "0-9%3"), (None, "0-9")):
            body = {"array_throttle": throttle}
            [outcome] = await change(service, f"/v1/jobs/{array}", body, method="PATCH")
            assert outcome.outcome == "updated"
            async with service.client() as client:
                [job] = (await client.get(f"/v1/jobs/{array}")).json()["jobs"]
            assert job["array_tasks"] == tasks

    serve(database_url, work)


def test_a_refused_update_changes_nothing(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit(name="old")
        for body, code in (
            ({"name": "new", "partitions": ["nowhere"]}, "OD001"),
            ({"name": "new", "time_limit_s": 31 * 86400}, "OD009"),
            ({"name": "new", "array_throttle": 2}, "OD012"),
            ({"name": "new", "time_limit_s": None}, "OD009"),
        ):
            [outcome] = await change(service, f"/v1/jobs/{job_id}", body, method="PATCH")
            assert (outcome.outcome, outcome.code) == ("refused", code)
        async with service.client() as client:
            [job] = (await client.get(f"/v1/jobs/{job_id}")).json()["jobs"]
            assert job["name"] == "old"
            answer = await client.patch(f"/v1/jobs/{job_id}", json={"nice": -1})
            assert (answer.status_code, answer.json()["code"]) == (403, "OD013")
            twice = {"time_limit": "1:00", "time_limit_s": 60}
            assert (await client.patch(f"/v1/jobs/{job_id}", json=twice)).status_code == 400

    serve(database_url, work)


class Signals:
    """The messages sent to the executor."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, int, int]] = []

    async def signal(self, job_id: int, attempt: int, *, signal: int, batch_only: bool) -> None:
        assert not batch_only
        self.sent.append((job_id, attempt, signal))


@pytest.mark.parametrize(("written", "number"), [("USR1", 10), ("sigterm", 15), ("12", 12), (2, 2)])
def test_a_signal_goes_to_running_jobs_only(
    database_url: str, written: object, number: int
) -> None:
    executor = Signals()

    async def work(service: Service) -> None:
        running, pending = await service.submit(gpus=8), await service.submit(gpus=8)
        await service.plan()
        body = {"ids": [str(running), str(pending)], "signal": written}
        signalled, refused = await change(service, "/v1/jobs/cancel", body)
        assert (signalled.job_id, signalled.outcome) == (running, "signalled")
        assert (refused.job_id, refused.outcome, refused.code) == (pending, "refused", "OD012")
        assert executor.sent == [(running, 1, number)]
        assert await state(service, running) == "CONFIGURING"

    serve(database_url, work, executor_of=lambda: executor)


def test_a_signal_without_an_executor_is_refused_as_such(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        async with service.client() as client:
            answer = await client.post(f"/v1/jobs/{job_id}/cancel", json={"signal": "TERM"})
            assert (answer.status_code, answer.json()["code"]) == (503, "OD024")

    serve(database_url, work)


def test_nodes_are_drained_and_resumed_by_operators(database_url: str) -> None:
    async def work(service: Service) -> None:
        drain = {"state": "DRAIN", "reason": "new driver"}
        async with service.client(ALICE) as client:
            answer = await client.patch("/v1/nodes/n1", json=drain)
            assert (answer.status_code, answer.json()["code"]) == (403, "OD013")
        async with service.client(OPERATOR) as client:
            node = msgspec.json.decode(
                (await client.patch("/v1/nodes/n1", json=drain)).content, type=Node
            )
            assert (node.state, node.reason, node.reason_by) == ("DRAIN", "new driver", "root")
            assert (await client.get("/v1/nodes/n1")).json()["state"] == "DRAIN"
            answer = await client.patch("/v1/nodes/n9", json=drain)
            assert (answer.status_code, answer.json()["code"]) == (404, "OD007")
            node = (await client.patch("/v1/nodes/n1", json={"state": "UP"})).json()
            assert (node["state"], node["reason"]) == ("IDLE", None)
            listing = msgspec.json.decode((await client.get("/v1/nodes")).content, type=NodeList)
            assert [node.name for node in listing.nodes] == ["n1"]

    serve(database_url, work)


def test_a_running_job_can_report_a_checkpoint(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        await service.plan()
        await service.database.execute("update odc.running set running_at = started_at")
        [outcome] = await change(service, f"/v1/jobs/{job_id}/checkpoint")
        assert (outcome.job_id, outcome.outcome) == (job_id, "checkpointed")
        async with service.client() as client:
            shown = await client.get(f"/v1/jobs/{job_id}")
        [job] = msgspec.json.decode(shown.content, type=Jobs).jobs
        assert job.checkpoint_at is not None

    serve(database_url, work)
