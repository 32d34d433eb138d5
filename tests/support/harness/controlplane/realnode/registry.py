"""A registry without images: it refuses each pull in the way that the repository's name says.

`private/…` is denied, `down/…` answers 503, any other image does not exist.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket

PORT = 5000


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode(errors="replace")
            method, path, _ = head.split(" ", 2)
            status, code = _refusal(path)
            body = json.dumps({"errors": [{"code": code, "message": code.lower()}]}).encode()
            lines = [
                f"HTTP/1.1 {status}", "Content-Type: application/json",
                f"Content-Length: {len(body)}", "", "",
            ]  # fmt: skip
            writer.write("\r\n".join(lines).encode() + (b"" if method == "HEAD" else body))
            await writer.drain()
    writer.close()


def _refusal(path: str) -> tuple[str, str]:
    if path.startswith("/v2/private/"):
        return "403 Forbidden", "DENIED"
    if path.startswith("/v2/down/"):
        return "503 Service Unavailable", "UNAVAILABLE"
    return "404 Not Found", "MANIFEST_UNKNOWN"


async def serve(listener: socket.socket) -> None:
    await asyncio.start_server(_answer, sock=listener)
