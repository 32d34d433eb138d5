"""Components of heterogeneous jobs cost as much as jobs, so they count as jobs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from odcd.api.slurm import fetch
from odcd.api.slurm.components import components_of
from odcd.clock import Turns
from odcd.errors import TooLarge
from odcd.fairness.limits import Fairness
from odcd.fairness.settings import FairnessSettings
from odcd.jobs.submission import prepare
from odcd.records.job import MAX_BATCH_JOBS, MAX_COMPONENTS, ComponentSpec, Identity, JobSpec
from odcd.slurm.columns.values import JobRow
from tests.attack.test_slurm_lists import ask
from tests.odcd.api.service import ALICE, BODY, Service, serve

MIB = 1024 * 1024
WHO = Identity(user="alice", uid=64001, gid=64001, operator=False)
JOB = b'{"script":"#!/bin/sh","work_dir":"/","components":[' + b",".join([b"{}"] * 128) + b"]}"


def het(count: int) -> JobSpec:
    return JobSpec(script="#!/bin/sh\n", work_dir="/", components=[ComponentSpec()] * count)


def test_a_batch_has_at_most_20000_components(database_url: str) -> None:
    """Before: 9,300 jobs of 128 components, a body of 4 MB, took 2 GB of the daemon's memory."""

    async def work(service: Service) -> None:
        content = b'{"jobs":[' + b",".join([JOB] * 9_000) + b"]}"
        async with service.client(ALICE) as client:
            tracemalloc.start()
            try:
                answer = await client.post("/v1/jobs/batch", content=content)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
        assert (answer.status_code, answer.json()["code"]) == (413, "OD017")
        assert "each component of a heterogeneous job counts" in answer.json()["detail"]
        assert peak < 64 * MIB

    serve(database_url, work)


def test_components_count_wherever_jobs_of_a_request_are_counted() -> None:
    whole = MAX_BATCH_JOBS // MAX_COMPONENTS
    prepared = prepare(WHO, [het(MAX_COMPONENTS)] * 2, key=None, dry_run=False)
    assert prepared.job_count == 2 * MAX_COMPONENTS
    assert prepare(WHO, [het(MAX_COMPONENTS)] * whole, key=None, dry_run=False)
    with pytest.raises(TooLarge):
        prepare(WHO, [het(MAX_COMPONENTS)] * (whole + 1), key=None, dry_run=False)


def test_components_count_against_the_jobs_that_a_user_may_submit_per_minute(
    database_url: str,
) -> None:
    """Before: each heterogeneous job counted as one."""
    body: dict[str, Any] = {**BODY, "gpus": None, "hold": True, "components": [{}] * 50}

    async def work(service: Service) -> None:
        async with service.client(ALICE) as client:
            statuses = [(await client.post("/v1/jobs", json=body)).status_code for _ in range(3)]
        assert statuses == [201, 201, 429]

    fairness = Fairness(FairnessSettings(submits=100))
    serve(database_url, work, fairness=fairness)


LISTS = [("squeue", "-h"), ("sacct", "-n"), ("scontrol", "show", "job")]


@pytest.mark.parametrize("argv", LISTS, ids=lambda argv: argv[0])
def test_components_count_as_lines_of_a_list(
    database_url: str, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]
) -> None:
    """Before: only jobs counted. 1,500 jobs of 128 components made each squeue, of all users, stop
    all requests for four seconds."""
    monkeypatch.setattr(fetch, "MAX_ROWS", 100)

    async def work(service: Service) -> None:
        body: dict[str, Any] = {"gpus": None, "hold": True, "components": [{}] * 40}
        async with service.client() as client:
            for count in (1, 2):
                await service.submit(**body)
                out, err = await ask(client, *argv)
                assert (out.count(b"+39"), err) == (count, b"") or argv[0] == "scontrol"
            await service.submit(**body)
            assert b"more than 100 jobs match" in (await ask(client, *argv))[1]

    serve(database_url, work)


def test_a_page_of_a_list_has_few_heterogeneous_jobs(database_url: str) -> None:
    """Before: 10,000 of them, with 1,280,000 components."""

    async def work(service: Service) -> None:
        jobs = [{**BODY, "gpus": None, "hold": True, "components": [{}] * 40}] * 500
        async with service.client() as client:
            for _ in range(2):
                assert (await client.post("/v1/jobs/batch", json={"jobs": jobs})).status_code == 201
            answer = await client.get("/v1/jobs", params={"limit": 1000})
            assert len(answer.json()["jobs"]) == 16 * MIB // (40 * 512 + len("job/tmp"))
            assert answer.json()["next"] is not None

    serve(database_url, work)


def test_a_list_divides_heterogeneous_jobs_in_turns(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    real = Turns.take

    async def take(turns: Turns) -> None:
        happened.append("turn")
        await real(turns)

    def is_due(_: Turns) -> bool:
        return True

    def divide(row: JobRow) -> Iterator[JobRow]:
        happened.append("divided")
        return components_of(row)

    monkeypatch.setattr(fetch, "components_of", divide)
    monkeypatch.setattr(Turns, "take", take)
    monkeypatch.setattr(Turns, "are_due", is_due)

    async def work(service: Service) -> None:
        for _ in range(3):
            await service.submit(gpus=None, hold=True, components=[{}, {}])
        happened.clear()
        async with service.client() as client:
            out, _ = await ask(client, "squeue", "-h")
        assert len(out.splitlines()) == 6
        first = happened.index("divided")
        assert happened[first : first + 6] == ["divided", "turn"] * 3

    serve(database_url, work)
