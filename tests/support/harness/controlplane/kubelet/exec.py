"""pods/exec over a WebSocket, as the API server passes it on to nodes that declare the feature."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

from tests.support.harness.controlplane.kubelet.process import Process

FEATURE = "ExtendWebSocketsToKubelet"
_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255


async def serve_exec(request: web.Request, process: Process) -> web.StreamResponse:
    """Runs the command inside the container's namespaces, as its user; no terminal."""
    socket = web.WebSocketResponse(protocols=_PROTOCOLS)
    await socket.prepare(request)
    entered = await asyncio.create_subprocess_exec(
        *_enter(process),
        *request.query.getall("command"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=process.spec["env"],
    )
    assert entered.stdin is not None
    if request.query.get("input", "") not in ("1", "true"):
        entered.stdin.close()
    feeding = asyncio.create_task(_feed(socket, entered.stdin))
    try:
        await asyncio.gather(
            _copy(entered.stdout, _STDOUT, socket.send_bytes),
            _copy(entered.stderr, _STDERR, socket.send_bytes),
        )
        status = json.dumps(_status(await entered.wait())).encode()
        await socket.send_bytes(bytes([_ERROR]) + status)
    except ConnectionError:
        entered.kill()
    finally:
        feeding.cancel()
        await socket.close()
    return socket


def _enter(process: Process) -> list[str]:
    spec = process.spec
    first = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
    who = ["--setuid", str(spec["uid"]), "--setgid", str(spec["gid"])]
    return ["nsenter", "--target", first, "--mount", "--uts", "--ipc", "--pid", "--root",
            f"--wdns={spec['cwd']}", *who, "--"]  # fmt: skip


async def _feed(socket: web.WebSocketResponse, stdin: asyncio.StreamWriter) -> None:
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == _STDIN and data and not stdin.is_closing():
            stdin.write(data)
            await stdin.drain()
        elif channel == _CLOSE and data[:1] == bytes([_STDIN]):
            stdin.close()


async def _copy(
    reader: asyncio.StreamReader | None, channel: int, send: Callable[[bytes], Awaitable[None]]
) -> None:
    assert reader is not None
    while data := await reader.read(1 << 14):
        await send(bytes([channel]) + data)


def _status(code: int) -> dict[str, Any]:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    shown = code if code > 0 else 128 - code
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {shown}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(shown)}]},
    }
