"""Connections from the daemon to its runner."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odcd.call_metrics import NOBODY, Calls
from odcd.errors import LeadershipLost, OdcError, RunnerDown
from odcd.runner import descriptors, launch, protocol

ANSWER_S = 60.0
"""A runner that does not respond for this long is considered dead; even the start of thousands
of jobs takes less."""
OPENED_S = 5.0
"""Maximum wait for a file to be opened; the runner ends the opening process earlier."""
MAX_LINE_BYTES = 64 * 1024 * 1024


class RunnerRefused(OdcError):
    """The runner answered with an error other than lost leadership."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"the runner refused: {message}")
        self.kind = code
        self.reason = message


class Link:
    """A connection, opened with hello. Only one request is in progress at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, calls: Calls = NOBODY
    ) -> None:
        self._calls = calls
        self._reader = reader
        self._writer = writer
        self._turn = asyncio.Lock()
        self._number = 0
        self._rest = b""
        self.about: dict[str, Any] = {}

    @classmethod
    async def open(cls, run_dir: Path, term: int | None, calls: Calls = NOBODY) -> Link:
        """Raises RunnerDown, LeadershipLost or RunnerRefused."""
        try:
            sock = await asyncio.to_thread(launch.connect, run_dir)
            sock.setblocking(False)
            reader, writer = await asyncio.open_unix_connection(sock=sock, limit=MAX_LINE_BYTES)
        except OSError as error:
            raise RunnerDown(f"the runner of {run_dir} does not answer: {error}") from error
        link = cls(reader, writer, calls)
        try:
            link.about = await link.ask("hello", versions=list(protocol.VERSIONS), term=term)
        except BaseException:
            link.close()
            raise
        return link

    async def ask(self, op: str, **fields: object) -> dict[str, Any]:
        """bytes are fields that are JSON already. Raises RunnerDown when the connection breaks: the
        request may have been carried out."""
        return await self.ask_encoded(op, {
            name: value if isinstance(value, bytes) else protocol.encode_part(value)
            for name, value in fields.items()
        })  # fmt: skip

    async def ask_encoded(self, op: str, fields: Mapping[str, bytes]) -> dict[str, Any]:
        """The same as ask(), with fields that are already encoded as JSON."""
        with self._calls.asking(op):
            return unwrap(await self._ask(op, fields))

    async def _ask(self, op: str, fields: Mapping[str, bytes]) -> dict[str, Any]:
        """A request that is sent is completed although it is cancelled: otherwise its answer would
        be taken for that of the next one, and closing the connection would fail those of others."""
        await self._turn.acquire()
        asking = asyncio.create_task(self._exchange(op, fields), name=f"runner-{op}")
        asking.add_done_callback(self._asked)
        return await asyncio.shield(asking)

    def _asked(self, asking: asyncio.Task[dict[str, Any]]) -> None:
        self._turn.release()
        if not asking.cancelled():
            asking.exception()  # read, because its waiter may have left

    async def _exchange(self, op: str, fields: Mapping[str, bytes]) -> dict[str, Any]:
        if self.broken:
            # An earlier request noticed that the connection is broken.
            self.close()
            raise RunnerDown("the connection to the runner is closed")
        self._number += 1
        try:
            async with asyncio.timeout(ANSWER_S):
                self._writer.write(_request(self._number, op, fields))
                await self._writer.drain()
                answer = await self.read()
                while answer.get("id") != self._number:
                    answer = await self.read()
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            # RuntimeError: uvloop's error for a connection that is already closed.
            self.close()
            raise RunnerDown(f"the connection to the runner broke: {error!r}") from error
        except BaseException:
            self.close()
            raise
        return answer

    async def read(self) -> dict[str, Any]:
        """The next message. Raises OSError at the end, ValueError for an invalid message."""
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError("connection closed")
        try:
            return protocol.decode(line)
        except protocol.ProtocolError as error:
            raise ValueError(error.message) from error

    async def read_all(self) -> list[dict[str, Any]]:
        """The next message and all that have arrived after it. Do not mix with read() or ask().

        Raises the same exceptions as read().
        """
        while b"\n" not in self._rest:
            data = await self._reader.read(MAX_LINE_BYTES)
            if not data:
                raise ConnectionResetError("connection closed")
            self._rest += data
        whole, _, self._rest = self._rest.rpartition(b"\n")
        try:
            return [protocol.decode(line) for line in whole.split(b"\n")]
        except protocol.ProtocolError as error:
            raise ValueError(error.message) from error

    @property
    def broken(self) -> bool:
        return self._writer.is_closing() or self._reader.at_eof()

    def close(self) -> None:
        self._writer.close()


def _request(number: int, op: str, fields: Mapping[str, bytes]) -> bytes:
    parts = [b'{"id":%d,"op":"%b"' % (number, op.encode())]
    for name, value in fields.items():
        parts += (b',"%b":' % name.encode(), value)
    return b"".join([*parts, b"}\n"])


def ask_for_descriptor(run_dir: Path, op: str, fields: Mapping[str, Any]) -> int:
    """A file descriptor from the runner, over a separate connection. Blocks.

    Raises RunnerDown or RunnerRefused.
    """
    try:
        with launch.connect(run_dir) as sock:
            sock.settimeout(ANSWER_S)
            hello = {"id": 1, "op": "hello", "versions": list(protocol.VERSIONS), "term": None}
            sock.sendall(protocol.encode(hello))
            unwrap(_receive(sock)[0])
            sock.sendall(protocol.encode({"id": 2, "op": op, **fields}))
            answer, fds = _receive(sock)
    except (OSError, protocol.ProtocolError) as error:
        raise RunnerDown(f"the runner does not answer: {error}") from error
    try:
        unwrap(answer)
    except BaseException:
        for fd in fds:
            os.close(fd)
        raise
    return fds[0]


def open_output(run_dir: Path, fields: Mapping[str, Any]) -> int:
    """A descriptor of a job's output file. Blocks while the user's file system does.

    Raises RunnerDown or RunnerRefused.
    """
    fd = ask_for_descriptor(run_dir, "open_output", {**fields, "by_socket": True})
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        return fd
    with socket.socket(fileno=fd) as sock:
        sock.settimeout(OPENED_S)
        try:
            data, fds = descriptors.receive(sock, 65536, 1)
        except OSError:
            data, fds = b"", []
    answer = json.loads(data) if data else {"error": "it could not be opened in time"}
    if fds:
        return fds[0]
    code = protocol.NOT_FOUND if answer.get("missing") else protocol.IO_ERROR
    raise RunnerRefused(code, answer["error"])


def _receive(sock: socket.socket) -> tuple[dict[str, Any], list[int]]:
    received, fds = b"", list[int]()
    while not received.endswith(b"\n"):
        data, got = descriptors.receive(sock, 65536, 1)
        fds += got
        if not data:
            raise ConnectionResetError("connection closed")
        received += data
    return protocol.decode(received), fds


def unwrap(answer: Mapping[str, Any]) -> dict[str, Any]:
    error = answer.get("error")
    if error is None:
        return answer["ok"]
    if error["code"] == protocol.LEADERSHIP_LOST:
        raise LeadershipLost(error["message"], "Another daemon commands this runner.")
    raise RunnerRefused(error["code"], error["message"])
