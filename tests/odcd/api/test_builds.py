"""/v1/builds: accepted folders, the users who may see them, and reservations that wait for their
images."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from odcd.builds.context import MAX_SENT_BYTES
from odcd.builds.settings import BuildSettings, read_builds
from odcd.errors import BadRequest
from odcd.executor.kubernetes.checks import JobCheck
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve
from tests.odcd.api.test_reservations import ask
from tests.odcd.builds.test_context import FROM, packed

REGISTRY = "registry.example/builds"
CONTEXT = packed(("Dockerfile", FROM), ("a", b"1"))
RESERVATION = {"gpu_type": "h100", "gpus": 1, "hours": 1}


async def send(
    service: Service, sent: bytes = CONTEXT, query: str = "", peer: Any = ALICE
) -> httpx.Response:
    async with service.client(peer) as client:
        return await client.post(f"/v1/builds{query}", content=sent)


def serve_builds(url: str, work: Any) -> None:
    serve(url, work, build_target=lambda: REGISTRY, check_job=JobCheck(None))


def test_a_context_is_uploaded_and_used_in_a_reservation(database_url: str) -> None:
    """IMG-07, IMG-08: identical uploads are one build; the reservation waits for it."""

    async def work(service: Service) -> None:
        first = await send(service)
        assert first.status_code == 200, first.text
        build = first.json()
        assert (build["state"], build["image"], build["attempts"]) == ("queued", None, 0)
        repacked = packed(("./a", b"1"), ("Dockerfile", FROM))
        assert (await send(service, repacked)).json()["id"] == build["id"]
        other = (await send(service, repacked, peer=BOB)).json()
        assert other["id"] != build["id"], "users share no builds"
        assert other["digest"] != build["digest"]
        body = {**RESERVATION, "build": build["digest"]}
        made = await ask(service, "POST", "/v1/reservations", body)
        assert made.status_code == 201, made.text
        reservation = made.json()
        assert (reservation["reason"], reservation["phase"]) == ("ImageBuild", "image_build")
        assert reservation["build"] == build["digest"]
        assert await service.plan() == []
        why = await ask(service, "GET", f"/v1/jobs/{reservation['id']}/why")
        assert why.json()["why"][0]["cause"] == "image"
        seen = await ask(service, "GET", f"/v1/reservations/{reservation['id']}", peer=BOB)
        assert seen.json()["build"] is None

    serve_builds(database_url, work)


def test_a_build_log_is_visible_only_to_the_builds_user(database_url: str) -> None:
    async def work(service: Service) -> None:
        digest = (await send(service)).json()["digest"]
        log = await ask(service, "GET", f"/v1/builds/{digest}/log")
        assert (log.status_code, log.text) == (200, "")
        assert log.headers["content-type"] == "text/plain; charset=utf-8"
        for path in (f"/v1/builds/{digest}", f"/v1/builds/{digest}/log"):
            refused = await ask(service, "GET", path, peer=BOB)
            assert (refused.status_code, refused.json()["code"]) == (404, "OD038")
            assert (await ask(service, "GET", path, peer=OPERATOR)).status_code == 200
        stolen = await ask(
            service, "POST", "/v1/reservations", {**RESERVATION, "build": digest}, peer=BOB
        )
        assert stolen.json()["code"] == "OD038"

    serve_builds(database_url, work)


@pytest.mark.parametrize(
    ("sent", "query", "status"),
    [
        (b"FROM x", "", 400),
        (bytes(MAX_SENT_BYTES + 1), "", 413),
        (CONTEXT, "?dockerfile=..%2Fx", 400),
        (CONTEXT, "?dockerfile=Other", 400),
        (CONTEXT, "?nonsense=1", 400),
    ],
)  # fmt: skip
def test_an_invalid_context_is_refused(
    database_url: str, sent: bytes, query: str, status: int
) -> None:
    """CLI-13, SEC-07: by the server, too."""

    async def work(service: Service) -> None:
        refused = await send(service, sent, query)
        assert refused.status_code == status, refused.text
        assert refused.json()["hint"]

    serve_builds(database_url, work)


@pytest.mark.parametrize("fields", [{"build": "xyz"}, {"build": "a" * 64, "image": "a:1"}])
def test_an_invalid_build_reference_is_refused(database_url: str, fields: dict[str, str]) -> None:
    async def work(service: Service) -> None:
        refused = await ask(service, "POST", "/v1/reservations", {**RESERVATION, **fields})
        assert refused.status_code == 400, refused.text

    serve_builds(database_url, work)


def test_builds_on_a_single_machine_are_refused_with_the_reason(database_url: str) -> None:
    """Where reservations are not containers."""

    async def work(service: Service) -> None:
        refused = (await send(service)).json()
        assert "builds no images" in refused["detail"]
        assert "--executor kubernetes" in refused["hint"]
        body = {**RESERVATION, "build": "a" * 64}
        assert (await ask(service, "POST", "/v1/reservations", body)).status_code == 400

    serve(database_url, work)


def test_wrong_build_settings_are_named() -> None:
    assert read_builds({}) == BuildSettings()
    read = read_builds(
        {
            "ODC_BUILD_REGISTRY": "registry.example:5000/odc/builds", "ODC_BUILD_SECRET": "push",
            "ODC_BUILD_NODES": "odc.dev/builds=true", "ODC_BUILD_REGISTRY_HTTP": "on",
        }
    )  # fmt: skip
    assert read.target() == "registry.example:5000/odc/builds"
    assert read.registry_http
    for name, value in {
        "ODC_BUILD_REGISTRY": "registry.example/x:tag", "ODC_BUILD_SECRET": "a b",
        "ODC_BUILD_NODES": "x", "ODC_BUILDS_AT_ONCE": "0", "ODC_BUILD_REGISTRY_HTTP": "yes",
        "ODC_BUILDKIT_IMAGE": "moby/buildkit:v0.34.2", "ODC_NAMESPACE_BUILDS": "A",
    }.items():  # fmt: skip
        with pytest.raises(BadRequest, match=name):
            read_builds({name: value})
    with pytest.raises(BadRequest, match="no registry is set") as refused:
        BuildSettings().target()
    assert "ODC_BUILD_REGISTRY" in str(refused.value.hint)
