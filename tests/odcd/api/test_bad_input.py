"""Every field of every request, with wrong values: a clear refusal, nothing created, the daemon
continues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from odcd.api.http.routing import MAX_BODY_BYTES
from odcd.records.job import MAX_SCRIPT_BYTES, JobSpec
from tests.odcd.api.service import BODY, OPERATOR, Service, serve

TEXT = (3, ["a"], {}, True)
COUNT = (0, -1, 1_000_001, 2**70, 1.5, "1", [], True)
AMOUNT = (-1, 2_000_000_001, 2**70, 1.5, "1", [], True)
TEXTS = ("a", [3], {"a": "b"}, [None])
MOMENT = ("tomorrow", 3, "2026-13-01T00:00:00Z", "2030-01-01T00:00:00", "")
FLAG = (1, "true", None, [])

WRONG: dict[str, Sequence[object]] = {
    "script": (
        *TEXT,
        None,
        "",
        "no shebang",
        "#!/bin/sh\n\0",
        "#!/bin/sh\n" + "x" * MAX_SCRIPT_BYTES,
    ),
    "work_dir": (*TEXT, None, "", "relative", "/" + "x" * 4096, "/tmp\0"),
    "name": (*TEXT, "", "x" * 201, "a\0b", "a\nb"),
    "kind": (*TEXT, "reservation", "x"),
    "args": (*TEXTS, ["a\0b"], ["x" * 200_000]),
    "environment": (
        "a",
        ["A=b"],
        {"A": 3},
        {"": "x"},
        {"A=B": "x"},
        {"A": "b\0"},
        {"A": "x" * 1_100_000},
    ),
    "umask": (-1, 0o1000, "022", 1.5, None),
    "stdin": (*TEXT, "", "x" * 4097, "a\0"),
    "stdout": (*TEXT, "", "x" * 4097, "a\0"),
    "stderr": (*TEXT, "", "x" * 4097, "a\0"),
    "open_mode": (*TEXT, "overwrite", ""),
    "partitions": (*TEXTS, ["nowhere"], [""], ["x" * 201], ["a\0"]),
    "account": (*TEXT, "", "nobody", "a\0"),
    "qos": (*TEXT, "", "urgent", "a\0"),
    "nice": (-1, 2**31, "0", 1.5, None),
    "comment": (*TEXT, "x" * 4097, "a\0"),
    "hold": FLAG,
    "begin_at": MOMENT,
    "deadline_at": (*MOMENT, "2001-01-01T00:00:00Z"),
    "time_limit_s": (*COUNT[:2], 2**31, 2**70, 1.5, "1:00", [], 31 * 86400),
    "node_count": (*COUNT, 2),
    # Both need another field.
    "node_count_max": (*COUNT, 2),
    "switches": COUNT,
    "switches_wait_s": (-1, 2**31, "5", 1.5, 60),
    "ntasks": COUNT,
    "ntasks_per_node": COUNT,
    "cpus_per_task": (*COUNT, 65),
    "cpus_per_gpu": (*COUNT, 65),
    "gpus": (*AMOUNT, 9),
    "gpus_per_node": (*AMOUNT, 9),
    "gpus_per_task": AMOUNT,
    "gpu_type": (*TEXT, "", "h1000", "a\0"),
    "mem_per_node_mib": (*AMOUNT, 64_001),
    "mem_per_cpu_mib": (*AMOUNT, 64_001),
    "mem_per_gpu_mib": (*AMOUNT, 64_001),
    "tmp_mib": AMOUNT,
    "exclusive": FLAG,
    "constraint": (*TEXT, "x" * 1025, "a&&b", "a\0"),
    "node_list": (*TEXTS, ["n99"], [""], ["a\0"]),
    "exclude_nodes": (*TEXTS, ["n99"], [""], ["a\0"]),
    "booking": (*TEXT, "", "nothing", "a\0"),
    "licences": ("matlab", ["matlab"], {"matlab": 1}, {"matlab": 0}, {"": 1}, {"a\0": 1}, 3),
    "components": (
        *TEXT,
        {},
        [{}],
        [3, {}],
        [{"gpus": -1}, {}],
        [{"no": 1}, {}],
        [{"gpus": 999}, {}],
        [{"constraint": "a\0"}, {}],
        [{}] * 129,
    ),
    "array": (*TEXT, "", "x", "5-1", "0-100000000", "-1", "0-9%0", "1-3:0", "9" * 200_001),
    "dependency": (
        *TEXT,
        "x",
        "afterok",
        "afterok:",
        "afterok:999999",
        "afterok:x",
        "never:1",
        "a\0",
    ),
    "signal_number": (0, 65, "TERM", 1.5),
    "signal_before_s": (-1, 65_536, "1", 1.5),
    "signal_batch": FLAG,
    "mail_types": ("END", [3], ["NEVER"], ["end "], ["END"] * 21),
    "mail_user": (
        *TEXT,
        "",
        "ann",
        "a@b@c",
        "a@b.example\nBcc: x@y.example",
        "x" * 300 + "@y.example",
    ),
    "requeue": (1, "true", []),
    "submit_host": (*TEXT, "x" * 256, "a\0"),
    "submit_line": (*TEXT, "x" * 32_769, "a\0"),
    "spool_output": FLAG,
    "pty": FLAG,
    "launch": ("", "some", 1),
    "image": [5, "", "x" * 2000],
    "no_such_field": (1,),
}


def test_the_table_has_every_field() -> None:
    assert set(WRONG) == {*JobSpec.__struct_fields__, "no_such_field"}


def test_every_wrong_value_of_every_field_is_refused_clearly(database_url: str) -> None:
    async def work(service: Service) -> None:
        taken: list[str] = []
        async with service.client() as client:
            for name, values in WRONG.items():
                for value in values:
                    answer = await client.post("/v1/jobs", json={**BODY, name: value})
                    if not 400 <= answer.status_code < 500:
                        taken.append(f"{name}={str(value)[:60]!r}: {answer.text[:200]}")
                    else:
                        _check_problem(answer)
            assert taken == []
            assert (await client.get("/v1/jobs", params={"ended": "true"})).json()["jobs"] == []

    serve(database_url, work)


def _check_problem(answer: httpx.Response) -> None:
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert problem["code"].startswith("OD")
    assert problem["detail"]
    assert not problem["detail"].endswith(".")
    # A type is described in words, also the type of an optional field.
    assert " | " not in problem["detail"]
    assert "`int`" not in problem["detail"]


BAD_VALUES = (
    ("POST", "/v1/policies", {"name": "p", "ordering": "nope"},
     'ordering cannot be "nope"', "Accepted: fifo, multifactor, odc, saf, sjf, wfp3."),
    ("PATCH", "/v1/policies/odc", {"plan_depth": -1},
     "plan_depth cannot be -1", "Give a whole number from 0 to 1000000."),
    ("PATCH", "/v1/partitions/main", {"is_default": False},
     "is_default cannot be false", "Accepted: true."),
    ("PATCH", "/v1/partitions/main", {"limits": {"user": {"gpus": 1}, "job": {"cpus": -2}}},
     "limit job.cpus cannot be -2", "Give a whole number from 0 to 1000000000000."),
    ("PATCH", "/v1/accounting", {"weights": {"age": 1, "size": 1_000_001}},
     "weights.size cannot be 1000001", "Give a whole number from 0 to 1000000."),
    ("PATCH", "/v1/accounting", {"weights": {"luck": 1}},
     'weights has no "luck"', "Accepted: age, fairshare, partition, qos, size."),
    ("POST", "/v1/plan/what-if", {"jobs": [BODY] * 65},
     "jobs has 65 entries", "At most 64."),
    ("GET", "/v1/jobs?limit=0", None,
     "limit cannot be 0", "Give a whole number from 1 to 10000."),
    ("GET", "/v1/plan/gantt?hours=0", None,
     "hours cannot be 0", "Give a number above 0, up to 744."),
    ("GET", "/v1/plan/gantt?hours=745", None,
     "hours cannot be 745", "Give a number above 0, up to 744."),
)  # fmt: skip


@pytest.mark.parametrize("case", BAD_VALUES, ids=lambda case: case[3].replace(" ", "-"))
def test_a_refused_value_comes_with_the_accepted_values(
    database_url: str, case: tuple[str, str, Any, str, str]
) -> None:
    async def work(service: Service) -> None:
        method, path, body, detail, hint = case
        async with service.client(OPERATOR) as client:
            answer = await client.request(method, path, json=body)
            _check_problem(answer)
            assert (answer.json()["detail"], answer.json()["hint"]) == (detail, hint)

    serve(database_url, work)


BODIES = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"3",
    b'"text"',
    b'{"a":1}',
    b"\xff\xfe",
    b'{"script": "\xff"}',
    b"[" * 100_000,
    b'{"script":' * 50_000,
    b'{"script": "\\ud800", "work_dir": "/"}',
)


def test_a_body_that_is_not_a_json_object_is_refused(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(OPERATOR) as client:
            for body in BODIES:
                for path in ("/v1/jobs", "/v1/jobs/batch", "/v1/submit-argv", "/v1/jobs/cancel"):
                    answer = await client.post(path, content=body)
                    assert answer.status_code == 400, (path, body[:40], answer.text)
                    _check_problem(answer)
                answer = await client.patch("/v1/nodes/n1", content=body)
                assert answer.status_code == 400

    serve(database_url, work)


def test_a_body_above_the_limit_is_refused_before_it_is_read(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            answer = await client.post("/v1/jobs", content=b"x" * (MAX_BODY_BYTES + 1))
            assert (answer.status_code, answer.json()["code"]) == (413, "OD017")
            assert str(MAX_BODY_BYTES) in answer.json()["detail"]

            async def endless() -> Any:
                while True:
                    yield b"x" * 1_000_000

            answer = await client.post("/v1/jobs", content=endless())
            assert answer.status_code == 413

    serve(database_url, work)


def test_too_many_jobs_in_a_batch_are_refused(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            for jobs in (
                [],
                [{"script": "#!/bin/sh\n", "work_dir": "/"}] * 20_001,
                "x",
                [3],
                [None],
            ):
                answer = await client.post("/v1/jobs/batch", json={"jobs": jobs})
                assert 400 <= answer.status_code < 500, answer.text

    serve(database_url, work)


QUERIES = (
    "/v1/jobs?limit=0",
    "/v1/jobs?limit=10001",
    "/v1/jobs?limit=x",
    "/v1/jobs?limit=",
    "/v1/jobs?limit=1.5",
    "/v1/jobs?cursor=x",
    "/v1/jobs?cursor=99999999999999999999",
    "/v1/jobs?ended=maybe",
    "/v1/jobs?state=SLEEPING",
    "/v1/jobs?state=",
    "/v1/jobs?user=",
    "/v1/jobs?user=a,,b",
    "/v1/jobs?user=a%00",
    "/v1/jobs?fields=nonsense",
    "/v1/jobs?fields=",
    "/v1/jobs?fields=id,",
    "/v1/jobs?fields=id%22",
    "/v1/jobs?job=x",
    "/v1/jobs?job=",
    "/v1/jobs?job=0",
    "/v1/jobs?unknown=1",
    "/v1/jobs?user=a&user=b",
    "/v1/jobs/x",
    "/v1/jobs/%7Bid%7D",
    "/v1/jobs/0",
    "/v1/jobs/-1",
    "/v1/jobs/7_",
    "/v1/jobs/7_[",
    "/v1/jobs/7_[]",
    "/v1/jobs/7_[5-1]",
    "/v1/jobs/99999999999999999999",
    "/v1/jobs/7_99999999999",
    "/v1/jobs/7%00",
    "/v1/jobs/7?wait=-1",
    "/v1/jobs/7?wait=301",
    "/v1/jobs/7?wait=x",
    "/v1/jobs/7?wait=nan",
    "/v1/jobs/7?wait=inf",
    "/v1/jobs/7?unknown=1",
    "/v1/jobs/7/logs?rank=-1",
    "/v1/jobs/7/logs?rank=x",
    "/v1/jobs/7/logs?stream=stdin",
    "/v1/jobs/7/logs?follow=2x",
    "/v1/jobs/7/events?after=-1",
    "/v1/jobs/7/events?after=x",
    "/v1/events?after=9223372036854775808",
    "/v1/events?follow=x",
    "/v1/nodes?x=1",
    "/v1/partitions?x=1",
    "/v1/cluster?x=1",
    "/v1/jobs/7/why?x=1",
)


def test_a_wrong_query_or_path_is_refused(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            for path in QUERIES:
                answer = await client.get(path)
                assert answer.status_code == 400, (path, answer.status_code, answer.text)
                _check_problem(answer)

    serve(database_url, work)


MISSING = (
    "/v1/jobs/7",
    "/v1/jobs/7?wait=0",
    "/v1/jobs/7_3",
    "/v1/jobs/7_3?wait=0",
    "/v1/jobs/7/why",
    "/v1/jobs/7_3/why",
    "/v1/jobs/7/script",
    "/v1/jobs/7/logs",
    "/v1/jobs/7/events",
    "/v1/nodes/n99",
    "/v1/jobs/9223372036854775807",
)


def test_an_unknown_resource_is_404(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            for path in MISSING:
                answer = await client.get(path)
                assert answer.status_code == 404, (path, answer.status_code, answer.text)
                _check_problem(answer)

    serve(database_url, work)


CHANGES: Sequence[tuple[str, str, object]] = [
    ("POST", "/v1/jobs/cancel", {}),
    ("POST", "/v1/jobs/cancel", {"ids": []}),
    ("POST", "/v1/jobs/cancel", {"ids": ["x"]}),
    ("POST", "/v1/jobs/cancel", {"ids": [7]}),
    ("POST", "/v1/jobs/cancel", {"ids": "7"}),
    ("POST", "/v1/jobs/cancel", {"ids": ["7_[1-"]}),
    ("POST", "/v1/jobs/cancel", {"all": False}),
    ("POST", "/v1/jobs/cancel", {"all": True, "user": "a"}),
    ("POST", "/v1/jobs/cancel", {"user": ""}),
    ("POST", "/v1/jobs/cancel", {"user": "a,,b"}),
    ("POST", "/v1/jobs/cancel", {"user": 3}),
    ("POST", "/v1/jobs/cancel", {"state": "SLEEPING"}),
    ("POST", "/v1/jobs/cancel", {"ids": ["7"], "signal": "NOSUCH"}),
    ("POST", "/v1/jobs/cancel", {"ids": ["7"], "signal": 0}),
    ("POST", "/v1/jobs/cancel", {"ids": ["7"], "signal": 65}),
    ("POST", "/v1/jobs/cancel", {"ids": ["7"], "signal": 1.5}),
    ("POST", "/v1/jobs/cancel", {"ids": ["7"], "unknown": 1}),
    ("POST", "/v1/jobs/hold", {}),
    ("POST", "/v1/jobs/hold", {"ids": [], "user": "a"}),
    ("POST", "/v1/jobs/release", {"ids": [None]}),
    ("POST", "/v1/jobs/requeue", {"ids": ["7"], "hold": "yes"}),
    ("POST", "/v1/jobs/7/requeue", {"hold": 1}),
    ("POST", "/v1/jobs/7/resubmit", {"hold": "yes"}),
    ("POST", "/v1/jobs/7/resubmit", {"gpus": 1}),
    ("POST", "/v1/jobs/7_[1-/resubmit", {}),
    ("POST", "/v1/jobs/7/hold", {"x": 1}),
    ("POST", "/v1/jobs/7x/hold", {}),
    ("PATCH", "/v1/jobs/7", {}),
    ("PATCH", "/v1/jobs/7", {"unknown": 1}),
    *(("PATCH", "/v1/jobs/7", {"time_limit_s": value}) for value in (0, -1, 2**31, "1h", 1.5)),
    *(("PATCH", "/v1/jobs/7", {"nice": value}) for value in (2**31, "1", 1.5, None)),
    *(("PATCH", "/v1/jobs/7", {"partitions": value}) for value in ([], "main", [""], None)),
    *(("PATCH", "/v1/jobs/7", {"name": value}) for value in ("", 3, None, "x" * 201)),
    *(("PATCH", "/v1/jobs/7", {"comment": value}) for value in (3, "x" * 4097)),
    *(("PATCH", "/v1/jobs/7", {"array_throttle": value}) for value in (0, -1, "2", 1.5)),
    *(("PATCH", "/v1/jobs/7", {"begin_at": value}) for value in ("x", 3, "2030-01-01T00:00:00")),
    *(("PATCH", "/v1/jobs/7", {"deadline_at": value}) for value in ("x", 3, "2030-01-01T00:00:00")),
    ("PATCH", "/v1/nodes/n1", {}),
    ("PATCH", "/v1/nodes/n1", {"state": "drain"}),
    ("PATCH", "/v1/nodes/n1", {"state": "DRAIN"}),
    ("PATCH", "/v1/nodes/n1", {"state": "DOWN", "reason": "  "}),
    ("PATCH", "/v1/nodes/n1", {"state": "DOWN", "reason": "x" * 1001}),
    ("PATCH", "/v1/nodes/n1", {"state": 3, "reason": "x"}),
    ("PATCH", "/v1/nodes/n1", {"state": "DOWN", "reason": "x", "unknown": 1}),
]


def test_a_wrong_change_is_refused(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(OPERATOR) as client:
            for method, path, body in CHANGES:
                answer = await client.request(method, path, json=body)
                assert answer.status_code == 400, (path, body, answer.status_code, answer.text)
                _check_problem(answer)
            for dependency in ("x", "afterok", 3):
                answer = await client.patch("/v1/jobs/7", json={"dependency": dependency})
                assert answer.status_code in (400, 422), answer.text

    serve(database_url, work)


def test_wrong_paths_and_methods_are_problems_too(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            for method, path, allow in (
                ("GET", "/nope", None),
                ("GET", "/v1/jobs/7/nope", None),
                ("DELETE", "/v1/jobs/7", "GET, HEAD, PATCH"),
                ("PUT", "/v1/jobs", "GET, HEAD, POST"),
                ("OPTIONS", "/v1/disks/data", "DELETE, GET, HEAD"),
                ("POST", "/health", "GET, HEAD"),
                ("GET", "/v1/jobs/7/attach/x", None),
            ):
                answer = await client.request(method, path)
                _check_problem(answer)
                problem = answer.json()
                assert answer.headers.get("allow") == allow, (method, path)
                assert (answer.status_code, problem["code"], problem["title"]) == (
                    (404, "OD045", "UnknownPath") if allow is None
                    else (405, "OD046", "MethodNotAllowed")
                )  # fmt: skip
                assert path in problem["detail"]

    serve(database_url, work)


def test_an_internal_error_has_an_id_that_is_in_the_log(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        async def submit(self, prepared: object) -> list[object]:
            raise ZeroDivisionError("boom")

    async def work(service: Service) -> None:
        async with service.client() as client:
            answer = await client.post("/v1/jobs", json=BODY)
            assert (answer.status_code, answer.json()["code"]) == (500, "OD000")
            assert "boom" not in answer.text
            [record] = [r for r in caplog.records if r.message == "api.failed"]
            assert record.__dict__["error_id"] in answer.json()["detail"]

    serve(database_url, work, batcher=Broken())
