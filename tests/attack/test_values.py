"""Values at the edge of what can be kept, and text that would write to a terminal, in every field
of every operation: a clear answer, never a failure."""

from __future__ import annotations

import asyncio
import urllib.parse
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from odcd.__main__ import tell
from odcd.api.app import operations
from odcd.api.http.identity import Peer
from odcd.api.http.openapi import document
from odcd.errors import OdcError
from odcd.page.app import PAGES
from odcd.runner import log
from tests.odcd.api.service import ALICE, BODY, OPERATOR, Service, Spoken, serve
from tests.odcd.api.test_who_may import (
    REGISTRY,
    TABLE,
    Rule,
    Scene,
)
from tests.odcd.page.browse import Browsed, browse

INTEGERS = (2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, -(2**63), 10**30, -1)
NUMBERS = (1e308, -1e308, 1e12, "nan", "inf", "-inf", 5e-324)
MOMENTS = (
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z", "2026-01-01T00:00:00", "1970-01-01T00:00:00Z",
)  # fmt: skip
TEXTS = (
    *MOMENTS, "now+999999999weeks", "9999-12-31 23:59", "12/31/9999 23:59", "nan", "1e309",
    "9" * 30, "9" * 5000, "-1", "[", "1-99999999999", "7_3", "%", "\\", "\N{FULLWIDTH DIGIT ONE}",
    "a\0b", "\N{DUCK}" * 100, "9223372036854775807", "99999999999999999999:0",
)  # fmt: skip
ESCAPES = ("a\x1b[2Jb", "a\nb", "a\rb", "a\x7fb", "a\x9bb", "a\u2028b", "a\u202eb")
UNPRINTED = frozenset({
    "script", "argv", "args", "environment", "work_dir", "stdin", "stdout", "stderr",
    "script_path", "submit_line", "method", "url", "headers", "time_zone", "default_stdout",
})  # fmt: skip
"""Text that terminals do not print, or that odcctl makes safe."""
STREAMS = ("/events",)
WITHOUT_SERVER = (501, 503)
LIMIT = 40
"""In the default run: requests per operation."""


def cases(service: Service) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """By operation: the schema of its query parameters and of its body's fields."""
    schema = document(operations(service.api))
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for path, methods in schema["paths"].items():
        for method, one in methods.items():
            query = {
                p["name"]: p["schema"] for p in one.get("parameters", ()) if p["in"] == "query"
            }
            content = one.get("requestBody", {}).get("content", {}).get("application/json", {})
            reference = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            fields = schema["components"]["schemas"].get(reference, {}).get("properties", {})
            found[f"{method.upper()} {path}"] = (query, fields)
    return found


def values_of(schema: dict[str, Any]) -> Iterator[Any]:
    for one in schema.get("anyOf", [schema]):
        kind = one.get("type")
        if kind == "integer":
            yield from INTEGERS
        elif kind == "number":
            yield from NUMBERS
        elif kind == "string" and "enum" not in one:
            yield from MOMENTS if one.get("format") == "date-time" else TEXTS
        elif kind == "array":
            yield from ([text] for text in TEXTS)
        elif kind == "object":
            yield from ({text: 1} for text in ("a\0b", "9" * 5000))


class Attack:
    """Requests of one user about objects that are created again for each request."""

    def __init__(self, service: Service, peer: Peer) -> None:
        self.scene = Scene(service)
        self._peer = peer
        self._about = self._x = ""
        self.failed: list[str] = []

    async def _target(self, operation: str, rule: Rule) -> str:
        """The object of the operation: created once, unless the operation deletes it."""
        if rule.target is None:
            return "1"
        if operation != self._about or operation.startswith("DELETE"):
            # No earlier submission may interfere.
            await self.scene.ask("POST", "/v1/jobs/cancel", {"all": True})
            self._about, self._x = operation, await rule.target(self.scene)
        return self._x

    async def send(
        self, operation: str, rule: Rule, field: str, value: Any, *, in_query: bool
    ) -> httpx.Response:
        method, _, path = operation.partition(" ")
        x = await self._target(operation, rule)
        path = path.replace("{account}/", "lab/")
        if "{" in path:
            path = f"{path[: path.index('{')]}{x}{path[path.index('}') + 1 :]}"
        body = rule.body
        if body is not None:
            body = {
                name: [part.replace("{x}", x) for part in given] if name == "ids" else
                self.scene.name() if given == "{new}" else 71_000 if given == "{uid}" else given
                for name, given in body.items()
            }  # fmt: skip
        query = dict(urllib.parse.parse_qsl(rule.query.replace("{x}", x).lstrip("?")))
        if in_query:
            query[field] = value if isinstance(value, str) else str(value)
        else:
            body = {**(body or {}), field: value}
        if operation.endswith("/events"):
            query["follow"] = "false"
        path += f"?{urllib.parse.urlencode(query)}" if query else ""
        async with asyncio.timeout(60):
            answer = await self.scene.ask(method, path, body, self._peer)
        if answer.status_code >= 500 and answer.status_code not in WITHOUT_SERVER:
            self.failed.append(f"{operation} {field}={value!r:.60}: {answer.text[:120]}")
        return answer


def rules() -> Iterator[tuple[str, Rule]]:
    for operation, rule in TABLE.items():
        if rule.raw is None and not operation.endswith(("/attach", "/ssh", "/jupyter")):
            yield operation, rule


def attack_all(database_url: str, limit: int) -> None:
    async def work(service: Service) -> None:
        attack = Attack(service, OPERATOR)
        await attack.scene.prepare()
        schemas = cases(service)
        for operation, rule in rules():
            query, body = schemas[operation]
            attempts = [(name, v, True) for name, s in query.items() for v in values_of(s)]
            attempts += [(name, v, False) for name, s in body.items() for v in values_of(s)]
            for name, value, in_query in attempts[:: -(-len(attempts) // limit) or 1]:
                if not in_query and isinstance(value, str) and value in ("nan", "inf", "-inf"):
                    continue
                await attack.send(operation, rule, name, value, in_query=in_query)
        assert not attack.failed, "\n".join(attack.failed)

    serve(database_url, work, nodes=60, disk_gib=100, build_target=lambda: REGISTRY)


@pytest.mark.long
def test_no_value_of_any_field_makes_the_daemon_fail(database_url: str) -> None:
    """Before: 500 for moments of the year 1, huge sizes, and the largest numbers."""
    attack_all(database_url, 10**6)


def test_values_at_the_edge_are_refused_clearly(database_url: str) -> None:
    """A sample of the long test's requests."""
    attack_all(database_url, 4)


HUGE = 1_000_000
MOST_MIB = 2_000_000_000
SIZES: tuple[dict[str, Any], ...] = (
    {"gpus": 0, "cpus_per_task": HUGE, "mem_per_cpu_mib": MOST_MIB},
    {"gpus": 0, "cpus_per_task": HUGE, "mem_per_cpu_mib": MOST_MIB, "ntasks_per_node": HUGE},
    {"gpus": 0, "ntasks": HUGE, "ntasks_per_node": HUGE, "mem_per_cpu_mib": MOST_MIB,
     "cpus_per_task": HUGE, "node_count": 1},
    {"gpus_per_node": MOST_MIB, "cpus_per_gpu": HUGE, "mem_per_gpu_mib": MOST_MIB},
    {"gpus_per_node": MOST_MIB, "cpus_per_gpu": HUGE, "mem_per_cpu_mib": MOST_MIB},
    {"gpus": MOST_MIB, "gpus_per_task": MOST_MIB, "mem_per_gpu_mib": MOST_MIB},
    {"gpus": None, "gpus_per_task": MOST_MIB, "ntasks_per_node": HUGE, "node_count": HUGE,
     "mem_per_gpu_mib": MOST_MIB, "cpus_per_gpu": HUGE},
    {"node_count": HUGE, "node_count_max": HUGE, "gpus_per_node": MOST_MIB,
     "cpus_per_gpu": HUGE, "time_limit_s": 2_147_483_646},
    {"gpus": 0, "begin_at": "9999-12-28T00:00:00Z", "time_limit_s": 2_147_483_646},
    {"gpus": 0, "begin_at": "9999-12-28T00:00:00Z", "deadline_at": "9999-12-28T00:00:01Z"},
    {"gpus": 0, "array": "0-999999:1%999999", "time_limit_s": 2_147_483_646},
    {"gpus": 0, "array": "0-4294967295"},
    {"gpus": 0, "dependency": "after:1+99999999999"},
    {"gpus": 0, "dependency": "afterok:9223372036854775807"},
    {"gpus": 0, "dependency": "afterok:99999999999999999999"},
)  # fmt: skip


def test_huge_products_of_sizes_never_make_the_daemon_fail(database_url: str) -> None:
    """Before: 500, for 1,000,000 CPUs with 2,000,000,000 MiB each."""

    async def work(service: Service) -> None:
        async with service.client(ALICE) as client:
            for sizes in SIZES:
                job = {**BODY, **sizes}
                for path, body in (
                    ("/v1/jobs", job), ("/v1/jobs/batch", {"jobs": [job, BODY]}),
                    ("/v1/plan/what-if", {"jobs": [job]}),
                ):  # fmt: skip
                    answer = await client.post(path, json=body)
                    assert answer.status_code < 500, f"{path} {sizes}: {answer.text}"
            await service.plan()
            for path in ("/v1/jobs", "/v1/plan", "/v1/plan/gantt", "/v1/priority", "/v1/cluster"):
                assert (await client.get(path)).status_code == 200
            for sizes in SIZES[:7]:
                answer = await client.post("/v1/jobs", json={**BODY, **sizes})
                assert answer.json()["code"] in ("OD008", "OD010"), answer.text
                assert "out of range" not in answer.text

    serve(database_url, work)


def test_the_largest_numbers_of_events_are_taken(database_url: str) -> None:
    """Before: the stream broke off for after=9223372036854775807."""

    async def work(service: Service) -> None:
        job = await service.submit()
        # Unlike the service's client, it raises the error that breaks a started stream.
        transport = httpx.ASGITransport(Spoken(service.app, OPERATOR))
        async with httpx.AsyncClient(transport=transport, base_url="http://odc") as client:
            for path in ("/v1/events", f"/v1/jobs/{job}/events"):
                for after in (2**63 - 1, 2**63 - 2, 2**31):
                    answer = await client.get(f"{path}?after={after}&follow=false")
                    assert (answer.status_code, answer.text) == (200, "retry: 1000\n\n")
                    headers = {"Last-Event-ID": str(after)}
                    answer = await client.get(f"{path}?follow=false", headers=headers)
                    assert answer.status_code == 200, answer.text
                assert (await client.get(f"{path}?after={2**63}")).status_code == 400
            for number in (2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**40):
                for rest in ("", "?wait=1", "/why", "/events?follow=false", "/script", "/logs"):
                    answer = await client.get(f"/v1/jobs/{number}{rest}")
                    assert answer.status_code in (200, 400, 404), f"{number}{rest} {answer.text}"

    serve(database_url, work)


def strings_of(schema: dict[str, Any]) -> Iterator[Any]:
    """Values with each of ESCAPES in a text, or in the entries of a list or an object."""
    for one in schema.get("anyOf", [schema]):
        if one.get("type") == "string" and "enum" not in one and "format" not in one:
            yield from ESCAPES
        elif one.get("type") == "array" and one.get("items", {}).get("type") == "string":
            yield from ([text] for text in ESCAPES)


@pytest.mark.long
def test_no_field_accepts_terminal_control_characters(database_url: str) -> None:
    """Before: PATCH of a job took a name with escapes, and every queue showed it."""

    async def work(service: Service) -> None:
        attack = Attack(service, OPERATOR)
        await attack.scene.prepare()
        schemas = cases(service)
        taken: list[str] = []
        for operation, rule in rules():
            # Values that only select jobs are not stored.
            body = {} if rule.body and "ids" in rule.body else schemas[operation][1]
            for name, schema in body.items():
                for value in () if name in UNPRINTED else strings_of(schema):
                    answer = await attack.send(operation, rule, name, value, in_query=False)
                    if answer.status_code < 400:
                        taken.append(f"{operation} {name}={value!r}")
        assert not taken, "\n".join(taken)
        assert not attack.failed, "\n".join(attack.failed)

    serve(database_url, work, nodes=20, disk_gib=100, build_target=lambda: REGISTRY)


def test_names_in_paths_and_command_lines_are_checked_too(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(OPERATOR) as client:
            for text in ESCAPES:
                path = f"/v1/licences/{urllib.parse.quote(text)}"
                answer = await client.put(path, json={"total": 1})
                assert (answer.status_code, answer.json()["code"]) == (400, "OD010"), answer.text
                for option in ("job-name", "comment", "output", "constraint", "chdir"):
                    argv = [f"--{option}={text}", "--wrap=true"]
                    answer = await client.post(
                        "/v1/submit-argv", json={"argv": argv, "work_dir": "/tmp"}
                    )
                    assert answer.status_code in (400, 422), f"{option} {text!r} {answer.text}"
            assert (await client.get("/v1/licences")).json() == {"licences": []}
            assert (await client.get("/v1/jobs")).json()["jobs"] == []

    serve(database_url, work)


@pytest.mark.long
def test_no_address_of_the_page_makes_the_daemon_fail(database_url: str) -> None:
    async def work(browsed: Browsed) -> None:
        job = await browsed.service.submit(ALICE, array="1-3")
        failed: list[str] = []
        edges = [*map(str, INTEGERS), *MOMENTS[:1], *TEXTS[len(MOMENTS) :], *ESCAPES[:2]]
        async with browsed.client() as client:

            async def look(path: str, query: dict[str, str]) -> None:
                answer = await client.get(path, params=query, headers={"accept": "text/html"})
                if answer.status_code >= 500 and answer.status_code != 503:
                    failed.append(f"{path} {query}: {answer.status_code}"[:200])

            for path, (_, form) in PAGES.items():
                for field in form.__struct_fields__:
                    for value in edges:
                        await look(path, {field: value})
            for value in edges:
                for rest in ("", "/why", "/logs"):
                    await look(f"/page/jobs/{urllib.parse.quote(value, safe='')}{rest}", {})
                await look(f"/page/jobs/{job}", {"after": value})
                await look(f"/page/jobs/{job}/logs", {"rank": value})
        assert not failed, "\n".join(failed)

    browse(database_url, work)


def test_a_databases_message_writes_no_escapes_to_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell(OdcError("a\x1b[2J\r\u202eb\nc é", "d\x9be"))
    assert capsys.readouterr().err == "odcd: a?[2J??b\nc é\n  d?e\n"


@pytest.mark.parametrize(
    ("value", "written"),
    [("plain", "plain"), ("a\x1b[2J", r"'a\x1b[2J'"), ("a\rb", r"'a\rb'"), ("a b", "'a b'")],
)
def test_the_runners_log_has_no_escapes(value: str, written: str) -> None:
    assert log._quoted(value) == written  # pyright: ignore[reportPrivateUsage]
