"""The document and the page are generated from the operations that are served."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from odcd.api.answers.jobs import Job
from odcd.api.app import operations
from odcd.api.http.operation_ids import operation_id
from odcd.records.job import JobSpec
from tests.odcd.api.service import Service, serve


async def fetch(service: Service) -> dict[str, Any]:
    async with service.client(None) as client:
        answer = await client.get("/openapi.json")
        assert answer.headers["content-type"] == "application/json"
        return answer.json()


def test_every_operation_is_in_the_document_and_nothing_else(database_url: str) -> None:
    async def work(service: Service) -> None:
        document = await fetch(service)
        assert document["openapi"].startswith("3.1")
        documented = {
            (method.upper(), path)
            for path, methods in document["paths"].items()
            for method in methods
        }
        served = {(o.method, o.path) for o in operations(service.api)}
        sockets = {
            ("GET", "/v1/jobs/{id}/attach"),
            ("GET", "/v1/reservations/{id}/ssh"),
            ("GET", "/v1/reservations/{id}/jupyter"),
        }
        assert documented == served | sockets
        ids = [
            of["operationId"] for methods in document["paths"].values() for of in methods.values()
        ]
        assert len(ids) == len(set(ids))

    serve(database_url, work)


def test_every_reference_leads_somewhere(database_url: str) -> None:
    async def work(service: Service) -> None:
        document = await fetch(service)
        text = msgspec.json.encode(document).decode()
        for kind, name in set(re.findall(r'"#/components/(\w+)/(\w+)"', text)):
            assert name in document["components"][kind], name
        schemas = document["components"]["schemas"]
        assert set(schemas["Job"]["properties"]) == set(Job.__struct_fields__)
        assert set(schemas["JobSpec"]["properties"]) == set(JobSpec.__struct_fields__)
        assert schemas["JobSpec"]["additionalProperties"] is False
        assert schemas["JobSpec"]["required"] == ["script", "work_dir"]

    serve(database_url, work)


def test_every_creating_operation_accepts_an_idempotency_key(database_url: str) -> None:
    async def work(service: Service) -> None:
        paths = (await fetch(service))["paths"]
        keyed = {
            path
            for path, methods in paths.items()
            for of in methods.values()
            if any(p["name"] == "Idempotency-Key" for p in of["parameters"])
        }
        assert keyed == {
            "/v1/jobs", "/v1/jobs/batch", "/v1/submit-argv", "/v1/bookings", "/v1/accounts",
            "/v1/qos", "/v1/accounts/{account}/users", "/v1/reservations",
            "/v1/disks", "/v1/slurm/{command}", "/v1/jobs/{id}/resubmit",
        }  # fmt: skip
        limit = next(p for p in paths["/v1/jobs"]["get"]["parameters"] if p["name"] == "limit")
        assert (limit["schema"]["maximum"], limit["schema"]["default"]) == (10_000, 1000)
        cursor = next(p for p in paths["/v1/jobs"]["get"]["parameters"] if p["name"] == "cursor")
        assert cursor["description"] == "`next` from the previous page."
        spec = (await fetch(service))["components"]["schemas"]["JobSpec"]["properties"]
        assert "0-99%4" in spec["array"]["description"]

    serve(database_url, work)


IDS = {
    ("GET", "/v1/jobs"): "list_jobs",
    ("GET", "/v1/jobs/{id}"): "get_job",
    ("GET", "/v1/jobs/{id}/why"): "explain_job",
    ("POST", "/v1/jobs/{id}/cancel"): "cancel_job",
    ("POST", "/v1/jobs/cancel"): "cancel_jobs",
    ("PATCH", "/v1/nodes/{name}"): "update_node",
    ("POST", "/v1/nodes"): "create_node",
    ("DELETE", "/v1/nodes/{name}"): "delete_node",
    ("GET", "/v1/node-groups"): "list_node_groups",
    ("DELETE", "/v1/policies/{policy}"): "delete_policy",
    ("GET", "/v1/policies"): "list_policies",
    ("POST", "/v1/qos"): "create_qos",
    ("PUT", "/v1/licences/{licence}"): "set_licence",
    ("POST", "/v1/disks/{disk}/rename"): "rename_disk",
    ("GET", "/v1/disks/{disk}/content"): "get_disk_content",
    ("POST", "/v1/page/tickets"): "create_page_ticket",
}


@pytest.mark.parametrize("of", IDS)
def test_operation_ids_are_a_verb_and_a_noun(of: tuple[str, str]) -> None:
    assert operation_id(*of) == IDS[of]


def test_every_example_is_accepted_by_its_type(database_url: str) -> None:
    async def work(service: Service) -> None:
        paths = (await fetch(service))["paths"]
        for operation in operations(service.api):
            described = paths[operation.path][operation.method.lower()]
            if operation.body is not None:
                body = described["requestBody"]["content"]["application/json"]
                msgspec.convert(body["example"], operation.body)
            for status, forms in operation.answers.items():
                if operation.media_type != "application/json" or not forms:
                    continue
                content = described["responses"][str(status)]["content"]["application/json"]
                assert list(content["examples"]) == [form.__name__ for form in forms]
                for form in forms:
                    msgspec.convert(content["examples"][form.__name__]["value"], form)
        example = paths["/v1/jobs"]["post"]["requestBody"]["content"]["application/json"]
        async with service.client() as client:
            answer = await client.post("/v1/jobs", json=example["example"])
        assert answer.status_code == 201, answer.text

    serve(database_url, work)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        assert "src" not in given
        self.links += [str(given["href"])] if "href" in given else []
        self.anchors |= {str(given["id"])} if "id" in given else set()


def test_the_api_page_shows_every_operation_and_loads_nothing_external(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(None) as client:
            answer = await client.get("/docs")
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
        page = _Page()
        page.feed(answer.text)
        assert not page.tags & {"script", "link", "img", "iframe"}
        assert "url(" not in answer.text
        assert {link for link in page.links if not link.startswith("#")} == {"/openapi.json"}
        assert {link[1:] for link in page.links if link.startswith("#")} <= page.anchors
        for operation in operations(service.api):
            assert operation.path in answer.text

    serve(database_url, work)
