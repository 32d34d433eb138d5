"""Over TCP the daemon answers only for its own names, and trusts only configured proxies."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator

import pytest
from starlette.types import Receive, Scope, Send

from odcd.api.http.door import Door
from odcd.errors import BadRequest
from odcd.front.hosts import Hosts, parse_hosts
from odcd.front.proxies import Proxies, parse_networks
from odcd.front.settings import read_front
from odcd.front.watch import Nobody
from tests.attack.doors import received, status
from tests.attack.front import Place, connected, limited, metric, tcp
from tests.support.harness.daemon import new_odc

long = pytest.mark.long


def request_status(place: Place, *headers: str, version: str = "1.1") -> int:
    with connected(place) as connection:
        lines = [f"GET /metrics HTTP/{version}", *headers, "Connection: close", "", ""]
        connection.sendall("\r\n".join(lines).encode())
        return status(received(connection))


@pytest.fixture(scope="module")
def places() -> Generator[tuple[Place, Place]]:
    """TCP and the unix socket of one daemon."""
    given = {
        "ODC_LISTEN": "127.0.0.1:0", "ODC_HOSTS": "odc.example.org *.inside.example",
        "ODC_URL": "https://front.example:8443",
    }  # fmt: skip
    with new_odc() as odc, limited(odc, environment=given):
        yield tcp(odc), str(odc.home / "odcd.sock")


@long
def test_a_request_for_an_unknown_host_is_refused(places: tuple[Place, Place]) -> None:
    before = metric(places[1], "odcd_http_requests_rejected_total")
    bad = (
        "rebound.attacker.example", "localhost.attacker.example", "127.0.0.1.attacker.example",
        "odc.example.org.attacker.example", "xodc.example.org", "inside.example", "localhost:x", "",
        "127.0.0.1:80:80", "[::1", "localhost, odc.example.org", "127.0.0.1:80.attacker.example",
        "127.0.0.1%attacker.example", "[::1]attacker.example", "[::1%attacker.example]", "[::1]:x",
    )  # fmt: skip
    for host in bad:
        assert request_status(places[0], f"Host: {host}") == 400, host
    assert request_status(places[0]) == 400
    assert request_status(places[0], "Host: localhost", "Host: localhost") == 400
    assert request_status(places[0], "Host: evil.example", version="1.0") == 400
    rejected = metric(places[1], "odcd_http_requests_rejected_total") - before
    assert rejected == len(bad) + 3


@long
def test_known_names_and_addresses_are_answered(places: tuple[Place, Place]) -> None:
    for host in (
        "localhost", "LocalHost:7070", "page.localhost", "127.0.0.1", "127.0.0.1:7070",
        "10.1.2.3:8", "[::1]", "[fd00::1]:7070", "::1", "odc.example.org", "odc.example.org.:443",
        "a.b.inside.example", "front.example:8443", socket.gethostname(),
    ):  # fmt: skip
        assert request_status(places[0], f"Host: {host}") == 200, host
    assert request_status(places[0], version="1.0") == 200
    assert request_status(places[1], "Host: anything.example") == 200


@pytest.mark.parametrize("word", ["http://odc", "odc:7070", "*", "*.*.x", "a..b", "ö.example"])
def test_a_host_setting_that_is_not_a_name_is_refused(word: str) -> None:
    with pytest.raises(BadRequest, match="ODC_HOSTS"):
        parse_hosts([word])


TRUSTED = Proxies(parse_networks(["10.0.0.0/8", "127.0.0.1", "fd00::/8"], "X"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("127.0.0.1", ["1.1.1.1, 198.51.100.7"], "198.51.100.7"),
        ("127.0.0.1", ["1.1.1.1", "198.51.100.7, 10.0.0.3"], "198.51.100.7"),
        ("127.0.0.1", ["10.0.0.9"], "10.0.0.9"),
        ("127.0.0.1", ["1.1.1.1, nonsense"], "127.0.0.1"),
        ("127.0.0.1", ["1.1.1.1, nonsense, 10.0.0.2"], "10.0.0.2"),
        ("127.0.0.1", ["198.51.100.7:4711"], "198.51.100.7"),
        ("::ffff:127.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("fd00::1", ["::ffff:198.51.100.7"], "198.51.100.7"),
        ("", ["198.51.100.7"], ""),
    ],
)
def test_a_client_cannot_choose_its_address(peer: str, forwarded: list[str], client: str) -> None:
    headers = [(b"x-forwarded-for", text.encode()) for text in forwarded]
    assert TRUSTED.client(peer, headers) == client
    assert Proxies().client(peer, headers) == peer


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ODC_TRUSTED_PROXIES", "10.0.0.1/8"), ("ODC_TRUSTED_PROXIES", "proxy.example"),
        ("ODC_CONNECTIONS", "0"), ("ODC_CONNECTIONS_PER_USER", "many"),
        ("ODC_CONNECTIONS_PER_ADDRESS", "-1"), ("ODC_TLS_KEY", "/k"),
    ],
)  # fmt: skip
def test_a_setting_that_is_wrong_is_named(name: str, text: str) -> None:
    with pytest.raises(BadRequest, match=name):
        read_front({name: text})


def test_websockets_are_checked_for_the_host_too() -> None:
    sent: list[str] = []
    scope: Scope = {
        "type": "websocket", "path": "/", "headers": [(b"host", b"evil.example")],
        "extensions": {"websocket.http.response": {}}, "state": {}, "client": ("127.0.0.1", 1),
    }  # fmt: skip

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message["type"])

    asyncio.run(Door(never, Hosts.of(), Proxies(), Nobody())(scope, receive, send))
    assert sent[0] == "websocket.http.response.start"
