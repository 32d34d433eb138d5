"""A cluster with a day behind it and a queue before it, on a real database and a real port, without
an executor: what browsers look at in tests, and what the pictures of the documents show."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import random
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from odcd.api.app import create_app
from odcd.api.http.context import Api
from odcd.api.http.credentials import Credentials
from odcd.api.http.identity import Peer
from odcd.api.http.server import HttpServer
from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.events import EventHub
from odcd.front.near import ORIGIN, Origin
from odcd.jobs.submit_batches import SubmitBatcher
from odcd.metrics import Metrics
from odcd.page.app import Page
from odcd.records.node import NodeReport
from odcd.stores.store import Store
from tests.odcd.api.service import OPERATOR, Spoken

T = TypeVar("T")
JOB = {"script": "#!/bin/sh\nexec train\n", "work_dir": "/home/shared/work"}
USERS = {name: Peer(64001 + at, 64001 + at) for at, name in enumerate(
    ("alice", "bob", "dana", "hugo", "emil", "maya"))}  # fmt: skip
NODES = [
    *(("h100", f"gpu-h100-{n:02}", 8) for n in range(1, 9)),
    *(("a100", f"gpu-a100-{n:02}", 8) for n in range(1, 7)),
    *(("l4", f"gpu-l4-{n}", 4) for n in range(1, 7)),
    *(("cpu-x86", f"cpu-{n}", 0) for n in range(1, 3)),
]


BROWSERS = frozenset({os.getuid()})
"""Connections of these users are treated as those of a reverse proxy on this machine."""


class _Proxied:
    """The app, as it sees requests of BROWSERS."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = Origin("near", os.getuid(), 0)
        await self._app({**scope, "state": {ORIGIN: origin}}, receive, send)


async def _nothing(_: str | None) -> tuple[bytes, str]:
    return b"", "text/plain"


class ShiftedClock(SystemClock):
    """The system clock, some time ago."""

    def __init__(self) -> None:
        self.ago = timedelta(0)

    def now(self) -> datetime:
        return super().now() - self.ago


class Scene:
    """Calls come from another thread than the one that runs the service."""

    def __init__(self) -> None:
        self.port = 0
        self.loop: asyncio.AbstractEventLoop
        self.clock = ShiftedClock()
        self.store: Store
        self.hub: EventHub
        self.database: Database
        self._page: Page

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def client(self, peer: Peer) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(Spoken(self._page, peer), raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=self.url)

    async def ask(self, method: str, path: str, body: Any = None, peer: Peer = OPERATOR) -> Any:
        async with self.client(peer) as client:
            answer = await client.request(method, path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def submit(self, user: str, **fields: Any) -> int:
        made = await self.ask("POST", "/v1/jobs", {**JOB, **fields}, USERS[user])
        return made["id"]

    async def plan(self) -> list[int]:
        row = await self.database.fetchrow(
            "select started from odc.plan_pass(0, $1)", self.clock.now()
        )
        self.hub.wake()
        return row["started"]

    async def foresee(self) -> None:
        await self.database.fetchrow(
            "select * from odc.refresh_eta(p_term => 0, p_now => $1)", self.clock.now()
        )

    async def run(self, job_id: int) -> None:
        """Its members have started."""
        await self._record(job_id, "started", None)

    async def end(self, job_id: int, exit_code: int = 0) -> None:
        await self._record(job_id, "exited", exit_code)

    async def _record(self, job_id: int, kind: str, exit_code: int | None) -> None:
        now = self.clock.now()
        await self.database.execute(
            "select odc.record_facts("
            "0, array_agg(a.job_id), array_agg(r.attempt), array_agg(a.rank), "
            "array_agg($4::text), array_agg($2::timestamptz), array_agg($3::integer), "
            "array_agg(null::integer), array_agg(null::text), array_agg(null::text), $2) "
            "from odc.allocation as a join odc.running as r using (job_id) where a.job_id = $1",
            job_id, now, exit_code, kind,
        )  # fmt: skip

    async def ticket(self, user: str | None) -> str:
        """The address that signs a browser in; None: as an operator."""
        peer = OPERATOR if user is None else USERS[user]
        return (await self.ask("POST", "/v1/page/tickets", None, peer))["url"]

    async def cookies(self, user: str | None) -> dict[str, str]:
        """The cookies of a browser that is signed in."""
        ticket = parse_qs(urlsplit(await self.ticket(user)).query)["ticket"]
        ours = {"origin": self.url, "sec-fetch-site": "same-origin"}
        transport = httpx.ASGITransport(_Proxied(self._page))
        async with httpx.AsyncClient(transport=transport, base_url=self.url) as client:
            await client.post("/page/enter", data={"ticket": ticket}, headers=ours)
            return dict(client.cookies)

    async def serve(self, dsn: str, folder: Path, ready: concurrent.futures.Future[None]) -> None:
        self.loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        self._stop = stopping
        async with Database(dsn, size=8) as self.database:
            self.store = Store(self.database)
            self.hub = EventHub(self.store.events, self.clock)
            credentials = Credentials()
            api = Api(
                store=self.store, batcher=SubmitBatcher(self.store.jobs, self.clock),
                events=self.hub, clock=self.clock, wake=lambda: None, executor_of=lambda: None,
                listening=lambda: True, led=lambda: True, metrics=Metrics(), scrape=_nothing,
                own_uid=os.getuid(), listens=lambda: server.addresses, proxy_uids=BROWSERS,
                credentials=credentials,
            )  # fmt: skip
            self._page = Page(api, create_app(api))
            server = HttpServer(
                self._page, path=folder / "odcd.sock", mode=0o600, listen=("127.0.0.1", 0)
            )
            server.bind()
            self.port = server.addresses[0][1]
            tasks = [
                asyncio.create_task(work)
                for work in (
                    self.hub.run(), server.run(), self._page.run(),
                    credentials.run(self.store.keys, self.clock),
                    self.database.listen("odc", self.hub.wake, self.clock),
                )
            ]  # fmt: skip
            ready.set_result(None)
            await stopping.wait()
            self.hub.close()
            server.stop()
            await tasks[1]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)


@contextmanager
def scene(dsn: str, folder: Path) -> Iterator[Scene]:
    """An empty scene, served."""
    made = Scene()
    ready: concurrent.futures.Future[None] = concurrent.futures.Future()
    thread = threading.Thread(target=lambda: asyncio.run(made.serve(dsn, folder, ready)))
    thread.start()
    try:
        ready.result(30)
        yield made
    finally:
        made.close()
        thread.join(30)


async def furnish(it: Scene) -> None:
    """Users, nodes, a past day, and a queue."""
    it.clock.ago = timedelta(hours=30)
    await it.store.nodes.register(
        0,
        [NodeReport(name=name, gpu_type=kind, gpus=gpus, cpus=gpus * 24 or 32,
                    mem_mib=gpus * 262_144 or 65_536, declared=True)
         for kind, name, gpus in NODES],
        it.clock.now(), whole=True,
    )  # fmt: skip
    for name, peer in USERS.items():
        await it.ask(
            "POST", "/v1/accounts/default/users", {"user": name, "uid": peer.uid, "default": True}
        )
    chance = random.Random(7)
    await _past(it, chance)
    await _present(it)
    await it.plan()
    await it.foresee()


async def _past(it: Scene, chance: random.Random) -> None:
    for hour in range(28, 8, -1):
        it.clock.ago = timedelta(hours=hour)
        made: list[int] = []
        for user in USERS:
            each = chance.choice([1, 2, 4, 8])
            made.append(await it.submit(
                user, name=chance.choice(["pretrain", "finetune", "eval", "sweep"]), gpus=each,
                gpu_type=chance.choice(["h100", "a100"]), time_limit_s=chance.choice([7200, 14400]),
            ))  # fmt: skip
        started = await it.plan()
        it.clock.ago -= timedelta(minutes=chance.randint(20, 50))
        for job_id in started:
            await it.run(job_id)
            await it.end(job_id, exit_code=chance.choice([0, 0, 0, 0, 1]))
        await it.foresee()


async def _present(it: Scene) -> None:
    async def begin(hours: float, *jobs: dict[str, Any]) -> None:
        it.clock.ago = timedelta(hours=hours)
        for job in jobs:
            await it.submit(job.pop("user"), **job)
        for job_id in await it.plan():
            await it.run(job_id)

    def job(user: str, name: str, gpus: int, hours: float, kind: str = "h100", **more: Any) -> Any:
        return {"user": user, "name": name, "gpus_per_node": gpus,
                "gpu_type": kind, "time_limit_s": int(hours * 3600), **more}  # fmt: skip

    await begin(
        0.95,
        job("alice", "llama-pretrain", 8, 9, node_count=3),
        job("bob", "vit-finetune", 4, 5),
        job("dana", "diffusion", 8, 7, "a100"),
    )
    await begin(
        0.8,
        job("hugo", "rl-sweep", 2, 4),
        job("hugo", "rl-sweep", 2, 4),
        job("emil", "tokenizer", 4, 3),
        job("maya", "eval-suite", 8, 6, "a100"),
    )
    await begin(
        0.5,
        job("bob", "distill", 8, 12),
        job("dana", "vae", 4, 2, "a100"),
        job("alice", "notebook", 1, 8, "l4"),
        job("emil", "asr", 2, 3, "l4"),
    )
    await begin(0.2, job("maya", "probe", 8, 3), job("hugo", "bench", 1, 1, "l4"),
                job("dana", "whisper", 2, 5, "a100"))  # fmt: skip
    it.clock.ago = timedelta(minutes=4)
    start = it.clock.now() + timedelta(hours=14)
    await it.ask("POST", "/v1/bookings", {
        "name": "driver-update", "kind": "maintenance", "starts_at": start.isoformat(),
        "duration_s": 3 * 3600, "node_list": ["gpu-h100-07", "gpu-h100-08"],
    })  # fmt: skip
    await it.ask("PATCH", "/v1/nodes/gpu-a100-06", {"state": "DRAIN", "reason": "fan 3 is loud"})
    await it.ask("PATCH", "/v1/nodes/gpu-l4-6", {"state": "DOWN", "reason": "no power"})
    for user, name, gpus, hours, kind in (
        ("bob", "moe-pretrain", 8, 8, "h100"), ("alice", "llama-sft", 8, 6, "h100"),
        ("dana", "video-gen", 8, 5, "h100"), ("emil", "asr-large", 4, 4, "h100"),
        ("hugo", "rl-final", 8, 10, "h100"), ("maya", "eval-night", 2, 2, "h100"),
        ("alice", "ablation-1", 4, 3, "h100"), ("alice", "ablation-2", 4, 3, "h100"),
    ):  # fmt: skip
        more = {"node_count": 4} if name == "moe-pretrain" else {}
        request = job(user, name, gpus, hours, kind, **more)
        await it.submit(request.pop("user"), **request)
    await it.submit("dana", name="seeds", gpus=1, gpu_type="a100", array="0-63%4",
                    time_limit_s=3600)  # fmt: skip
    held = await it.submit("hugo", name="later", gpus=2, time_limit_s=3600, hold=True)
    assert held
    it.clock.ago = timedelta(0)
