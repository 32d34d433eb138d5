"""Who is at the other end of a unix connection, as the kernel reports it."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

PEER = "peer"
"""Where the scope's state has the Peer of a unix connection."""
_CREDENTIALS = struct.Struct("3i")


class Peer(NamedTuple):
    uid: int
    gid: int


def peer_of(connection: socket.socket) -> Peer | None:
    """None: the connection is not a unix socket's."""
    if connection.family != socket.AF_UNIX:
        return None
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, gid = _CREDENTIALS.unpack(raw)
    return Peer(uid, gid)
