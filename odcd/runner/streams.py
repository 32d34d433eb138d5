"""Answers requests for a descriptor: a job's output file, or a connection to its terminal."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

from odcd.runner import descriptors, opener, protocol, socket_paths
from odcd.runner.attempts import Attempts
from odcd.runner.connection import Connection
from odcd.runner.helper import Watch
from odcd.runner.loop import Loop
from odcd.runner.protocol import ProtocolError
from odcd.runner.record import Key
from odcd.runner.uids import Users


class Streams:
    """Each method sends its answer to the connection, at once or later, unless it raises."""

    def __init__(self, loop: Loop, attempts: Attempts, users: Users, run_dir: Path) -> None:
        self._loop = loop
        self._attempts = attempts
        self._users = users
        self._run_dir = run_dir

    def open_output(self, connection: Connection, request: dict[str, Any]) -> None:
        """Send a descriptor for reading a job's output. spool: "out" or "err" instead of a path.
        by_socket: send a socket instead; the process that opens the file sends its answer there.

        Raises ProtocolError, and OSError when no process can be forked.
        """
        refusal = self._users.refusal(int(request["uid"]))
        if refusal:
            raise ProtocolError(protocol.IO_ERROR, refusal)
        if request.get("spool"):
            name = f"{Key.of(request)}.{'err' if request['spool'] == 'err' else 'out'}"
            answer, fds = opener.open_kept(f"{self._run_dir}/output/{name}", request["uid"])
            _answer(connection, request, answer, fds)
        elif request.get("by_socket"):
            self._open_by_socket(connection, request)
        else:
            self._open(connection, request)

    def _open(self, connection: Connection, request: dict[str, Any]) -> None:
        path = request.get("path")
        helper = opener.open_as(
            str(path), int(request["uid"]), int(request["gid"]), switch_user=os.geteuid() == 0
        )

        def receive(channel: socket.socket) -> None:
            data, fds = descriptors.receive(channel, 65536, 1)
            end(json.loads(data) if data else {"error": "the process that opened it died"}, fds)

        def end_late() -> None:
            end({"error": f"{path} could not be opened within {opener.OPEN_S:g} s"}, [])

        def end(answer: dict[str, Any], fds: list[int]) -> None:
            watch.close()
            _answer(connection, request, answer, fds)

        watch = Watch(self._loop, helper, opener.OPEN_S, receive, end_late)

    def _open_by_socket(self, connection: Connection, request: dict[str, Any]) -> None:
        reading, answering = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            helper = opener.open_for(
                str(request.get("path")), int(request["uid"]), int(request["gid"]), answering,
                switch_user=os.geteuid() == 0,
            )  # fmt: skip
        except BaseException:
            reading.close()
            raise
        finally:
            answering.close()

        def end(_: object = None) -> None:
            watch.close()

        watch = Watch(self._loop, helper, opener.OPEN_S, end, end)
        connection.send({"id": request.get("id"), "ok": {}}, reading.detach())

    def attach(self, connection: Connection, request: dict[str, Any]) -> None:
        """Send a connection to the member's terminal; odcd.runner.terminal describes its frames.

        Raises ProtocolError.
        """
        key = Key.of(request)
        member = self._attempts.find(key)
        if member is None or not member.live:
            raise ProtocolError(protocol.NOT_FOUND, f"member {key} is not running")
        terminal = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # A terminal whose queue is full, because its shim is busy, must not block everything else.
        terminal.setblocking(False)
        try:
            socket_paths.connect(terminal, self._run_dir / "terminals" / str(key))
        except BlockingIOError:
            terminal.close()
            text = f"the terminal of member {key} accepts no one now"
            raise ProtocolError(protocol.NOT_READY, text) from None
        except OSError as error:
            terminal.close()
            code = protocol.NOT_FOUND if member.state == "running" else protocol.NOT_READY
            raise ProtocolError(code, f"member {key} has no terminal: {error.strerror}") from None
        terminal.setblocking(True)
        connection.send({"id": request.get("id"), "ok": {}}, terminal.detach())


def _answer(
    connection: Connection, request: dict[str, Any], answer: dict[str, Any], fds: list[int]
) -> None:
    """answer: the message of odcd.runner.opener, with the descriptor that came with it."""
    if "ok" in answer:
        connection.send({"id": request.get("id"), "ok": {}}, fds[0])
    else:
        code = protocol.NOT_FOUND if answer.get("missing") else protocol.IO_ERROR
        error = {"code": code, "message": answer["error"]}
        connection.send({"id": request.get("id"), "error": error})
