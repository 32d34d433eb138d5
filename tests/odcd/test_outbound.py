"""Requests to other servers: sent once, limited, and only to the named server."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme
import uvloop

from odcd.outbound import Answer, AnswerTooLarge, HungUp, OutboundFailed, OutboundHttp

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD_END = b"\r\n\r\n"


class Server:
    """Answers each connection by `serve`, after it has read the request's head."""

    def __init__(self, serve: bytes | Serve) -> None:
        self._serve = serve
        self.requests: list[bytes] = []
        self.open = 0
        self.max_open = 0
        self.closed = asyncio.Event()
        self.url = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.max_open = max(self.max_open, self.open)
        try:
            self.requests.append(await reader.readuntil(HEAD_END))
            if isinstance(self._serve, bytes):
                writer.write(self._serve)
                await writer.drain()
            else:
                await self._serve(reader, writer)
        except (OSError, EOFError):
            pass
        finally:
            self.open -= 1
            writer.transport.close()
            self.closed.set()


@asynccontextmanager
async def serving(
    serve: bytes | Serve, context: ssl.SSLContext | None = None
) -> AsyncGenerator[Server]:
    handler = Server(serve)
    async with await asyncio.start_server(handler, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        handler.url = f"{'https' if context else 'http'}://127.0.0.1:{port}"
        yield handler


@asynccontextmanager
async def a_client(server: Server, **fields: Any) -> AsyncGenerator[OutboundHttp]:
    client = OutboundHttp(server.url, **{"timeout_s": 20.0, "max_bytes": 1000, **fields})
    try:
        yield client
    finally:
        await client.close()


def run(work: Awaitable[Any]) -> Any:
    """On the event loop that the daemon uses."""

    async def whole() -> Any:
        return await work

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(whole())


def get(serve: bytes | Serve, target: str = "/", **fields: Any) -> Answer:
    async def work() -> Answer:
        async with serving(serve) as server, a_client(server, **fields) as client:
            return await client.get(target)

    return run(work())


def http(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + HEAD_END + body


async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


CODE = """
import asyncio, sys, uvloop
from odcd import outbound
assert "aiohttp" not in sys.modules
outbound.load()

class Refuse:
    def find_spec(self, name, *_):
        raise ImportError(f"{name} is imported too late")

sys.meta_path.insert(0, Refuse())

async def work():
    for url, expected in zip(sys.argv[1:], ("200", "cannot be trusted", "cannot be reached")):
        http = outbound.OutboundHttp(url, timeout_s=20, max_bytes=1000, use_proxy=True)
        try:
            found = str((await http.get("/", {"Accept": "text/plain"})).status)
        except outbound.OutboundFailed as error:
            found = str(error)
        assert expected in found, found
        await http.close()

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(work())
"""


def test_requests_import_nothing_after_load() -> None:
    """The daemon has dropped root by then, and root's Python may not be readable."""

    async def work() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
        async with serving(http(b"ok")) as plain, serving(http(b"ok"), context) as secure:
            url = plain.url.replace("127.0.0.1", "localhost")
            done = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-c", CODE, url, secure.url, "http://nowhere.invalid"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        assert done.returncode == 0, done.stderr

    run(work())


def test_a_daemon_that_asks_no_other_server_does_not_import_aiohttp() -> None:
    code = "import sys, odcd.__main__, odcd.daemon, odcd.app; print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_target_is_sent_as_it_is() -> None:
    """A signature covers it."""
    target = "/?Action=A&X-Amz-Credential=a%2Fb%2fc&x=%7E~+%20,(*)"

    async def work() -> None:
        async with serving(http(b"ok")) as server, a_client(server) as client:
            await client.get(target, {"X-Odc-Server-Id": "https://odc.example:8443"})
            head = server.requests[0].decode()
            assert head.startswith(f"GET {target} HTTP/1.1\r\n")
            assert f"\r\nHost: {server.url.removeprefix('http://')}\r\n" in head
            assert "\r\nX-Odc-Server-Id: https://odc.example:8443\r\n" in head
            assert "\r\nUser-Agent: odcd\r\n" in head

    run(work())


@pytest.mark.parametrize(
    "answer",
    [
        http(b"ok"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nok",
        b"HTTP/1.1 100 Continue\r\n\r\n" + http(b"ok"),
    ],
    ids=["length", "chunked", "until the end", "continue"],
)
def test_an_answer_is_read_whole(answer: bytes) -> None:
    assert get(answer) == Answer(status=200, body=b"ok")


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\nContent-", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nok"],
)  # fmt: skip
def test_a_request_is_sent_once_even_if_the_server_hangs_up(answer: bytes) -> None:
    async def work() -> None:
        async with serving(answer) as server, a_client(server) as client:
            with pytest.raises(HungUp, match="closed the connection in the middle"):
                await client.get("/")
            assert len(server.requests) == 1

    run(work())


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 5000 + b"\r\n",
     http(b"", "a: " + "b" * 100_000), http(b"", "Upgrade: x", "Connection: upgrade",
                                             status="101 Switching Protocols")],
    ids=["ssh", "many headers", "long header", "upgrade"],
)  # fmt: skip
def test_an_answer_that_is_not_http_is_an_error(answer: bytes) -> None:
    with pytest.raises(OutboundFailed, match="an answer that is not HTTP"):
        get(answer)


def test_the_size_of_an_answer_is_limited() -> None:
    """Also of an endless one; nothing is decompressed, however small it was sent."""

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 1000)
            await writer.drain()

    with pytest.raises(AnswerTooLarge, match="answered with more than 1000 bytes"):
        get(endless)
    with pytest.raises(AnswerTooLarge, match="answered with more than 64 KiB"):
        get(http(b"x" * 65_537), max_bytes=65_536)
    assert len(get(http(b"x" * 65_536), max_bytes=65_536).body) == 65_536
    bomb = gzip.compress(b"x" * 100_000)
    assert get(http(bomb, "Content-Encoding: gzip")).body == bomb


def test_a_request_has_a_time_limit_with_all_that_belongs_to_it() -> None:
    """Waiting for a connection, for an answer, and for an answer that arrives slowly."""

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    for serve in (hang, drip):
        with pytest.raises(OutboundFailed, match=r"did not answer within 0\.3 s"):
            get(serve, timeout_s=0.3)

    async def work() -> None:
        async with serving(hang) as server, a_client(server, at_once=1, timeout_s=0.3) as client:
            both = await asyncio.gather(client.get("/a"), client.get("/b"), return_exceptions=True)
            assert [str(error) for error in both] == ["did not answer within 0.3 s"] * 2

    run(work())


def test_more_requests_than_allowed_wait() -> None:
    async def slow(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.02)
        writer.write(http(b"ok"))
        await writer.drain()

    async def work() -> None:
        async with serving(slow) as server, a_client(server, at_once=2) as client:
            answers = await asyncio.gather(*(client.get(f"/{n}") for n in range(8)))
            assert [answer.body for answer in answers] == [b"ok"] * 8
            assert server.max_open <= 2

    run(work())


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_nothing_stays_open_after_a_request_was_given_up(how: str) -> None:
    async def work() -> None:
        async with serving(hang) as server, a_client(server) as client:
            asking = asyncio.create_task(client.get("/"))
            while not server.requests:
                await asyncio.sleep(0.01)
            if how == "cancel":
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking
            else:
                await client.close()
                with pytest.raises(OutboundFailed):
                    await asking
            await asyncio.wait_for(server.closed.wait(), 20)

    run(work())


def test_redirects_are_not_followed_and_cookies_not_sent() -> None:
    async def work() -> None:
        moved = http(b"", "Location: /elsewhere", "Set-Cookie: a=b", status="302 Found")
        async with serving(moved) as server, a_client(server) as client:
            for _ in range(2):
                assert (await client.get("/")).status == 302
            assert len(server.requests) == 2
            assert not any(b"ookie" in request for request in server.requests)

    run(work())


@pytest.mark.parametrize("use_proxy", [False, True])
def test_a_proxy_is_used_only_where_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch, use_proxy: bool
) -> None:
    async def work() -> None:
        async with serving(http(b"direct")) as server, serving(http(b"proxy")) as proxy:
            monkeypatch.setenv("http_proxy", proxy.url)
            monkeypatch.delenv("no_proxy", raising=False)
            monkeypatch.delenv("NO_PROXY", raising=False)
            async with a_client(server, use_proxy=use_proxy) as client:
                assert (await client.get("/")).body == (b"proxy" if use_proxy else b"direct")

    run(work())


def test_the_certificate_must_be_of_this_server_and_of_a_known_authority() -> None:
    authority = trustme.CA()
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)

    async def work(name: str, trust: ssl.SSLContext | None) -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        async with (
            serving(http(b"ok"), context) as server,
            a_client(server, context=trust) as client,
        ):
            return (await client.get("/")).body

    assert run(work("127.0.0.1", trusted)) == b"ok"
    for name, trust in (("127.0.0.1", None), ("127.0.0.2", trusted)):
        with pytest.raises(OutboundFailed, match="cannot be trusted: CERTIFICATE_VERIFY_FAILED"):
            run(work(name, trust))


def test_an_unreachable_server_is_reported_with_the_reason() -> None:
    async def work(url: str) -> None:
        client = OutboundHttp(url, timeout_s=20, max_bytes=10)
        try:
            await client.get("/")
        finally:
            await client.close()

    with pytest.raises(OutboundFailed, match=r"cannot be reached: .*[Cc]onnect"):
        run(work("http://127.0.0.1:9"))
    with pytest.raises(OutboundFailed, match=r"cannot be reached: .*[Nn]ame"):
        run(work("http://nowhere.invalid"))
