"""Texts and lists of any size in a submit or an update: accepted, or clearly refused."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest

from odcd.records.node import NodeReport
from tests.odcd.api.service import BODY, OPERATOR, Service, serve

NODES = 100
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def _names(count: int, length: int) -> list[str]:
    """Names that do not compress."""
    draw = random.Random(7)
    return ["".join(draw.choices(LETTERS, k=length)) for _ in range(count)]


LONG = _names(NODES, 63)
NOISE = _names(1, 5_000)[0]
WIDE = "\U00020000\U00020001" * 512
"""1,024 characters, 4 bytes each."""

FIELDS: dict[str, list[Any]] = {
    "name": [NOISE, NOISE * 100, WIDE[:200]],
    "args": [[NOISE] * 20, _names(5_000, 20)],
    "environment": [{name: NOISE for name in LONG}, {NOISE: NOISE}],
    "stdout": [NOISE, NOISE[:4096], WIDE],
    "partitions": [LONG * 20, [NOISE], ["main"] * 5_000],
    "account": [NOISE, WIDE[:200]],
    "qos": [NOISE, WIDE[:200]],
    "comment": [NOISE, NOISE[:4096], WIDE],
    "gpu_type": [NOISE, WIDE[:200]],
    "constraint": [NOISE, NOISE[:1024], WIDE, "|".join(LONG), "&".join("ab" * 250)],
    "node_list": [LONG, LONG * 50, [NOISE], _names(5_000, 20)],
    "exclude_nodes": [LONG, LONG[:-1], LONG[:-1] * 50, [NOISE]],
    "booking": [NOISE, WIDE[:200]],
    "licences": [{name: 1 for name in LONG}, {NOISE: 1}, {name: 1 for name in _names(5_000, 20)}],
    "array": [",".join(map(str, range(0, 20_000, 2))), "1," * 90_000 + "1", "9" * 5_000],
    "dependency": [f"afterok:{':'.join(['1'] * 9_000)}", f"afterok:{'9' * 5_000}", NOISE],
    "image": [NOISE, WIDE[:1000]],
    "submit_line": [NOISE, WIDE],
}
OPTIONS = (
    "account", "array", "comment", "constraint", "dependency", "exclude", "gres", "gpus",
    "job-name", "licenses", "mail-type", "nodelist", "output", "partition", "qos", "reservation",
)  # fmt: skip
UPDATES = ("name", "comment", "account", "partitions", "qos", "dependency", "constraint")


@pytest.mark.long
def test_a_field_of_any_size_is_taken_or_refused_clearly(database_url: str) -> None:
    async def work(service: Service) -> None:
        await _fill(service)
        wrong: list[str] = []
        async with service.client() as client:
            for field, values in FIELDS.items():
                for value in values:
                    await _ask(wrong, client, "/v1/jobs", {**BODY, field: value})
            for option in OPTIONS:
                for value in (NOISE, NOISE[:1024], WIDE, ",".join(LONG), "|".join(LONG)):
                    argv = {"argv": [f"--{option}={value}", "--wrap=true"], "work_dir": "/tmp"}
                    await _ask(wrong, client, "/v1/submit-argv", argv)
            job = await service.submit()
            for field in UPDATES:
                for value in FIELDS[field]:
                    body = {"ids": [str(job)], field: value}
                    await _ask(wrong, client, "/v1/jobs/update", body)
        assert wrong == []

    serve(database_url, work)


def test_a_job_may_exclude_many_nodes_with_long_names(database_url: str) -> None:
    """The list is longer than an index entry can be; jobs with the same request share a shape."""

    async def work(service: Service) -> None:
        await _fill(service)
        one = await service.submit(exclude_nodes=LONG[:-1])
        two = await service.submit(exclude_nodes=LONG[:-1])
        other = await service.submit(exclude_nodes=LONG[:-2])
        rows = await service.database.fetch(
            "select shape_id from odc.job where id = any ($1) order by id", [one, two, other]
        )
        first, second, third = (row["shape_id"] for row in rows)
        assert first == second != third

    serve(database_url, work)


async def _fill(service: Service) -> None:
    """Long names of nodes and licences are legitimate, so lists of them must be accepted."""
    reports = [
        NodeReport(name=name, gpu_type="h100", gpus=8, cpus=64, mem_mib=64_000, declared=True)
        for name in LONG
    ]
    await service.store.nodes.register(0, reports, service.api.clock.now(), whole=True)
    async with service.client(OPERATOR) as client:
        for name in LONG:
            answer = await client.put(f"/v1/licences/{name}", json={"total": 5})
            assert answer.status_code < 300, answer.text


async def _ask(wrong: list[str], client: httpx.AsyncClient, path: str, body: Any) -> None:
    answer = await client.post(path, json=body)
    if answer.status_code >= 500 and answer.status_code != 501:
        wrong.append(f"{path} {str(body)[:90]}: {answer.status_code} {answer.text[:120]}")
    elif answer.status_code >= 400:
        assert answer.json()["code"].startswith("OD")
        assert len(answer.json()["detail"]) < 20_000
