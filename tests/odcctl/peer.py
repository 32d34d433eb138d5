"""The daemon side of the HTTP contract with answers a test writes down: real sockets, real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn, UnixStreamServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

NOW = "Wed, 01 Jul 2026 12:00:00 GMT"


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Reply:
    """body: an object (sent as JSON), or pieces of a stream, sent as they come. lose: hang up
    instead of answering, after the request was read whole."""

    body: Any = None
    status: int = 200
    pieces: Iterable[bytes] | None = None
    media_type: str = "application/json"
    lose: bool = False
    cut: bool = False
    """Hang up in the middle of a stream, without its end."""


Answer = Reply | Callable[[Request], Reply]


def problem(
    status: int, title: str, code: str, detail: str, hint: str | None = None, **more: Any
) -> Reply:
    body = {
        "type": f"/docs#{title}",
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
    }
    return Reply(
        {**body, "hint": hint, **more}, status=status, media_type="application/problem+json"
    )


class _Answers(ThreadingMixIn):
    """Answers METHOD PATH from what `on` registered; of several answers the last one stays."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: Any) -> None:
        self.requests: list[Request] = []
        self.answers: dict[tuple[str, str], list[Answer]] = {}
        self.arrived = threading.Condition()
        self.stopping = threading.Event()
        super().__init__(address, _Handler)

    def on(self, method: str, path: str, *answers: Answer | dict[str, Any]) -> None:
        self.answers[method, path] = [Reply(a) if isinstance(a, dict) else a for a in answers]

    def answer(self, request: Request) -> Reply:
        with self.arrived:
            self.requests.append(request)
            self.arrived.notify_all()
        waiting = self.answers.get((request.method, request.path))
        if waiting is None:
            return problem(
                404, "NotFound", "OD010", f"the test expects no {request.method} {request.path}"
            )
        chosen = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return chosen(request) if callable(chosen) else chosen

    def requests_to(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    def hold_on(self, method: str, path: str) -> threading.Event:
        """Never answer this; the event is set when it was asked."""
        requested = threading.Event()

        def answer(_: Request) -> Reply:
            requested.set()
            self.stopping.wait(600)
            return Reply(lose=True)

        self.on(method, path, answer)
        return requested

    def wait_for(self, path: str, count: int) -> None:
        """Until this path was asked for so many times."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.requests_to(path)) >= count, 120)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error here."""


class Peer(_Answers, UnixStreamServer):
    """On a socket."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))


class TcpPeer(_Answers, TCPServer):
    """On a port of its own choice."""

    allow_reuse_address = True

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__((host, 0))


@contextmanager
def serving(*peers: Any) -> Iterator[Any]:
    """The peers answer, each in a thread; gives the first."""
    threads = [
        threading.Thread(target=peer.serve_forever, kwargs={"poll_interval": 0.01})
        for peer in peers
    ]
    for thread in threads:
        thread.start()
    try:
        yield peers[0]
    finally:
        for peer, thread in zip(peers, threads, strict=True):
            peer.stopping.set()
            peer.shutdown()
            thread.join()
            peer.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def date_time_string(self, timestamp: float | None = None) -> str:
        return NOW

    def address_string(self) -> str:
        return "client"

    def log_message(self, format: str, *args: Any) -> None: ...

    def _serve(self) -> None:
        split = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = Request(
            self.command, unquote(split.path), dict(parse_qsl(split.query)),
            {name.lower(): value for name, value in self.headers.items()},
            _body(body, self.headers.get("content-type", "")),
        )  # fmt: skip
        reply = self.server.answer(request)
        self.close_connection = True
        if reply.lose:
            return
        self.send_response(reply.status)
        self.send_header("content-type", reply.media_type)
        if reply.pieces is None:
            data = json.dumps(reply.body).encode()
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            return
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in reply.pieces:
            if piece:  # An empty chunk would be the end.
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if not reply.cut:
            self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve


def event_stream(
    events: Iterable[dict[str, Any]], hold: threading.Event | None = None
) -> Iterator[bytes]:
    """Server-sent events; with hold, the stream stays open until it is set."""
    for event in events:
        yield f"id: {event['id']}\nevent: {event['kind']}\ndata: {json.dumps(event)}\n\n".encode()
    if hold is not None:
        hold.wait(600)


@dataclass
class Run:
    """How a run of odcctl ended."""

    code: int
    out: str
    err: str
    args: tuple[str, ...] = field(default=())


def _body(body: bytes, media_type: str) -> Any:
    if not body:
        return None
    return json.loads(body) if media_type == "application/json" else body
