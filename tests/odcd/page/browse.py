"""The page on a real database, requested in process as by a browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from odcd.api.http.identity import Peer
from odcd.page.app import Page
from tests.odcd.api.service import ALICE, Service, Spoken, serving
from tests.support.harness.warm import run

HTML = {"accept": "text/html"}
ORIGIN = "http://odc:7070"
OURS = {"origin": ORIGIN, "sec-fetch-site": "same-origin"}


class Browsed:
    def __init__(self, service: Service, page: Page) -> None:
        self.service = service
        self.page = page

    def client(self, peer: Peer | None = ALICE) -> httpx.AsyncClient:
        """peer None: a browser, over TCP."""
        transport = httpx.ASGITransport(Spoken(self.page, peer), raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=HTML)

    async def ticket(self, peer: Peer = ALICE) -> dict[str, Any]:
        async with self.client(peer) as client:
            answer = await client.post("/v1/page/tickets")
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def enter(self, client: httpx.AsyncClient, ticket: str) -> httpx.Response:
        """The button at the address that odcctl page prints."""
        return await client.post("/page/enter", data={"ticket": ticket}, headers=OURS)

    @asynccontextmanager
    async def inside(self, peer: Peer = ALICE) -> AsyncGenerator[httpx.AsyncClient]:
        """A browser that is signed in."""
        ticket = await self.ticket(peer)
        async with self.client(None) as client:
            answer = await self.enter(client, ticket["ticket"])
            assert answer.status_code == 303, answer.text
            yield client


def browse(url: str, work: Callable[[Browsed], Awaitable[None]], **options: Any) -> None:
    async def work_in() -> None:
        options.setdefault("listens", lambda: [("127.0.0.1", 7070)])
        async with serving(url, **options) as service:
            page = Page(service.api, service.app)
            api = service.api
            keeping = asyncio.create_task(page.run())
            looking = asyncio.create_task(api.credentials.run(api.store.keys, api.clock))
            try:
                await work(Browsed(service, page))
            finally:
                service.hub.close()
                await keeping
                looking.cancel()
                await asyncio.wait([looking])

    run(work_in())


def updates(body: bytes) -> list[dict[str, Any]]:
    """The updates in a stream of server-sent events."""
    return [
        json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")
    ]
