"""GitHub as far as odc asks it: lists of keys, with faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBBAPaPFcbYjoonV+zqzpaxMvo1Bt9nSKZiZGGRuIvMI"


@dataclass
class Github:
    """answers: by user, the body of <user>.keys, or a status. Others are not known."""

    url: str = ""
    answers: dict[str, str | bytes | int] = field(default_factory=dict)
    delay_s: float = 0.0
    requested: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        self.requested.append(name)
        await asyncio.sleep(self.delay_s)
        keys = self.answers.get(name, 404)
        if isinstance(keys, int):
            return web.Response(status=keys, headers={"Location": "/elsewhere.keys"})
        return web.Response(body=keys if isinstance(keys, bytes) else keys.encode())


@asynccontextmanager
async def a_github(**answers: str | bytes | int) -> AsyncGenerator[Github]:
    github = Github(answers=dict(answers))
    app = web.Application()
    app.router.add_get("/{name}.keys", github.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        github.url = f"http://127.0.0.1:{port}"
        yield github
    finally:
        await runner.cleanup()
