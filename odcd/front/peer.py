"""The user at the other end of a Unix connection, as reported by the kernel."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

PEER = "peer"
"""The key in a scope's state for the Peer of a Unix connection."""
_CREDENTIALS = struct.Struct("3i")


class Peer(NamedTuple):
    uid: int
    gid: int


def peer_of(connection: socket.socket) -> Peer | None:
    """None: the connection does not use a Unix socket."""
    if connection.family != socket.AF_UNIX:
        return None
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, gid = _CREDENTIALS.unpack(raw)
    return Peer(uid, gid)
