"""Descriptors over a socket, closed by exec as all of ours are (socket.recv_fds drops its
flags)."""

from __future__ import annotations

import array
import socket

_INT = array.array("i").itemsize


def receive(channel: socket.socket, size: int, most: int) -> tuple[bytes, list[int]]:
    """Data, and up to so many descriptors that came with it; nothing of either at the end."""
    data, ancillary, _, _ = channel.recvmsg(
        size, socket.CMSG_SPACE(most * _INT), socket.MSG_CMSG_CLOEXEC
    )
    fds = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % _INT])
    return data, list(fds)
