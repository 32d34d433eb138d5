"""An HTTP client with almost no cost, so that the daemon is measured and not the client."""

from __future__ import annotations

import json
import selectors
import socket
import time
from pathlib import Path
from typing import Any


def request(method: str, path: str, body: object = None) -> bytes:
    """An HTTP/1.1 request as bytes, which can be sent many times."""
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: odc\r\nContent-Length: {len(data)}\r\n"
    if data:
        head += "Content-Type: application/json\r\n"
    return head.encode() + b"\r\n" + data


class Client:
    """One connection, kept open. It only reads bodies of a known length; its requests need no
    others."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self._received = bytearray()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The answer's JSON. Raises RuntimeError unless the status is 2xx."""
        return json.loads(self.exchange(request(method, path, body)))

    def exchange(self, message: bytes) -> bytes:
        self.socket.sendall(message)
        while (body := self.receive()) is None:
            pass
        return body

    def receive(self) -> bytes | None:
        """Read once; returns the body when the answer is complete."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the daemon closed the connection")
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._received[:end]).lower()
        at = head.find(b"content-length:")
        if at < 0:
            raise RuntimeError(f"an answer without a length: {head!r}")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(self._received) < end + 4 + length:
            return None
        body = bytes(self._received[end + 4 :])
        self._received.clear()
        if not head.startswith(b"http/1.1 2"):
            raise RuntimeError(f"refused: {body!r}")
        return body


def send_all(path: Path, messages: list[bytes], clients: int) -> tuple[float, float]:
    """Send each message once; each client sends the next as soon as it has an answer.

    Returns the time of the first request and of the last answer, by time.perf_counter().
    """
    queue = iter(messages)
    connections = [Client(path) for _ in range(clients)]
    with selectors.DefaultSelector() as selector:
        for client in connections:
            selector.register(client.socket, selectors.EVENT_READ, client)
        begin = time.perf_counter()
        busy = 0
        for client in connections:
            if (message := next(queue, None)) is not None:
                client.socket.sendall(message)
                busy += 1
        while busy:
            for key, _ in selector.select():
                if key.data.receive() is None:
                    continue
                if (message := next(queue, None)) is not None:
                    key.data.socket.sendall(message)
                else:
                    busy -= 1
        end = time.perf_counter()
    for client in connections:
        client.socket.close()
    return begin, end
