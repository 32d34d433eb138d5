"""A port of a pod, through the API server's port-forward as kubelet serves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import WSMsgType, web
from kubernetes_asyncio.client import ApiClient, Configuration

from odcd.errors import RunnerDown, WrongState
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.forward import Forward

PORT = 2222
HEAD = PORT.to_bytes(2, "little")
Talk = Callable[[web.WebSocketResponse], Awaitable[None]]


@asynccontextmanager
async def a_cluster(talk: Talk | None) -> AsyncGenerator[Cluster]:
    """A cluster whose only pod gives these answers; None: it cannot be reached."""

    async def serve(request: web.Request) -> web.StreamResponse:
        assert request.query.getall("ports") == [str(PORT)]
        if talk is None:
            raise web.HTTPForbidden(text="no")
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        await socket.send_bytes(b"\0" + HEAD)
        await socket.send_bytes(b"\1" + HEAD)
        await talk(socket)
        await socket.close()
        return socket

    app = web.Application()
    app.router.add_get("/api/v1/namespaces/dev/pods/p/portforward", serve)
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


def run(talk: Talk | None, work: Callable[[Cluster], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        async with a_cluster(talk) as cluster, asyncio.timeout(60):
            await work(cluster)

    asyncio.run(all_of_it())


async def opened(cluster: Cluster) -> Forward:
    return await cluster.forward("dev", "p", PORT, 60)


async def echo(socket: web.WebSocketResponse) -> None:
    async for message in socket:
        assert message.type is WSMsgType.BINARY
        await socket.send_bytes(message.data)


def test_bytes_go_both_ways_without_the_port_prefix() -> None:
    """ACC-07."""
    data = bytes(range(256)) * 1000

    async def work(cluster: Cluster) -> None:
        stream = await opened(cluster)
        await stream.write(data)
        read = b""
        while len(read) < len(data):
            read += await stream.read()
        assert read == data
        await stream.write_eof()
        await stream.close()

    run(echo, work)


def test_a_stream_ends_when_the_pod_closes_it() -> None:
    async def bye(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\0bye")
        await socket.send_bytes(b"\0")
        await socket.send_bytes(b"\7nobody's")

    async def work(cluster: Cluster) -> None:
        stream = await opened(cluster)
        assert [await stream.read(), await stream.read()] == [b"bye", b""]
        await stream.close()

    run(bye, work)


def test_a_refused_connection_in_the_pod_is_reported() -> None:
    async def refuse(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\1error forwarding port 2222: connection refused\n")

    async def work(cluster: Cluster) -> None:
        stream = await opened(cluster)
        with pytest.raises(WrongState, match="connection refused"):
            await stream.read()
        await stream.close()

    run(refuse, work)


def test_refusals_and_an_unreachable_api_server_are_distinguished() -> None:
    async def work(cluster: Cluster) -> None:
        with pytest.raises(ApiRefused) as caught:
            await opened(cluster)
        assert caught.value.status == 403
        cluster.host = "http://127.0.0.1:9"
        with pytest.raises(RunnerDown, match="cannot be reached"):
            await opened(cluster)

    run(None, work)


@pytest.mark.long
def test_a_pod_that_does_not_read_blocks_the_writer() -> None:
    async def work(cluster: Cluster) -> None:
        stream = await opened(cluster)
        written = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(3):
                while written < 256 * 1024 * 1024:
                    await stream.write(bytes(65_536))
                    written += 65_536
        assert 0 < written < 64 * 1024 * 1024
        stream._socket._response.close()  # type: ignore[attr-defined]

    async def deaf(socket: web.WebSocketResponse) -> None:
        await asyncio.sleep(5)

    run(deaf, work)
