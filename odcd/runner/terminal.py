"""The terminal of a job that asked for one: held by its shim, shown to all attached clients.

It listens on terminals/<job>-<attempt>-<rank>. A client receives the earlier output (the last
REPLAY_BYTES of it), then new output. Frames in both directions: a letter, a length (4 bytes,
big-endian), data.
    from the client   i input; r rows and columns (2 bytes each); w a text to show to all (only
                      the runner can send it), answered with an empty w
    to the client     o output; e {"exit_code", "signal"} as JSON, the last frame
The window has the size of the client that typed or connected last.
"""

from __future__ import annotations

import contextlib
import fcntl
import grp
import json
import os
import selectors
import socket
import struct
import termios
import time
from typing import Any

from odcd.runner import socket_paths
from odcd.runner.spool import Kept, quota_of
from odcd.runner.waiting import collect

REPLAY_BYTES = 256 * 1024
MAX_BEHIND_BYTES = 8 * 1024 * 1024
"""While all clients together have more unread data than this, the one with the most is dropped: a
job never waits for a client."""
LOOK_S = 0.002
PART_S = 1.0
"""The time that all clients together have at the end to receive the remaining data."""
MAX_INPUT_BYTES = 1024 * 1024
WALL = b"w"
WALL_AGAIN_S = 60.0
"""The same text within this time is a repeated request: it is shown once."""

_HEAD = struct.Struct(">cI")


def frame(kind: bytes, data: bytes) -> bytes:
    return _HEAD.pack(kind, len(data)) + data


def take_frame(buffer: bytearray) -> tuple[bytes, bytes] | None:
    """Remove one whole frame from the start of the buffer; None if there is none yet."""
    if len(buffer) < _HEAD.size:
        return None
    kind, length = _HEAD.unpack_from(buffer)
    if len(buffer) < _HEAD.size + length:
        return None
    data = bytes(buffer[_HEAD.size : _HEAD.size + length])
    del buffer[: _HEAD.size + length]
    return kind, data


class _Client:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = bytearray()
        self.unsent = bytearray()
        self.size: tuple[int, int] | None = None


def give_terminal(slave: int, order: dict[str, Any], *, switch_user: bool) -> None:
    """Give it to the user only: by default the user's whole group could write to it."""
    try:
        group = grp.getgrnam("tty").gr_gid
    except KeyError:
        group = order["gid"]
    os.fchmod(slave, 0o600)
    if switch_user:
        os.fchown(slave, order["uid"], group)


class Terminal:
    def __init__(self, order: dict[str, Any]) -> None:
        # The slave stays open here: the terminal stays usable when the job closes it.
        self._master, self.slave = os.openpty()
        os.set_blocking(self._master, False)
        self._resize(order.get("rows") or 24, order.get("columns") or 80)
        give_terminal(self.slave, order, switch_user=order["switch_user"])
        self._kept = Kept(order["spool"][0], order, quota_of(order))
        order["spool"] = None
        self._path: str = order["terminal"]
        self._listener = self._listen()
        self._written = bytearray()
        self._input = bytearray()
        self._clients: dict[int, _Client] = {}
        self._sizing: _Client | None = None
        """The client whose window size the terminal has."""
        self._walled: tuple[bytes, float] = b"", 0.0
        self._selector = selectors.DefaultSelector()
        self._behind = 0
        """Unread bytes of all clients."""

    def _listen(self) -> socket.socket:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        socket_paths.bind(listener, self._path)
        listener.listen(16)
        listener.setblocking(False)
        return listener

    def serve(self, child: int) -> int:
        """Forward data until the child has ended and all its output is read. Returns its wait
        status."""
        ended = os.pidfd_open(child)
        self._selector.register(ended, selectors.EVENT_READ)
        self._selector.register(self._master, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        over = False
        while not over:
            for key, mask in self._selector.select():
                if key.fd == ended:
                    over = True
                elif key.fd == self._master:
                    self._serve_master(mask)
                elif key.fd == self._listener.fileno():
                    self._accept()
                elif key.fd in self._clients:
                    self._serve_client(self._clients[key.fd], mask)
        while self._read_master():
            pass
        # A client may soon get this descriptor's number.
        self._selector.unregister(ended)
        os.close(ended)
        while (status := collect(child)) is None:
            time.sleep(LOOK_S)
        return status

    def finish(self, status: int) -> None:
        """Send the end to all clients, and close."""
        signalled = os.WIFSIGNALED(status)
        outcome = {
            "exit_code": None if signalled else os.WEXITSTATUS(status),
            "signal": os.WTERMSIG(status) if signalled else None,
        }
        last = frame(b"e", json.dumps(outcome).encode())
        # No new clients after this: the waiting ones are the last.
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        with contextlib.suppress(OSError):
            while True:
                self._accept_one()
        self._listener.close()
        self._part(last)
        self._selector.close()
        for fd in (self._master, self.slave):
            os.close(fd)
        self._kept.close()

    def _part(self, last: bytes) -> None:
        """Send the remaining data to all clients within PART_S together, and close."""
        deadline = time.monotonic() + PART_S
        with selectors.DefaultSelector() as behind:
            for client in list(self._clients.values()):
                self._send(client, last)
                if client.unsent and client.sock.fileno() >= 0:
                    behind.register(client.sock, selectors.EVENT_WRITE, client)
            while behind.get_map() and (left := deadline - time.monotonic()) > 0:
                for key, _ in behind.select(left):
                    self._send(key.data, b"")
                    if not key.data.unsent or key.data.sock.fileno() < 0:
                        behind.unregister(key.fd)
        for client in self._clients.values():
            client.sock.close()

    def _serve_master(self, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            with contextlib.suppress(OSError):
                del self._input[: os.write(self._master, self._input)]
            if not self._input:
                self._selector.modify(self._master, selectors.EVENT_READ)
        if mask & selectors.EVENT_READ:
            self._read_master()

    def _read_master(self) -> bool:
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self._show(data)
        return True

    def _show(self, data: bytes) -> None:
        self._kept.write(data)
        self._written += data
        del self._written[: max(0, len(self._written) - REPLAY_BYTES)]
        for client in list(self._clients.values()):
            self._send(client, frame(b"o", data))

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            self._accept_one()

    def _accept_one(self) -> None:
        sock, _ = self._listener.accept()
        sock.setblocking(False)
        client = _Client(sock)
        self._clients[sock.fileno()] = client
        self._selector.register(sock, selectors.EVENT_READ)
        if self._written:
            self._send(client, frame(b"o", bytes(self._written)))

    def _serve_client(self, client: _Client, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            self._send(client, b"")
        if mask & selectors.EVENT_READ and client.sock.fileno() in self._clients:
            try:
                data = client.sock.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data or len(client.received) > MAX_INPUT_BYTES:
                self._drop(client)
                return
            client.received += data
            while taken := take_frame(client.received):
                self._obey(client, *taken)

    def _obey(self, client: _Client, kind: bytes, data: bytes) -> None:
        if kind == b"r" and len(data) == 4:
            came = client.size is None
            client.size = struct.unpack(">HH", data)
            if came or self._sizing in (None, client):
                self._fit(client)
        elif kind == b"i" and len(self._input) < MAX_INPUT_BYTES:
            if client is not self._sizing:
                self._fit(client)
            self._input += data
            both = selectors.EVENT_READ | selectors.EVENT_WRITE
            self._selector.modify(self._master, both)
        elif kind == WALL:
            self._wall(data)
            self._send(client, frame(WALL, b""))

    def _wall(self, text: bytes) -> None:
        last, at = self._walled
        if text == last and time.monotonic() - at < WALL_AGAIN_S:
            return
        self._walled = text, time.monotonic()
        lines = text.decode(errors="replace").splitlines()
        plain = ("".join(c if c.isprintable() else "?" for c in line) for line in lines)
        self._show(("\r\n\a" + "".join(f"{line}\r\n" for line in plain)).encode())

    def _fit(self, client: _Client) -> None:
        if client.size is not None:
            self._sizing = client
            self._resize(*client.size)

    def _resize(self, rows: int, columns: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _send(self, client: _Client, data: bytes) -> None:
        if client.sock.fileno() not in self._clients:
            return
        before = len(client.unsent)
        client.unsent += data
        lost = False
        try:
            while client.unsent:
                del client.unsent[: client.sock.send(client.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            lost = True
        self._behind += len(client.unsent) - before
        if lost:
            self._drop(client)
        while self._behind > MAX_BEHIND_BYTES:
            self._drop(max(self._clients.values(), key=lambda one: len(one.unsent)))
        if client.sock.fileno() in self._clients:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.unsent else 0)
            self._selector.modify(client.sock, events)

    def _drop(self, client: _Client) -> None:
        if client is self._sizing:
            self._sizing = None
        self._selector.unregister(client.sock)
        del self._clients[client.sock.fileno()]
        self._behind -= len(client.unsent)
        client.unsent.clear()
        client.sock.close()
