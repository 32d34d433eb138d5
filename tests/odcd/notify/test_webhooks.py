"""Webhooks: what is sent, what counts as success, and addresses that they must not reach."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from odcd.errors import BadRequest
from odcd.notify.templates import read_templates
from odcd.notify.webhooks import Outcome, Webhooks, is_allowed, parse_webhook
from odcd.records.notification import Notification

LOCAL = (ipaddress.ip_network("127.0.0.0/8"),)
PUBLIC = "93.184.215.14"


@dataclass
class Sink:
    """A real HTTP server."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    keys: list[str] = field(default_factory=list[str])
    bodies: list[Any] = field(default_factory=list[Any])
    answers: asyncio.Event | None = None
    """It answers when this is set; None: at once."""

    async def answer(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers["Idempotency-Key"])
        self.bodies.append(await request.json())
        if self.answers is not None:
            await self.answers.wait()
        return web.Response(status=self.status, headers=self.headers)


@asynccontextmanager
async def a_sink(**fields: Any) -> AsyncGenerator[Sink]:
    sink = Sink(**fields)
    app = web.Application()
    app.router.add_post("/{path:.*}", sink.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    sink.url = f"http://127.0.0.1:{port}/secret/path"
    try:
        yield sink
    finally:
        await runner.cleanup()


def one(url: str | None) -> Notification:
    return Notification(
        id=1, key="odc-1-5", user_name="alice", address=None, url=url, kind="end", job_id=3,
        facts={"job": "3", "name": "train", "state": "COMPLETED", "run_s": 1}, tries=1,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip


def send(sink_fields: dict[str, Any], networks: Any = LOCAL) -> tuple[Outcome, Sink]:
    async def work() -> tuple[Outcome, Sink]:
        async with a_sink(**sink_fields) as sink:
            return await Webhooks(networks, read_templates()).send(one(sink.url)), sink

    return asyncio.run(work())


def test_a_notification_is_one_post_of_json_with_a_key() -> None:
    outcome, sink = send({})
    assert outcome.of == "sent"
    assert sink.keys == ["odc-1-5"]
    [body] = sink.bodies
    assert body["text"] == "Job 3 (train) Ended, Run time 00:00:01, COMPLETED, ExitCode 0"
    assert body["odc"]["state"] == "COMPLETED"


@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, "sent"), (204, "sent"), (302, "refused"), (400, "refused"), (404, "refused"),
     (410, "refused"), (408, "retry"), (429, "retry"), (500, "retry"), (503, "retry")],
)  # fmt: skip
def test_an_answer_decides_whether_it_is_tried_again(status: int, expected: str) -> None:
    outcome, sink = send({"status": status, "headers": {"Location": "/elsewhere"}})
    assert outcome.of == expected
    assert len(sink.bodies) == 1, "redirects are not followed"
    assert "secret" not in outcome.why


def test_a_server_that_is_not_there_is_tried_again() -> None:
    async def work() -> Outcome:
        async with a_sink() as sink:
            url = sink.url
        return await Webhooks(LOCAL, read_templates()).send(one(url))

    outcome = asyncio.run(work())
    assert outcome.of == "retry"
    assert "secret" not in outcome.why


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.8.9.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
     "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0",
     "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe",
     "2002:7f00:1::1", "2001:0:5ef5:79fd::1"],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert not is_allowed(address, "https", ())
    assert not is_allowed(address, "http", ())


def test_public_addresses_need_https_and_networks_can_be_allowed() -> None:
    assert is_allowed(PUBLIC, "https", ())
    assert not is_allowed(PUBLIC, "http", ())
    networks = (ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00::/8"))
    assert is_allowed("10.1.2.3", "http", networks)
    assert is_allowed("::ffff:10.1.2.3", "http", networks)
    assert is_allowed("fd00::5", "https", networks)
    assert not is_allowed("10.2.0.1", "https", networks)


@pytest.mark.parametrize(
    "url",
    ["https://127.0.0.1/x", "http://localhost/x", "https://[::1]/x", "https://2130706433/x",
     "https://0x7f000001/x", "https://127.1/x", "https://10.0.0.1:9000/x",
     "https://[::ffff:127.0.0.1]/x", "http://93.184.215.14/x"],
)  # fmt: skip
def test_such_webhooks_cannot_be_set_nor_used(url: str) -> None:
    async def work() -> Outcome:
        webhooks = Webhooks((), read_templates())
        refused = r"is not allowed|host .* cannot be resolved|not the address of"
        with pytest.raises(BadRequest, match=refused):
            await webhooks.check(url, 1001)
        return await webhooks.send(one(url))

    assert asyncio.run(work()).of != "sent"


def test_a_name_that_later_points_inside_is_not_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: the name is public when it is set, and loopback when it is used."""
    places = [PUBLIC]

    def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        assert host == "chat.example.org"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port)) for place in places]

    async def work() -> Outcome:
        async with a_sink() as sink:
            port = sink.url.split(":")[2].split("/")[0]
            url = f"https://chat.example.org:{port}/x"
            webhooks = Webhooks((), read_templates())
            monkeypatch.setattr(socket, "getaddrinfo", resolve)
            await webhooks.check(url, 1001)
            # One address of several is enough to refuse the name.
            places.append("127.0.0.1")
            with pytest.raises(BadRequest, match=r"127\.0\.0\.1.* is not allowed"):
                await webhooks.check(url, 1001)
            outcome = await webhooks.send(one(url))
            assert sink.bodies == []
            return outcome

    outcome = asyncio.run(work())
    assert outcome.of == "refused"
    assert outcome.why == "chat.example.org is at 127.0.0.1, which is not allowed"


@pytest.mark.parametrize(
    "url",
    ["", "https://", "ftp://a.b/c", "https://user:pw@a.b/c", "https://a.b/c d", "https://a.b/\n",
     "https://a.b:0/", "https://a.b:99999/", "https://a.b/c#d", "https://a_b/", "https://a.b./",
     "https://ä.b/", f"https://a.b/{'x' * 3000}"],
)  # fmt: skip
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(BadRequest, match="not the address of a webhook"):
        parse_webhook(url)


def test_a_removed_webhook_gets_nothing() -> None:
    outcome = asyncio.run(Webhooks((), read_templates()).send(one(None)))
    assert outcome.of == "refused"
    assert json.dumps(outcome.why)
