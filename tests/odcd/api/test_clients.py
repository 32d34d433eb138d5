"""Clients that are too old are told so in the answer to their request."""

from __future__ import annotations

from pathlib import Path

import pytest

import odcctl
import odcd
from odcd.api.answers.cluster import Info
from odcd.api.http.clients import check_client, version_of
from odcd.errors import BadRequest, ClientTooOld
from tests.odcd.api.service import ALICE, Service, serve
from tests.odcd.api.test_accounts import ask, read


def asks(agent: str | None) -> dict[str, object]:
    return {"headers": [] if agent is None else [(b"user-agent", agent.encode())]}


@pytest.mark.parametrize(
    "agent", ["odcctl/0.1.9", "odcctl/0.0.1 (x)", "odcctl", "odcctl/0", "odcctl/0.1.1.dev5+gabc"]
)
def test_an_old_odcctl_is_refused_with_an_upgrade_hint(agent: str) -> None:
    """CLI-53"""
    with pytest.raises(ClientTooOld, match=r"the server needs 0\.2 or newer") as refused:
        check_client(asks(agent), version_of("0.2"))
    assert "pip install" in str(refused.value.hint)


@pytest.mark.parametrize(
    "agent",
    [
        "odcctl/0.2.0",
        "odcctl/1.0",
        "odcctl/0.10",
        "odcctl/0.2.dev5+gabc",
        "curl/8.5.0",
        "",
        None,
        "x" * 9000,
    ],
)
def test_other_clients_are_accepted(agent: str | None) -> None:
    check_client(asks(agent), version_of("0.2"))


def test_without_a_minimum_version_every_client_is_accepted() -> None:
    check_client(asks("odcctl/0.0.1"), None)
    with pytest.raises(BadRequest, match="is not a version"):
        version_of("new")


def test_every_request_of_an_old_client_gets_the_refusal(database_url: str) -> None:
    """CLI-53: a refused extension of such a client is reported, and not lost."""

    async def work(service: Service) -> None:
        async with service.client(ALICE) as client:
            for method, path in (
                ("POST", "/v1/reservations/7/extend"), ("GET", "/v1/jobs"),
                ("DELETE", "/v1/keys/current"),
            ):  # fmt: skip
                answer = await client.request(method, path, headers={"user-agent": "odcctl/0.1.0"})
                assert (answer.status_code, answer.json()["code"]) == (426, "OD039")
            assert (await client.get("/health", headers={"user-agent": "odcctl"})).is_success

    serve(database_url, work, oldest_client=version_of("0.2"))


def test_odcctl_sends_its_version() -> None:
    assert odcctl.__version__ == odcd.__version__
    text = (Path(odcctl.__file__).parent / "http/client.py").read_text()
    assert 'f"odcctl/{__version__}"' in text


def test_the_root_shows_the_version_and_links_to_the_documents(database_url: str) -> None:
    """API-01: in JSON, for every client; operations that need a key are marked."""

    async def work(service: Service) -> None:
        info = read(Info, await ask(service, "GET", "/", peer=None))
        assert info.version == odcd.__version__
        for path, kind in (
            (info.docs, "text/html"), (info.openapi, "application/json"),
            (info.health, "application/json"), ("/ready", "application/json"),
        ):  # fmt: skip
            answer = await ask(service, "GET", path, peer=None)
            assert answer.headers["content-type"].startswith(kind), path
        refused = await ask(service, "GET", "/v1/jobs", peer=None)
        assert (refused.status_code, refused.json()["code"]) == (401, "OD015")

    serve(database_url, work)
