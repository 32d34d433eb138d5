"""Texts that programs in pods choose end no leader's term and reach no terminal as escapes.

A dev server's user is root in its container: the message of its end, and the output of every
program that odc runs there, are theirs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest
from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.executor.base import DevServers
from odcd.executor.kubernetes import looks, notices, status
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.objects import Pod
from odcd.loops.expiry_notices import ExpiryNotices
from odcd.loops.idle_monitor import IdleMonitor
from odcd.loops.jupyter import JupyterControl
from odcd.records.dev_server import Activity
from odcd.records.dispatch import Fact, Notice
from odcd.stores.attempts import AttemptStore
from odcd.stores.dev_servers import DevServerStore
from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import Queue, a_cluster
from tests.support.harness.database import Sql

HOSTILE = "first line\nno\0thing \x1b]0;x\x07here"
SHOWN = "no?thing ?]0;x?here"
STDOUT, STDERR, ENDED = b"\1", b"\2", b"\3"
Say = Callable[[web.WebSocketResponse], Awaitable[None]]


@pytest.fixture
def job_id(database_url: str) -> int:
    """A dev server that wants Jupyter and ends in a little less than 30 minutes."""
    now = SystemClock().now()
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1, now=now)
        queue = Queue(sql)
        queue.now = now - timedelta(minutes=31)
        return Reservations(queue).active(hours=1, details={"ssh_keys": [], "jupyter": True})


def a_pod(**status: Any) -> Pod:
    running = {"running": {"startedAt": "2026-01-01T12:00:00Z"}}
    return msgspec.convert(
        {
            "metadata": {
                "name": "odc-1-1-0", "namespace": "gpu-dev",
                "labels": {"odc.dev/kind": "reservation"},
            },
            "spec": {"nodeName": "n1", "containers": [{"name": "gpu-dev"}]},
            "status": {
                "phase": "Running",
                "containerStatuses": [{"name": "gpu-dev", "state": running, **status}],
            },
        },
        Pod,
    )  # fmt: skip


async def refuse(socket: web.WebSocketResponse) -> None:
    await socket.send_bytes(STDERR + HOSTILE.encode())
    await socket.send_bytes(ENDED + json.dumps({"status": "Failure"}).encode())


@asynccontextmanager
async def a_container(say: Say) -> AsyncGenerator[Cluster]:
    """A cluster in which every program run in the container answers like this."""

    async def serve(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await socket.prepare(request)
        await say(socket)
        await socket.close()
        return socket

    app = web.Application()
    app.router.add_get("/api/v1/namespaces/gpu-dev/pods/odc-1-1-0/exec", serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    cluster = Cluster(ApiClient(configuration))
    try:
        yield cluster
    finally:
        await cluster.close()
        await runner.cleanup()


class Servers:
    """The part of KubernetesDevServers that runs programs in the pod."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def notify(self, job_id: int, attempt: int, notice: Notice) -> None:
        await notices.notify(self._cluster, [a_pod()], job_id, notice)

    async def set_jupyter(self, job_id: int, attempt: int, *, on: bool) -> None:
        await notices.set_jupyter(self._cluster, [a_pod()], job_id, on=on)

    async def look(self, job_id: int, attempt: int) -> Activity:
        return await looks.look(self._cluster, [a_pod()] * 3, 3)


def test_the_message_of_a_containers_end_does_not_end_the_leaders_term(
    database_url: str, job_id: int
) -> None:
    """Before: `printf 'a\\0' >/dev/termination-log` and a kill of process 1 ended the term of every
    leader within a second: no job of any user started or ended any more."""
    ended = {"exitCode": 1, "message": HOSTILE, "finishedAt": "2026-01-01T12:00:00Z"}
    restart = status.restarted(a_pod(lastState={"terminated": ended}), (job_id, 1, 0))
    assert restart is not None

    async def record() -> list[Fact]:
        ledger = Ledger()
        ledger.report(restart)
        facts = await ledger.take()
        async with Database(database_url, size=1) as database:
            await AttemptStore(database).record_facts(0, facts, SystemClock().now())
        ledger.acknowledge(facts)
        return facts

    [fact] = asyncio.run(record())
    assert fact.detail == f"exit code 1: {SHOWN}"
    with Sql(database_url) as sql:
        assert sql.rows("select from odc.box_restart where job_id = $1", job_id)


def test_the_error_of_jupyter_does_not_end_the_leaders_term(database_url: str, job_id: int) -> None:
    """Before: the same by a NUL in the output of the program that starts Jupyter Lab, which the
    user's own /bin/sh runs."""

    async def work() -> str:
        async with Database(database_url, size=2) as database, a_container(refuse) as cluster:
            servers = cast(DevServers, Servers(cluster))
            store = DevServerStore(database)
            await JupyterControl(
                0, store, servers, SystemClock(), timedelta(seconds=30)
            ).fulfil_once((await store.list_due_jupyters(0))[0])
            return await database.fetchval("select error from odc.box_jupyter")

    assert asyncio.run(work()) == f"first line {SHOWN}"


def test_the_error_of_a_notice_does_not_end_the_leaders_term(
    database_url: str, job_id: int
) -> None:
    async def work() -> str:
        async with Database(database_url, size=2) as database, a_container(refuse) as cluster:
            servers = cast(DevServers, Servers(cluster))
            clock = SystemClock()
            await ExpiryNotices(
                0, DevServerStore(database), servers, clock, timedelta(seconds=30)
            ).run_once()
            return await database.fetchval("select detail from odc.event where kind = 'warned'")

    assert f"first line {SHOWN}" in json.loads(asyncio.run(work()))["trouble"]


async def count_much(socket: web.WebSocketResponse) -> None:
    await socket.send_bytes(STDOUT + b"connections=999999999 gpu=none cpu_us=999999999999999999\n")
    await socket.send_bytes(ENDED + json.dumps({"status": "Success"}).encode())


def test_the_connections_of_a_dev_server_do_not_end_the_leaders_term(
    database_url: str, job_id: int
) -> None:
    """Before: the sum of three nodes does not fit into 32 bits. So a dev server whose /bin/sh
    prints this ended the process of every daemon at its first check for activity."""
    with Sql(database_url) as sql:
        sql.execute("update odc.qos set idle_warn_s = 3600")

    async def work() -> int:
        async with Database(database_url, size=2) as database, a_container(count_much) as cluster:
            servers = cast(DevServers, Servers(cluster))
            every = timedelta(minutes=5)
            await IdleMonitor(0, DevServerStore(database), servers, SystemClock(), every).run_once()
            return await database.fetchval("select job_id from odc.box_look")

    assert asyncio.run(work()) == job_id


async def talk_endlessly(socket: web.WebSocketResponse) -> None:
    while not socket.closed:
        await socket.send_bytes(STDOUT + b"x" * 65_536)


def test_the_output_of_a_program_in_a_pod_is_read_only_so_far() -> None:
    """Before: for as long as the program might take, up to a minute for Jupyter."""

    async def work() -> str | None:
        async with a_container(talk_endlessly) as cluster, asyncio.timeout(30):
            return await cluster.execute("gpu-dev", "odc-1-1-0", "gpu-dev", ["true"], 300)

    assert asyncio.run(work()) == "it wrote more than 16 MiB"
