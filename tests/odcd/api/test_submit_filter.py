"""The site's submit filter and the requests that submit jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from odcd.jobs.submit_filter.filtering import SubmitFilter
from odcd.jobs.submit_filter.process import FilterProcess
from odcd.jobs.submit_filter.target import Target
from tests.odcd.api.service import BODY, Service, serve

FILTER = """
def submit(job, request):
    if job["name"] == "bad":
        request.reject("no bad jobs")
    if job["name"] == "broken":
        raise ValueError
    if job["name"] == "elsewhere":
        job["partitions"] = ["none"]
        return
    job["comment"] = f"{request.kind} {request.dry_run} {request.user}"
    job["time_limit_s"] = 1800
    request.warn("30 minutes")
"""


@contextmanager
def a_filter(path: Path) -> Iterator[SubmitFilter]:
    path.write_text(FILTER)
    process = FilterProcess(Target(file=str(path)))
    try:
        yield SubmitFilter(process, limit=timedelta(seconds=60), accept_on_failure=False)
    finally:
        process.close()
        os.wait()


async def job(service: Service, job_id: int) -> dict[str, Any]:
    async with service.client() as client:
        return (await client.get(f"/v1/jobs/{job_id}")).json()["jobs"][0]


def test_every_request_that_submits_passes_the_filter(database_url: str, tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            one = (await client.post("/v1/jobs", json=BODY)).json()
            batch = (await client.post("/v1/jobs/batch", json={"jobs": [BODY, BODY]})).json()
            line = {"argv": ["--wrap", "true", "-t", "60"], "work_dir": "/tmp"}
            argv = (await client.post("/v1/submit-argv", json=line)).json()
            server = (await client.post("/v1/reservations", json={"gpus": 1, "hours": 2})).json()
        assert one["warnings"] == argv["warnings"] == ["30 minutes"]
        assert batch["warnings"] == ["30 minutes"] * 2
        for job_id, kind in (
            (one["id"], "batch"), (batch["ids"][1], "batch"), (argv["id"], "batch"),
            (server["id"], "reservation"),
        ):  # fmt: skip
            made = await job(service, job_id)
            assert made["comment"].startswith(f"{kind} False ")
            assert made["time_limit_s"] == 1800

    with a_filter(tmp_path / "filter.py") as found:
        serve(database_url, work, submit_filter=found)


@pytest.mark.parametrize(
    ("name", "code", "detail"),
    [
        ("bad", "OD048", "rejected by the site's submit filter: no bad jobs"),
        ("broken", "OD049", "the site's submit filter ended with ValueError"),
    ],
)
def test_a_request_that_the_filter_rejects_submits_nothing(
    database_url: str, tmp_path: Path, name: str, code: str, detail: str
) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            answers = [
                await client.post("/v1/jobs", json={**BODY, "name": name}),
                await client.post("/v1/jobs/batch", json={"jobs": [{**BODY, "name": name}]}),
                await client.post(
                    "/v1/submit-argv",
                    json={"argv": ["-J", name, "--wrap", "true"], "work_dir": "/tmp"},
                ),
                await client.post(
                    "/v1/submit-argv",
                    json={"argv": ["-J", name, "--test-only", "--wrap", "true"],
                          "work_dir": "/tmp"},
                ),
                await client.post("/v1/reservations", json={"gpus": 1, "name": name}),
                await client.post(
                    "/v1/reservations?dry_run=true", json={"gpus": 1, "name": name}
                ),
            ]  # fmt: skip
            for answer in answers:
                assert answer.status_code == 403
                assert (answer.json()["code"], answer.json()["detail"]) == (code, detail)
            assert (await client.get("/v1/jobs")).json()["jobs"] == []

    with a_filter(tmp_path / "filter.py") as found:
        serve(database_url, work, submit_filter=found)


def test_a_refusal_of_what_the_filter_chose_says_so(database_url: str, tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            answer = await client.post("/v1/jobs", json={**BODY, "name": "elsewhere"})
        assert answer.json()["title"] == "UnknownPartition"
        assert answer.json()["hint"].endswith("The site's submit filter changed partitions.")

    with a_filter(tmp_path / "filter.py") as found:
        serve(database_url, work, submit_filter=found)


def test_a_repeated_request_is_the_same_job_even_if_the_filter_changed_it_otherwise(
    database_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "filter.py"

    async def work(service: Service) -> None:
        async with service.client() as client:
            key = {"Idempotency-Key": "one"}
            first = await client.post("/v1/jobs", json=BODY, headers=key)
            path.write_text(FILTER.replace("1800", "900"))
            again = await client.post("/v1/jobs", json=BODY, headers=key)
            assert again.json()["id"] == first.json()["id"]
            other = await client.post("/v1/jobs", json={**BODY, "gpus": 2}, headers=key)
            assert other.json()["title"] == "KeyReused"

    with a_filter(path) as found:
        serve(database_url, work, submit_filter=found)


def test_a_wrong_request_is_refused_before_the_filter_sees_it(
    database_url: str, tmp_path: Path
) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            answer = await client.post("/v1/jobs", json={**BODY, "work_dir": "x", "name": "broken"})
        assert answer.json()["title"] == "BadRequest", json.dumps(answer.json())

    with a_filter(tmp_path / "filter.py") as found:
        serve(database_url, work, submit_filter=found)
