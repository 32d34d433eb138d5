"""A request that is too large, or that never arrives, costs the daemon almost nothing."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from odcd.front.rules import Rules
from tests.attack.doors import Opened, opened, received, status
from tests.attack.front import connected, get, limited, metric, tcp
from tests.support.harness.daemon import new_odc, wait

MIB = 1024 * 1024
SOON = Rules(head_s=0.3, body_s=0.3)
START = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /x HTTP/1.1\r\nHost: localhost\r\n"
UPGRADE = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def sent(place: tuple[str, int] | str, *pieces: bytes) -> bytes:
    """The answer to a request sent in pieces; whether all of it was read does not matter."""
    with connected(place) as connection:
        with suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
        return received(connection)


def ends(door: Opened, *pieces: bytes) -> bytes:
    """All data of a connection until the daemon closes it; nothing else is sent."""
    with connected(door.place) as connection:
        # The daemon may have answered and closed before the last piece.
        with suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
        return received(connection)


def memory_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


@pytest.mark.long
def test_endless_headers_use_little_memory_and_time() -> None:
    with new_odc() as odc, limited(odc, environment={"ODC_LISTEN": "127.0.0.1:0"}) as pid:
        place, before = tcp(odc), memory_mib(pid)
        many = b"".join(b"x-%d: %s\r\n" % (n, b"a" * 1000) for n in range(32 * 1024))
        assert status(sent(place, START, many, b"\r\n")) == 431
        assert status(sent(place, START, b"x: " + b"a" * 64 * MIB, b"\r\n\r\n")) == 431
        assert memory_mib(pid) < before + 64
        assert metric(str(odc.home / "odcd.sock"), "odcd_http_requests_rejected_total") == 2


@pytest.mark.long
def test_a_daemon_closes_connections_that_never_send_a_request() -> None:
    with new_odc() as odc, limited(odc, environment={"ODC_LISTEN": "127.0.0.1:0"}):
        place = tcp(odc)
        with connected(place) as silent, connected(place) as slow:
            slow.settimeout(0.5)
            slow.sendall(START)
            answer = b""
            deadline = time.monotonic() + 60
            while not answer and time.monotonic() < deadline:
                with suppress(TimeoutError):
                    answer = slow.recv(65_536)
                    break
                slow.sendall(b"x: y\r\n")
            assert status(answer) == 408
            assert status(received(silent)) == 408
        assert get(place)[0] == 200


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((START, b"x: y\r\n" * 99, b"\r\n"), 200),
        ((START, b"x: y\r\n" * 100, b"\r\n"), 431),
        ((START, b"x: " + b"a" * 40_000, b"\r\n\r\n"), 200),
        ((START, b"x: " + b"a" * 100_000, b"\r\n\r\n"), 431),
        ((START, b"a" * 100_000, b": x\r\n\r\n"), 431),
        ((b"GET /" + b"a" * 8_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",), 200),
        ((b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",), 414),
        ((b"GET /" + b"a" * 300_000,), 414),
        ((b"\r\n" * 100_000,), 431),
        ((b"\x16\x03\x01",), 400),
    ],
)
def test_the_head_of_a_request_is_bounded(
    folder: Path, pieces: tuple[bytes, ...], expected: int
) -> None:
    with opened(folder, rules=Rules(head_s=60)) as door:
        assert status(ends(door, *pieces) if expected != 200 else sent(door.place, *pieces)) == (
            expected
        )
        assert len(door.seen) == (expected == 200)


@pytest.mark.parametrize("kib", [1, 16, 17, 30, 63, 64, 65, 200])
def test_a_request_that_comes_at_once_is_read_once(folder: Path, kib: int) -> None:
    """Before: the end of a body between 16 and 64 KiB was read again as a separate request."""
    with opened(folder) as door, connected(door.place) as connection:
        size = kib * 1024
        body = (b"x\r\n" + START + b"\r\n").ljust(64)
        request = POST + b"Content-Length: %d\r\n\r\n" % size + body * (size // 64)
        for number in (1, 2):
            connection.sendall(request)
            answer = b""
            while not answer.endswith(b"\r\n\r\n%d" % size):
                data = connection.recv(65_536)
                assert data, answer
                answer += data
            assert len(door.seen) == number


def test_a_body_of_any_size_is_read_whole(folder: Path) -> None:
    with opened(folder) as door:
        size = 5 * MIB
        body = b"Content-Length: %d\r\n\r\n" % size + b"x" * size
        assert sent(door.place, POST + body).endswith(b"\r\n\r\n%d" % size)
        chunks = b"".join(b"%x\r\n%s\r\n" % (n, b"y" * n) for n in range(1, 1000))
        answer = sent(door.place, CHUNKED + chunks + b"0\r\n\r\n")
        assert answer.endswith(b"\r\n\r\n%d" % sum(range(1, 1000)))


@pytest.mark.parametrize(
    "rest",
    [
        b"1\r\nx\r\n0\r\nx: " + b"a" * 400_000,
        b"1\r\nx\r\n0\r\n" + b"x: y\r\n" * 100,
        b"1;" + b"a" * 400_000,
    ],
)
def test_trailers_and_extensions_of_chunks_are_bounded(folder: Path, rest: bytes) -> None:
    with opened(folder, rules=Rules(head_s=60, body_s=60)) as door:
        assert status(ends(door, CHUNKED, rest)) == 431


def test_a_trailer_is_not_treated_as_a_header(folder: Path) -> None:
    with opened(folder) as door:
        trailer = b"0\r\nAuthorization: Bearer stolen\r\n\r\n"
        assert status(sent(door.place, CHUNKED + trailer)) == 200
        assert b"authorization" not in dict(door.seen[0]["headers"])


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ((), "head_late"),
        ((b"\r\n",), "head_late"),
        ((START,), "head_late"),
        ((START + b"\r\n", START), "head_late"),
        ((POST + b"Content-Length: 10\r\n\r\n12345",), "body_slow"),
        ((CHUNKED + b"5\r\n12345\r\n",), "body_slow"),
    ],
)
def test_an_incomplete_request_times_out(
    folder: Path, pieces: tuple[bytes, ...], reason: str
) -> None:
    with opened(folder, rules=SOON) as door:
        assert status(ends(door, *pieces)) == 408
        assert dict(door.counts.rejected) == {reason: 1}
        wait(lambda: door.counts.open == 0 or None, lambda: str(door.counts))


@pytest.mark.parametrize("more", [b"\r\n", b"G"])
def test_a_later_incomplete_request_on_a_connection_times_out_too(
    folder: Path, more: bytes
) -> None:
    with opened(folder, rules=SOON) as door, connected(door.place) as connection:
        connection.sendall(START + b"\r\n")
        assert status(connection.recv(65_536)) == 200
        connection.sendall(more)
        assert status(received(connection)) == 408


@pytest.mark.long
def test_a_client_that_has_its_answer_may_wait(folder: Path) -> None:
    with opened(folder, rules=SOON) as door, connected(door.place) as connection:
        for _ in range(2):
            connection.sendall(START + b"\r\n")
            assert status(connection.recv(65_536)) == 200
            time.sleep(1)  # three times as long as a head may take
        assert not door.counts.rejected


def test_requests_that_wait_for_an_answer_are_bounded(folder: Path) -> None:
    with opened(folder, rules=Rules(head_s=60, body_s=60)) as door:
        first = POST + b"Content-Length: 1\r\n\r\n"
        answer = ends(door, first + b"x" + (START + b"\r\n") * 1000)
        assert status(answer) == 400
        assert door.counts.rejected["malformed"] == 1


@pytest.mark.parametrize(
    "request_",
    [
        POST + UPGRADE + b"\r\n",
        POST + UPGRADE + b"Content-Length: 5\r\n\r\n",
        START + UPGRADE + b"Content-Length: 5\r\n\r\n12345",
        START + UPGRADE + b"Transfer-Encoding: chunked\r\n\r\n",
        START + UPGRADE + b"x: " + b"a" * 10_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: x\r\n" + UPGRADE + b"\r\n",
    ],
)
def test_a_handshake_that_cannot_be_answered_is_refused(folder: Path, request_: bytes) -> None:
    """Before: the connection stayed open, without an answer and without a limit."""
    with opened(folder, rules=Rules(head_s=60, body_s=60)) as door:
        assert status(ends(door, request_)) == 400
        assert dict(door.counts.rejected) == {"malformed": 1}
        assert not door.seen
        wait(lambda: door.counts.open == 0 or None, lambda: str(door.counts))


def test_a_handshake_is_answered_in_time_or_closed(folder: Path) -> None:
    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        while scope["type"] == "websocket" and (await receive())["type"] != "websocket.disconnect":
            pass

    with opened(folder, rules=Rules(handshake_s=0.3), app=never) as door:
        assert status(ends(door, START + UPGRADE + b"\r\n")) == 408
        assert dict(door.counts.rejected) == {"head_late": 1}


def test_a_handshake_does_not_overtake_an_answer(folder: Path) -> None:
    """Before: the handler of the first request was never informed that the client had
    disconnected."""
    gone = threading.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    with opened(folder, app=slow) as door:
        assert status(ends(door, START + b"\r\n" + START + UPGRADE + b"\r\n")) == 400
        assert gone.wait(30)


def test_a_websocket_that_is_open_may_be_silent(folder: Path) -> None:
    async def accepts(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass

    rules = Rules(head_s=0.1, body_s=0.1, handshake_s=0.1)
    with opened(folder, rules=rules, app=accepts) as door, connected(door.place) as connection:
        connection.sendall(START + UPGRADE + b"\r\n")
        assert status(connection.recv(65_536)) == 101
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        assert not door.counts.rejected
