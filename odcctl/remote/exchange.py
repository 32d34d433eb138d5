"""One HTTP exchange over a socket of this machine, with what the interpreter has built in."""

from __future__ import annotations

import _socket

TYPE_CHECKING = False  # typing's costs more time than the rest of a command
if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER_TIMEOUT_S = 60
CHUNK = 1 << 18

AWAY = "Unable to contact slurm controller (connect failure)"
SILENT = "Socket timed out on send/recv operation"


class Trouble(Exception):
    """The exchange failed; str() is the cause in Slurm's words."""


class Lost(Trouble):
    """The answer ended too early: the daemon may or may not have acted."""


def exchange(paths: list[str], name: str, body: bytes, key: str) -> Iterator[bytes]:
    """One HTTP exchange over the first socket that accepts. Raises Trouble."""
    connection = connect(paths)
    head = (
        f"POST /v1/slurm/{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nIdempotency-Key: {key}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    try:
        connection.settimeout(ANSWER_TIMEOUT_S)
        try:  # noqa: SIM105 (contextlib costs 3 ms)
            connection.sendall(head.encode() + body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # a server that refuses a large body answers before all of it is sent
        received = b""
        while (at := received.find(b"\r\n\r\n")) < 0:
            received += _receive(connection)
        fields = received[:at].decode("latin-1").lower().split("\r\n")
        connection.settimeout(None)
        pieces = _body(connection, fields, received[at + 4 :])
        status = int(fields[0].split()[1])
        if status != 200:
            raise Trouble(problem(status, b"".join(pieces)))
        yield from pieces
    except TimeoutError:
        raise Lost(SILENT) from None
    except OSError as error:
        raise Lost(f"{AWAY}: {error.strerror}") from None
    finally:
        connection.close()


def connect(paths: list[str]) -> _socket.socket:
    for path in paths:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.settimeout(5)
        try:
            connection.connect(path)
        except OSError:
            connection.close()
            continue
        return connection
    raise Trouble(AWAY)


def _receive(connection: _socket.socket) -> bytes:
    data = connection.recv(CHUNK)
    if not data:
        raise Lost(AWAY)
    return data


def _body(connection: _socket.socket, fields: list[str], received: bytes) -> Iterator[bytes]:
    """The body of an answer whose head has arrived, in pieces."""
    length = next((int(f[15:]) for f in fields if f.startswith("content-length:")), None)
    if length is not None:
        while length > 0:
            piece = received[:length] or _receive(connection)
            received = b""
            length -= len(piece)
            yield piece
        return
    while True:
        while b"\r\n" not in received:
            received += _receive(connection)
        text, _, received = received.partition(b"\r\n")
        size = int(text.partition(b";")[0], 16)
        while len(received) < size + 2:
            received += _receive(connection)
        if size == 0:
            return
        yield received[:size]
        received = received[size + 2 :]


def problem(status: int, body: bytes) -> str:
    """The cause in an error of the API, with its hint."""
    import json

    try:
        answer = json.loads(body)
        detail = str(answer["detail"])
        hint = answer.get("hint")
    except (ValueError, KeyError, TypeError):
        detail, hint = f"the server answered with HTTP status {status}", None
    if status == 503:
        detail = f"Unable to contact slurm controller: {detail}"
    return f"{detail}\n  {hint}" if hint else detail
