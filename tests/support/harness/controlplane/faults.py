"""The fault proxy's process: python -m tests.support.harness.controlplane.faults CONFIG

CONFIG is JSON: kubeconfig (the API server behind), port, control_port, cert, key, seed. It passes
requests and credentials on and spoils what its rules say. Rules come as JSON to the control port;
proxy.py has their names.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.harness.controlplane.api import credentials

_LONGEST_HEAD = 1 << 20
_REASONS = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}
_WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Message:
    """The head of a request or an answer, and how long its body is."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        first, *lines = raw.decode("latin-1").split("\r\n")
        self.fields = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines if line)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        self.chunked = "chunked" in self.headers.get("transfer-encoding", "")
        self.length = int(self.headers.get("content-length", 0))

    @classmethod
    async def read(cls, reader: asyncio.StreamReader) -> Message:
        return cls(await reader.readuntil(b"\r\n\r\n"))

    async def body(self, reader: asyncio.StreamReader) -> list[bytes]:
        """All of it, raw."""
        if not self.chunked:
            return [await reader.readexactly(self.length)]
        pieces: list[bytes] = []
        while piece := await _chunk(reader):
            pieces.append(piece)
            if piece.startswith(b"0\r\n"):
                break
        return pieces


async def _chunk(reader: asyncio.StreamReader) -> bytes:
    """One chunk with its frame; the last one starts with 0."""
    size = await reader.readuntil(b"\r\n")
    return size + await reader.readexactly(int(size.split(b";")[0], 16) + 2)


class Proxy:
    """Counts its actions by name; the seed determines its choices."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        url, _, self._tls = credentials(Path(config["kubeconfig"]))
        self._host, self._port = urlsplit(url).hostname, urlsplit(url).port
        self._listen_on: int = config["port"]
        self._served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._served.load_cert_chain(config["cert"], config["key"])
        self._chance = random.Random(config["seed"])
        self.rules: dict[str, float] = {}
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.counts: Counter[str] = Counter()

    async def listen(self) -> None:
        self._server = await asyncio.start_server(
            self._client, "127.0.0.1", self._listen_on, ssl=self._served, limit=_LONGEST_HEAD
        )

    # Faults.

    def _draw(self, rule: str) -> bool:
        share = self.rules.get(rule, 0.0)
        if share and self._chance.random() < share:
            self.counts[rule] += 1
            return True
        return False

    def _refusal(self, method: str, streamed: bool) -> int:
        """The status code that the proxy answers itself, or 0."""
        if streamed:
            return 429 if self._draw("share_429") else 0
        for code in (429, 500):
            if self._draw(f"share_{code}"):
                return code
        return 409 if method in _WRITES and self._draw("share_409") else 0

    def cut(self) -> None:
        """Cut every open connection at once."""
        self.counts["cut"] += len(self._writers)
        for writer in [*self._writers]:
            writer.transport.abort()

    async def refuse(self, for_s: float) -> None:
        """Refuse connections for a while; open connections are cut."""
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.sleep(for_s)
        await self.listen()

    # Traffic.

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            upstream = await asyncio.open_connection(
                self._host, self._port, ssl=self._tls, limit=_LONGEST_HEAD
            )
            while await self._exchange(reader, writer, *upstream):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # one of the two disconnected: the other sees its connection break
        finally:
            self._writers.discard(writer)
            writer.transport.abort()
            if upstream is not None:
                upstream[1].transport.abort()

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> bool:
        """One request and its answer; returns whether the connection stays open."""
        request = await Message.read(reader)
        method, target = request.fields[0], request.fields[1]
        body = await request.body(reader)
        query = parse_qs(urlsplit(target).query)
        watch = query.get("watch", [""])[0] in ("true", "1")
        self.counts["watches" if watch else "requests"] += 1
        if code := self._refusal(method, watch or "follow" in query):
            writer.write(_answer(code, f"{method} {target}"))
            await writer.drain()
            return True
        delay_s = self.rules.get("delay_s", 0.0)
        if delay_s:
            await asyncio.sleep(delay_s * self._chance.random() * 2)
        up_writer.writelines([request.raw, *body])
        await up_writer.drain()
        answer = await Message.read(up_reader)
        if not watch and method in _WRITES and self._draw("share_lost"):
            return False
        writer.write(answer.raw)
        if answer.fields[1] == "101":
            await asyncio.gather(_pipe(reader, up_writer), _pipe(up_reader, writer))
            return False
        if method == "HEAD" or answer.fields[1] in ("204", "304"):
            await writer.drain()
        elif watch:
            return await self._stream(answer, reader, up_reader, writer)
        else:
            await _relay(answer, up_reader, writer)
        return answer.headers.get("connection", "").lower() != "close"

    async def _stream(
        self,
        answer: Message,
        reader: asyncio.StreamReader,
        up_reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """A watch, perhaps cut or stalled after about the rule's time."""
        relay = asyncio.create_task(_relay(answer, up_reader, writer))
        waits = {
            name: self.rules[name] * self._chance.random() * 2
            for name in ("drop_watch_s", "stall_watch_s")
            if self.rules.get(name)
        }
        first = min(waits, key=lambda name: waits[name], default="")
        gone = asyncio.create_task(reader.read(1))  # a client sends nothing during a watch
        await asyncio.wait(
            {relay, gone}, timeout=waits.get(first), return_when=asyncio.FIRST_COMPLETED
        )
        if relay.done():
            gone.cancel()
            relay.result()
            return True
        relay.cancel()
        if not gone.done():
            self.counts[first] += 1
            if first == "stall_watch_s":
                await gone
        gone.cancel()
        return False


async def _relay(
    answer: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    if answer.chunked:
        while True:
            piece = await _chunk(reader)
            writer.write(piece)
            await writer.drain()
            if piece.startswith(b"0\r\n"):
                return
    writer.writelines(await answer.body(reader))
    await writer.drain()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.write_eof() if writer.can_write_eof() else writer.close()


def _answer(code: int, what: str) -> bytes:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"injected by the fault proxy: {what}",
        "reason": _REASONS[code],
        "code": code,
    }
    body = json.dumps(status).encode()
    head = [f"HTTP/1.1 {code} {_REASONS[code]}", "Content-Type: application/json"]
    head += ["Retry-After: 1"] if code == 429 else []
    head += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(head).encode() + body


async def _control(
    proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """One JSON line in, one out: {"rules": {...}}, {"cut": true}, {"refuse": seconds}, {}."""
    command = json.loads(await reader.readline())
    if "rules" in command:
        proxy.rules = command["rules"]
    if "cut" in command:
        proxy.cut()
    if "refuse" in command:
        await proxy.refuse(command["refuse"])
    writer.write(json.dumps(proxy.counts).encode() + b"\n")
    await writer.drain()
    writer.close()


async def _main(config: Mapping[str, Any]) -> None:
    proxy = Proxy(config)
    await proxy.listen()
    control = await asyncio.start_server(
        lambda reader, writer: _control(proxy, reader, writer), "127.0.0.1", config["control_port"]
    )
    await control.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(json.loads(Path(sys.argv[1]).read_text())))
