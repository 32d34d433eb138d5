"""One HTTP/1.1 exchange over a connected socket.

The parser is httptools', the daemon's own: http.client costs 30 ms of imports on every command.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import httptools


class LostAnswer(Exception):
    """The connection ended before the answer did: the daemon may or may not have acted."""


class Incoming:
    """An answer as far as it has arrived; of any kind of connection."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.has_head = False
        self.is_whole = False
        self._chunks: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)

    @property
    def status(self) -> int:
        return self._parser.get_status_code()

    @property
    def has_body(self) -> bool:
        return bool(self._chunks)

    def take_body(self) -> bytes:
        """The part of the body that has arrived since the last call."""
        pieces, self._chunks = self._chunks, []
        return b"".join(pieces)

    def feed(self, data: bytes) -> None:
        """Parse what arrived; b"" is the end of the connection. Raises LostAnswer."""
        if data:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserError as error:
                # A signal arrived in a callback: the parser hid its exception behind its own error.
                if error.__context__ and not isinstance(error.__context__, Exception):
                    raise error.__context__ from None
                if self.is_whole:
                    return  # The answer is complete; ignore the rest.
                raise LostAnswer(f"not an HTTP answer: {error}") from error
        elif self.has_head and not self.headers.keys() & {"content-length", "transfer-encoding"}:
            self.is_whole = True
        else:
            raise LostAnswer("the daemon closed the connection")

    # Called by the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        self.is_whole = True


class Answer(Incoming):
    """An answer whose head has arrived; the body is read on demand, as it arrives."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        try:
            while not self.has_head:
                self._receive()
        except BaseException:
            self.close()
            raise

    def body(self) -> bytes:
        return b"".join(self)

    def json(self) -> Any:
        body = self.body()
        try:
            return json.loads(body)
        except ValueError as error:
            raise LostAnswer(f"the answer is not JSON: {body[:80]!r}") from error

    def __iter__(self) -> Iterator[bytes]:
        """The body in pieces, as they arrive; closes at the end."""
        try:
            while (piece := self.read()) != b"":
                if piece is not None:
                    yield piece
        finally:
            self.close()

    def read(self, timeout_s: float | None = None) -> bytes | None:
        """The next piece; b"" at the end; None if nothing arrived within timeout_s."""
        before = self._connection.gettimeout()
        if timeout_s is not None:
            self._connection.settimeout(max(timeout_s, 0.001))
        try:
            while not self.has_body and not self.is_whole:
                self._receive()
        except TimeoutError:
            if timeout_s is None:
                raise LostAnswer("the daemon stopped sending") from None
            return None
        finally:
            if timeout_s is not None:
                self._connection.settimeout(before)
        return self.take_body()

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        self._connection.close()

    def _receive(self) -> None:
        try:
            data = self._connection.recv(262_144)
        except TimeoutError:
            raise
        except OSError as error:
            raise LostAnswer(str(error)) from error
        self.feed(data)


def exchange(
    connection: socket.socket,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
) -> Answer:
    """Send one request and wait for the head of its answer. Raises LostAnswer."""
    try:
        connection.sendall(encoded(method, target, headers, body))
    except (BrokenPipeError, ConnectionResetError):
        pass  # A server that refuses a large body answers and closes before all of it is sent.
    except OSError as error:
        connection.close()
        raise LostAnswer(str(error)) from error
    except BaseException:
        connection.close()
        raise
    try:
        return Answer(connection)
    except TimeoutError:
        raise LostAnswer("the daemon did not answer in time") from None


def encoded(
    method: str, target: str, headers: Mapping[str, str], body: bytes | None = None
) -> bytes:
    """The bytes of a request; the connection ends after its answer."""
    lines = [f"{method} {target} HTTP/1.1", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines += [] if "Content-Type" in headers else ["Content-Type: application/json"]
        lines += [f"Content-Length: {len(body)}"]
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head + (body or b"")
