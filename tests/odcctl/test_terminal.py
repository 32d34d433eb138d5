"""attach shows a job's terminal in ours, and gives ours back."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, unix_serve

from odcctl.terminal import Keys

Handler = Callable[[ServerConnection], None]

IN_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "odcctl", *sys.argv[1:]])
"""


@contextmanager
def attaching(path: Path, handler: Handler, refuse: Handler | None = None) -> Iterator[Server]:
    """The daemon's side of /attach."""

    def process(connection: ServerConnection, request: Request) -> Response | None:
        assert request.path == "/v1/jobs/7/attach"
        if refuse is None:
            return None
        body = {"title": "WrongState", "code": "OD012", "detail": "job 7 has no terminal"}
        return connection.respond(409, json.dumps(body))

    with unix_serve(handler, str(path), process_request=process, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Terminal:
    """odcctl in a terminal of its own."""

    def __init__(
        self, environment: dict[str, str], *argv: str, rows: int = 24, cols: int = 100,
        term: str = "xterm",
    ) -> None:  # fmt: skip
        self.master, slave = pty.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            [sys.executable, "-c", IN_TERMINAL, *argv],
            env={k: v for k, v in environment.items() if k != "COLUMNS"} | {"TERM": term},
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        self.slave = slave
        self.seen = b""

    def resize(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def until(self, text: bytes) -> bytes:
        """The screen after the text written since the last call."""
        limit = time.monotonic() + 120
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], limit - time.monotonic())
            assert ready, self.seen
            self.seen += os.read(self.master, 65536)
        shown, self.seen = self.seen, b""
        return shown

    def end(self) -> int:
        code = self.process.wait(120)
        assert termios.tcgetattr(self.slave) == self.before
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(environment: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_terminal(*argv: str, **size: Any) -> Terminal:
        opened.append(Terminal(environment, *argv, **size))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


def test_keys_sizes_and_output_pass_through_and_the_code_comes_back(
    home: Path, terminal: Callable[..., Terminal]
) -> None:
    got: list[str | bytes] = []

    def job(connection: ServerConnection) -> None:
        got.append(connection.recv())
        connection.send(b"\x1b[1m$ ")
        for _ in range(3):
            got.append(connection.recv())
            connection.send(b"ok\r\n")
        connection.send(json.dumps({"exit_code": 3, "signal": None}))

    with attaching(home / "odcd.sock", job):
        shell = terminal("attach", "7", rows=30, cols=90)
        assert b"attached to job 7" in shell.until(b"\x1b[1m$ ")
        shell.type(b"\x03")  # Ctrl-C is the job's.
        shell.until(b"ok\r\n")
        shell.resize(40, 120)
        shell.until(b"ok\r\n")
        shell.type(b"exit 3\r")
        shell.until(b"ok\r\n")
        assert shell.end() == 3
    assert [got[0], got[2]] == ['{"resize": [30, 90]}', '{"resize": [40, 120]}']
    assert [got[1], got[3]] == [b"\x03", b"exit 3\r"]


def test_detaching_leaves_the_job_and_restores_the_terminal(
    home: Path, terminal: Callable[..., Terminal]
) -> None:
    left = threading.Event()

    def job(connection: ServerConnection) -> None:
        connection.send(b"$ ")
        for _ in connection:
            pass
        left.set()

    with attaching(home / "odcd.sock", job):
        shell = terminal("attach", "7")
        shell.until(b"$ ")
        shell.type(b"\x1dd")
        assert b"job 7 keeps running" in shell.until(b"keeps running\r\n")
        assert shell.end() == 0
        assert left.wait(60)


@pytest.mark.parametrize(
    ("last", "code"),
    [({"exit_code": None, "signal": 9}, 137), ({"exit_code": None, "signal": None}, 4)],
)
def test_attach_exits_as_the_job_did(
    home: Path, terminal: Callable[..., Terminal], last: dict[str, int | None], code: int
) -> None:
    with attaching(home / "odcd.sock", lambda connection: connection.send(json.dumps(last))):
        assert terminal("attach", "7").end() == code


def test_a_terminal_that_is_lost_is_3(home: Path, terminal: Callable[..., Terminal]) -> None:
    with attaching(home / "odcd.sock", lambda connection: connection.close(1012)):
        shell = terminal("attach", "7")
        shell.until(b"odcctl: the connection to the terminal was lost; the job continues\r\n")
        assert shell.end() == 3


def test_a_refused_attach_tells_why(home: Path, terminal: Callable[..., Terminal]) -> None:
    with attaching(home / "odcd.sock", lambda _: None, refuse=lambda _: None):
        shell = terminal("attach", "7")
        output = shell.until(b"odcctl: not attached: job 7 has no terminal (OD012)\r\n")
        assert b"attached to" not in output
        assert shell.end() == 1


def test_input_that_is_no_terminal_is_typed_and_ended(
    home: Path, environment: dict[str, str]
) -> None:
    got: list[bytes] = []

    def job(connection: ServerConnection) -> None:
        while got[-1:] != [b"\x04"]:
            message = connection.recv()
            assert isinstance(message, bytes)
            got.append(message)
        connection.send(b"bye\n")
        connection.send(json.dumps({"exit_code": 0, "signal": None}))

    with attaching(home / "odcd.sock", job):
        done = subprocess.run(
            [sys.executable, "-m", "odcctl", "attach", "7"],
            input=b"echo hi\n", env=environment, capture_output=True, timeout=120, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout, b"".join(got)) == (0, b"bye\n", b"echo hi\n\x04")


@pytest.mark.parametrize(
    ("typed", "sent", "detached"),
    [
        ([b"abc"], b"abc", False),
        ([b"ab\x1dd", b"c"], b"ab", True),
        ([b"a\x1d", b"d"], b"a", True),
        ([b"\x1d\x1d"], b"\x1d", False),
        ([b"\x1d", b"x"], b"\x1dx", False),
    ],
)
def test_the_detach_keys_are_found_however_they_arrive(
    typed: list[bytes], sent: bytes, detached: bool
) -> None:
    keys, out = Keys(), b""
    for data in typed:
        passed, left = keys.take(data)
        out += passed
        if left:
            break
    assert (out, left) == (sent, detached)
