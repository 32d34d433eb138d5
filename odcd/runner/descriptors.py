"""Receive descriptors over a socket with close-on-exec set (socket.recv_fds drops its flags)."""

from __future__ import annotations

import array
import socket

_INT = array.array("i").itemsize


def receive(channel: socket.socket, size: int, limit: int) -> tuple[bytes, list[int]]:
    """Return data, and at most `limit` descriptors that came with it; both are empty at the end."""
    data, ancillary, _, _ = channel.recvmsg(
        size, socket.CMSG_SPACE(limit * _INT), socket.MSG_CMSG_CLOEXEC
    )
    fds = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % _INT])
    return data, list(fds)
