"""A client that sends requests without end, with or without a key, delays others only briefly."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from starlette.types import Receive, Scope, Send

from odcd.api.http.door import Door
from odcd.api.http.openapi import OpenApiRoutes
from odcd.api.http.routing import Call
from odcd.database.slots import PER_USER, Slots, ask_as, ask_unknown
from odcd.errors import TooManyRequests
from odcd.front.hosts import Hosts
from odcd.front.listener import Listener
from odcd.front.near import ORIGIN, Origin
from odcd.front.peer import PEER, Peer
from odcd.front.proxies import Proxies, parse_networks
from odcd.front.rounds import PER_ROUND
from odcd.front.watch import Nobody
from odcd.metrics.process import negotiate
from odcd.metrics.scrapes import SAVED_S, Scrapes
from tests.odcd.api.service import ALICE, serve
from tests.support.fakes.clock import VirtualClock

FLOOD = 400
ROUNDS = 5
"""Rounds of the event loop that an honest request needs, for the database and so on."""
PROXY = "10.0.0.1"
CONNECTED = 40


class Counting:
    """Requests of the flood end at once; others need some rounds, and note how many requests of the
    flood were answered meanwhile."""

    def __init__(self) -> None:
        self.flood = 0
        self.meanwhile: list[int] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/flood":
            self.flood += 1
            return
        before = self.flood
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        self.meanwhile.append(self.flood - before)


def door(app: Counting) -> Door:
    return Door(app, Hosts.of(), Proxies(parse_networks([PROXY], "X")), Nobody())


def scope(path: str, address: str, **state: Any) -> Scope:
    headers = [(b"host", b"127.0.0.1"), (b"x-forwarded-for", b"192.0.2.1")]
    return {
        "type": "http", "path": path, "client": (address, 5), "headers": headers, "state": state,
        "http_version": "1.1",
    }  # fmt: skip


async def nothing(_: Any = None) -> Any:
    return {"type": "http.disconnect"}


@pytest.mark.parametrize(
    ("attacker", "other"),
    [
        (scope("/flood", "192.0.2.7"), scope("/", "192.0.2.8")),
        (scope("/flood", "2001:db8::7"), scope("/", "2001:db8:0:1::7")),
        (scope("/flood", "127.0.0.1", **{ORIGIN: Origin("near", 64001, 1)}),
         scope("/", "127.0.0.1", **{ORIGIN: Origin("near", 64002, 1)})),
        (scope("/flood", "", **{PEER: Peer(64001, 64001)}),
         scope("/", "", **{PEER: Peer(64002, 64002)})),
        # A client that no proxy names, and one behind a proxy.
        (scope("/flood", "192.0.2.7"), scope("/", PROXY)),
    ],
)  # fmt: skip
def test_requests_of_one_client_begin_in_small_groups(attacker: Scope, other: Scope) -> None:
    """Before: all at once. 64 connections without a key that asked for /metrics again and again
    delayed a user's request by 7 s, 400 by 18 s; the daemon lost its leadership."""
    app = Counting()

    async def work() -> None:
        entry = door(app)
        honest = asyncio.ensure_future(entry({**other}, nothing, nothing))
        flood = [entry({**attacker}, nothing, nothing) for _ in range(FLOOD)]
        await asyncio.gather(honest, *flood)

    asyncio.run(work())
    assert app.flood == FLOOD
    assert app.meanwhile[0] <= (ROUNDS + 1) * PER_ROUND


def test_a_client_that_gives_up_leaves_its_place_to_the_next() -> None:
    app = Counting()

    async def work() -> None:
        entry = door(app)
        flood = [entry(scope("/flood", "192.0.2.7"), nothing, nothing) for _ in range(FLOOD)]
        tasks = [asyncio.ensure_future(one) for one in flood]
        await asyncio.sleep(0)
        for task in tasks[PER_ROUND : FLOOD // 2]:
            task.cancel()
        await asyncio.wait(tasks)

    asyncio.run(work())
    assert app.flood == FLOOD // 2 + PER_ROUND


def test_statements_before_the_caller_is_known_are_counted_by_client() -> None:
    """Before: they took no slot. 400 connections with invalid keys kept the database's connections
    busy, and delayed a user's request by 7 s."""
    inside: list[str] = []
    go = asyncio.Event()
    slots = Slots()

    async def statement(name: str) -> None:
        async with slots.hold():
            inside.append(name)
            await go.wait()

    async def unknown() -> None:
        ask_unknown("client 192.0.2.7")
        await statement("unknown")

    async def user(name: str) -> None:
        # A request begins like this: its key is looked up, then its caller is known.
        ask_unknown("client 192.0.2.8")
        async with slots.hold():
            pass
        ask_as(name, "/v1/jobs")
        await statement(name)

    async def work() -> None:
        tasks = [asyncio.create_task(unknown()) for _ in range(FLOOD)]
        tasks += [asyncio.create_task(user("bob"))]
        for _ in range(20):
            await asyncio.sleep(0)
        assert inside == ["unknown"] * PER_USER + ["bob"]
        go.set()
        await asyncio.gather(*tasks)
        assert inside.count("unknown") == FLOOD

    asyncio.run(work())


def test_a_known_users_waiting_statements_are_still_bounded() -> None:
    slots = Slots(waiting=2)

    async def one() -> None:
        ask_unknown("client 192.0.2.7")
        ask_as("bob", "/v1/jobs")
        async with slots.hold():
            await asyncio.sleep(0.01)

    async def work() -> list[Any]:
        many: list[Coroutine[Any, Any, None]] = [one() for _ in range(PER_USER + 5)]
        return await asyncio.gather(*many, return_exceptions=True)

    assert any(isinstance(answer, TooManyRequests) for answer in asyncio.run(work()))


def test_scrapes_take_a_small_share_of_the_time() -> None:
    """Before: every scrape rendered all metrics on the event loop, 10 to 30 ms each."""
    clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
    scrapes = Scrapes(clock)
    rendered = 0

    def render() -> tuple[bytes, str]:
        nonlocal rendered
        rendered += 1
        clock.move(0.02)
        return b"%d" % rendered, "text/plain"

    body = b""
    for _ in range(1000):
        body, _ = scrapes.answer("text/plain", render)
    most = SAVED_S / 0.02 * 1.2
    assert rendered <= most
    assert body == b"%d" % rendered
    # One that comes every 15 s always gets current metrics.
    for _ in range(10):
        clock.move(15)
        before = rendered
        scrapes.answer("text/plain", render)
        assert rendered == before + 1


def test_a_version_that_a_client_invents_is_no_format_of_its_own() -> None:
    """Before: each had its own place in the caches, which were full after eight; and one that is no
    number was answered with 500."""
    usual = negotiate(None)[1]
    for version in ("1.0.1", "1.2", "99", "a.b", "1.0.0rc1", "=", ""):
        assert negotiate(f"application/openmetrics-text;version={version}")[1] in (
            usual, negotiate("application/openmetrics-text")[1],
        )  # fmt: skip
    known = negotiate("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8")[1]
    assert known == (
        "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8"
    )


def test_metrics_are_answered_whatever_version_is_asked_for(database_url: str) -> None:
    async def work(service: Any) -> None:
        async with service.client(None) as client:
            for version in ("a.b", "1.0.0", "99"):
                accept = {"accept": f"application/openmetrics-text;version={version}"}
                answer = await client.get("/metrics", headers=accept)
                assert answer.status_code == 200, answer.text
                assert "odcd_build_info" in answer.text
        async with service.client(ALICE) as client:
            assert (await client.get("/v1/nodes")).status_code == 200

    serve(database_url, work)


def test_the_documents_are_made_once() -> None:
    """Before: the page at /docs was made anew for each request, in some 30 ms."""

    async def work() -> None:
        routes = OpenApiRoutes([])
        pages = [await routes.docs(Call({}, None)) for _ in range(2)]  # type: ignore[arg-type]
        assert pages[0].body is pages[1].body

    asyncio.run(work())


def test_few_connections_are_accepted_in_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: 64, for each of which the kernel is asked whose it is. A stranger who connected and
    disconnected without end delayed a user's request by 0.9 s."""
    per_round: list[int] = []

    def take(_: Listener, accepted: socket.socket, address: object) -> None:
        accepted.close()
        per_round[-1] += 1

    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
            clients = [socket.create_connection(server.getsockname()) for _ in range(CONNECTED)]
            listener = Listener(
                server, cast(Any, None), cast(Any, None), Nobody(), certificate=None, handshake_s=1
            )
            while sum(per_round) < CONNECTED:
                per_round.append(0)
                await asyncio.sleep(0)
            listener.close()
            for client in clients:
                client.close()

    monkeypatch.setattr(Listener, "_take", take)
    asyncio.run(work())
    assert max(per_round) <= 8
