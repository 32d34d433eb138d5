"""Show the terminal of a job in ours: raw mode, both directions, window size, detaching.

The websockets library speaks the protocol. The main thread shows output, a second one sends input.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.connection import Connection

from odcctl.exits import NO_EXIT_CODE, Failure, Unreachable
from odcctl.http.client import Client, quote
from odcctl.http.websocket import connected
from odcctl.text.render import clean

PREFIX, DETACH = b"\x1d", b"d"
DETACH_KEYS = "Ctrl-] d"
KEY_ENDED = 4401
"""The daemon closes a terminal with this code when the key that opened it is no longer valid."""
END_OF_INPUT = b"\x04"


class Detached(Exception):
    """The user detached; the job keeps running."""


def attach(client: Client, job: str, attached: Callable[[], None] = lambda: None) -> int:
    """Connect to the job's terminal until it ends; return its exit code. attached: called once
    connected.

    Raises Detached; Failure when our key is no longer valid; Refused when the job has no terminal,
    or is not running.
    """
    with connected(client, f"/v1/jobs/{quote(job)}/attach", "terminal") as connection:
        attached()
        with _raw():
            last = _use(connection)
        code, reason = connection.close_code, connection.close_reason
    if code == KEY_ENDED:
        raise Failure(
            f"the terminal was closed: {clean(reason or '')}",
            f"Log in again, then: odcctl attach {job}",
        )
    if "exit_code" not in last and "signal" not in last:
        raise Unreachable(
            "the connection to the terminal was lost; the job continues",
            f"Attach again: odcctl attach {job}",
        )
    if last.get("signal"):
        return 128 + int(last["signal"])
    return NO_EXIT_CODE if last.get("exit_code") is None else int(last["exit_code"])


def _use(connection: Connection) -> dict[str, Any]:
    """The job's final message; empty if the connection ended without one. Raises Detached."""
    last: dict[str, Any] = {}
    pump = Pump(connection)
    pump.start()
    try:
        for message in connection:
            if isinstance(message, bytes):
                _write(message)
            else:
                last = json.loads(message)
    except ConnectionClosed:
        pass
    finally:
        pump.stop()
    if pump.detached:
        raise Detached
    return last


class Pump(threading.Thread):
    """Sends the keys that are typed, and the size of the window whenever it changes."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(daemon=True)
        self.detached = False
        self._connection = connection
        self._typed = Keys()
        self._woken, self._wake = os.pipe()

    def start(self) -> None:
        signal.signal(signal.SIGWINCH, self._resized)
        super().start()

    def stop(self) -> None:
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        os.write(self._wake, b"q")
        self.join()

    def _resized(self, number: int, frame: object) -> None:
        os.write(self._wake, b"w")

    def run(self) -> None:
        try:
            self._send_size()
            self._pump()
        except ConnectionClosed:
            pass  # The main thread notices it too.

    def _pump(self) -> None:
        sources = [0, self._woken]
        while True:
            ready, _, _ = select.select(sources, [], [])
            if self._woken in ready:
                if b"q" in os.read(self._woken, 64):
                    return
                self._send_size()
            if 0 in ready:
                data = os.read(0, 65536)
                if not data:
                    sources.remove(0)
                    self._connection.send(END_OF_INPUT)
                    continue
                data, self.detached = self._typed.take(data)
                if data:
                    self._connection.send(data)
                if self.detached:
                    self._connection.close()
                    return

    def _send_size(self) -> None:
        if sys.stdout.isatty():
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
            # A terminal without a size (script, CI) reports 0.
            if rows and columns:
                self._connection.send(json.dumps({"resize": [rows, columns]}))


class Keys:
    """Finds the detach keys in typed input; the prefix typed twice is sent once."""

    def __init__(self) -> None:
        self._prefixed = False

    def take(self, data: bytes) -> tuple[bytes, bool]:
        """The bytes to send, and whether to detach after them."""
        out = bytearray()
        for at in range(len(data)):
            key = data[at : at + 1]
            if self._prefixed:
                self._prefixed = False
                if key == DETACH:
                    return bytes(out), True
                out += key if key == PREFIX else PREFIX + key
            elif key == PREFIX:
                self._prefixed = True
            else:
                out += key
        return bytes(out), False


@contextmanager
def _raw() -> Generator[None]:
    """Send every key to the job, Ctrl-C too. The old mode is always restored at the end."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # Keep input that was typed ahead: it is for the job.
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
