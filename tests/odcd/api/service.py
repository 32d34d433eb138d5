"""The API on a real database, in process or on a real socket."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from odcd.api.app import create_app
from odcd.api.http.context import Api
from odcd.api.http.identity import PEER, Peer
from odcd.api.http.server import HttpServer
from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.events import EventHub
from odcd.jobs.submit_batches import SubmitBatcher
from odcd.metrics import Metrics
from odcd.metrics.sampler import Sampler
from odcd.records.node import NodeReport
from odcd.stores.store import Store
from tests.support.harness.warm import WarmDatabase, run

ALICE = Peer(64001, 64001)
BOB = Peer(64002, 64002)
OPERATOR = Peer(0, 0)
BODY = {"script": "#!/bin/sh\ntrue\n", "work_dir": "/tmp", "gpus": 1}


class Spoken:
    """The application as a client with these credentials sees it; None: over TCP."""

    def __init__(self, app: ASGIApp, peer: Peer | None) -> None:
        self._app = app
        self._peer = peer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = {} if self._peer is None else {PEER: self._peer}
        await self._app({**scope, "state": state}, receive, send)


@dataclass
class Service:
    database: Database
    api: Api
    app: ASGIApp
    hub: EventHub
    woken: list[int] = field(default_factory=list)

    @property
    def store(self) -> Store:
        return self.api.store

    def client(self, peer: Peer | None = ALICE) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(Spoken(self.app, peer), raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://odc")

    async def submit(self, peer: Peer = ALICE, **fields: Any) -> int:
        async with self.client(peer) as client:
            answer = await client.post("/v1/jobs", json={**BODY, **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    async def plan(self) -> list[int]:
        row = await self.database.fetchrow(
            "select started from odc.plan_pass(0, $1)", self.api.clock.now()
        )
        self.hub.wake()
        return row["started"]

    async def end(self, job_id: int, exit_code: int = 0) -> None:
        now = self.api.clock.now()
        await self.database.execute(
            "select odc.record_facts("
            "0, array_agg(a.job_id), array_agg(r.attempt), array_agg(a.rank), "
            "array_agg('exited'::text), array_agg($2::timestamptz), array_agg($3::integer), "
            "array_agg(null::integer), array_agg(null::text), array_agg(null::text), $2) "
            "from odc.allocation as a join odc.running as r using (job_id) where a.job_id = $1",
            job_id, now, exit_code,
        )  # fmt: skip

    async def happen(self, kind: str, job_id: int | None = None) -> None:
        """An artificial event, announced like real ones."""
        await self.database.execute(
            "insert into odc.event (at, kind, actor, job_id) values ($1, $2, 'test', $3)",
            self.api.clock.now(), kind, job_id,
        )  # fmt: skip
        await self.database.execute("notify odc")

    async def final(self) -> None:
        """Wait until every existing event can be read: events behind an open transaction cannot."""
        async with asyncio.timeout(60):
            while await self.database.fetchval(
                "select exists (select from odc.event where xid >= odc._final_below())"
            ):
                await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(
    url: str, *, nodes: int = 1, kept: int = 4096, **fields: Any
) -> AsyncGenerator[Service]:
    """A service with its listener and its distribution of events; fields: of Api."""
    clock = SystemClock()
    metrics = Metrics()
    async with WarmDatabase(url, size=4, watch=metrics) as database:
        store = Store(database)
        await store.nodes.register(
            0,
            [
                NodeReport(
                    name=f"n{i}", gpu_type="h100", gpus=8, cpus=64, mem_mib=64_000, declared=True
                )
                for i in range(1, nodes + 1)
            ],
            clock.now(),
            whole=True,
        )  # fmt: skip
        hub = EventHub(store.events, clock, kept=kept)
        woken: list[int] = []
        sampler = Sampler(database, clock, metrics)
        api = Api(**{
            "store": store, "batcher": SubmitBatcher(store.jobs, clock), "events": hub,
            "clock": clock,
            "wake": lambda: woken.append(1), "executor_of": lambda: None,
            "listening": lambda: database.listening("odc"), "led": lambda: True,
            "metrics": metrics, "scrape": sampler.scrape, "own_uid": os.getuid(),
            **fields,
        })  # fmt: skip
        tasks = [
            asyncio.create_task(hub.run()),
            asyncio.create_task(database.listen("odc", hub.wake, clock)),
        ]
        try:
            # Notifications without a listener would make tests wait for the next sweep.
            while not database.listening("odc"):
                await asyncio.sleep(0.005)
            yield Service(database, api, create_app(api), hub, woken)
        finally:
            hub.close()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


def serve(url: str, work: Callable[[Service], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Run a test's work against a service."""

    async def work_in() -> None:
        async with serving(url, **options) as service:
            await work(service)

    run(work_in())


@asynccontextmanager
async def on_socket(
    service: Service, path: Path, mode: int = 0o600, listen: tuple[str, int] | None = None
) -> AsyncGenerator[HttpServer]:
    """The service on a real unix socket, as the daemon runs it."""
    server = HttpServer(service.app, path=path, mode=mode, listen=listen)
    server.bind()
    running = asyncio.create_task(server.run())
    try:
        yield server
    finally:
        service.hub.close()
        server.stop()
        await running


def over(path: Path) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(uds=str(path)), base_url="http://odc", timeout=60
    )


async def next_event(lines: AsyncGenerator[str]) -> dict[str, Any]:
    """The next event of a stream of server-sent events, with its id and name."""
    event: dict[str, Any] = {}
    async for line in lines:
        if not line and "data" in event:
            return event
        name, _, value = line.partition(":")
        if name in ("id", "event"):
            event[name] = value.strip()
        elif name == "data":
            event["data"] = json.loads(value)
    raise EOFError("the stream ended")


async def until(holds: Callable[[], object]) -> None:
    """For states without a notification: check until it is true."""
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)
