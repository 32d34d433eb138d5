"""The runner's listening socket, and the users who may connect to it."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from odcd.runner import socket_paths
from odcd.runner.log import Log
from odcd.runner.loop import Loop

_CREDENTIALS = struct.Struct("3i")


class Listener:
    def __init__(
        self, loop: Loop, log: Log, owner_uid: int, on_connect: Callable[[socket.socket], None]
    ) -> None:
        """on_connect: receives the socket, which does not block, of each peer that is root, the
        owner or this process's user."""
        self._loop = loop
        self._log = log
        self._allowed = {0, owner_uid, os.geteuid()}
        self._on_connect = on_connect
        self._socket: socket.socket | None = None

    def listen(self, path: Path, owner_uid: int, owner_gid: int) -> None:
        """Accept connections at path, and stop accepting at the previous one. Raises OSError."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        socket_paths.bind(listening, path)
        path.chmod(0o600)
        if os.geteuid() == 0:
            os.chown(path, owner_uid, owner_gid)
        listening.listen(64)
        listening.setblocking(False)
        self._loop.watch(listening, lambda _: self._accept(listening))
        if self._socket is not None:
            self._loop.forget(self._socket)
            self._socket.close()
        self._socket = listening

    def _accept(self, listening: socket.socket) -> None:
        try:
            sock, _ = listening.accept()
        except OSError as error:
            self._log.limited("accept.failed", error=error)
            return
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        uid = _CREDENTIALS.unpack(raw)[1]
        if uid not in self._allowed:
            self._log.limited("peer.refused", uid=uid)
            sock.close()
            return
        sock.setblocking(False)
        self._on_connect(sock)
