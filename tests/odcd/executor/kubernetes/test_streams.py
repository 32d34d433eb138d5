"""Long-lived connections block nothing else: followed logs, watches, tunnels."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from odcd.executor.kubernetes.cluster import CONNECTIONS, Cluster

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
users: [{{name: u, user: {{token: t}}}}]
current-context: c
"""


async def follow(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"a line\n")
    await asyncio.Event().wait()
    return response


async def version(_: web.Request) -> web.Response:
    return web.Response(text="{}")


@pytest.mark.parametrize("streams", [CONNECTIONS + 16])
def test_streams_do_not_use_up_the_request_connections(tmp_path: Path, streams: int) -> None:
    """Before: a mass cancel followed the logs of all pods, and their deletes waited for those to
    end."""

    async def work() -> None:
        app = web.Application()
        app.router.add_get("/log", follow)
        app.router.add_get("/version", version)
        async with TestServer(app) as server, AsyncExitStack() as opened:
            kubeconfig = tmp_path / "config"
            kubeconfig.write_text(KUBECONFIG.format(server=server.make_url("")))
            cluster = await Cluster.connect(kubeconfig)
            opened.push_async_callback(cluster.close)
            async with asyncio.timeout(60):
                for _ in range(streams):
                    stream = await opened.enter_async_context(cluster.stream("/log"))
                    assert await stream.content.readline() == b"a line\n"
                assert await cluster.get("/version") == b"{}"

    asyncio.run(work())
