"""Find which user of this machine opened a TCP connection, by asking the kernel.

A connection over loopback carries no credentials, but both of its sockets are on this machine.
sock_diag returns the uid of the other socket; if it is not available, /proc/net/tcp has it.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

ORIGIN = "origin"
"""The key in a scope's state for the Origin of a TCP connection."""

_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
_HEADER = struct.Struct("=IHHII")
_ASK = struct.Struct("=BBBBI")
_PORTS = struct.Struct("!HH")
_ANY = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
"""Any interface, and no cookie."""
_UID_AND_INODE = struct.Struct("=II")
_UID_AT = _HEADER.size + 4 + 48 + 12
_ENOENT = 2

Place = tuple[str, int]


class Origin(NamedTuple):
    """near: the other end is a socket of this machine, owned by that uid. far: it is on another
    machine. unknown: it is on this machine, but the socket is closed, or the kernel cannot be
    asked.

    port: the port of the daemon that was connected to.
    """

    kind: Literal["near", "far", "unknown"]
    uid: int | None
    port: int


def origin_of(connection: socket.socket) -> Origin | None:
    """None: the connection is not TCP."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        ours, theirs = connection.getsockname()[:2], connection.getpeername()[:2]
    except OSError:  # the connection is gone
        return Origin("unknown", None, 0)
    return find_origin(ours, theirs)


def find_origin(ours: Place, theirs: Place) -> Origin:
    """The origin of a connection between these addresses."""
    ours, theirs = _plain(ours), _plain(theirs)
    try:
        found = _ask_kernel(ours, theirs)
    except OSError:
        found = _read_proc(ours, theirs)
    if found is None:
        here = theirs[0] == ours[0] or ipaddress.ip_address(theirs[0]).is_loopback
        return Origin("unknown" if here else "far", None, ours[1])
    uid, inode = found
    # The kernel reports uid 0 for a socket that its process has closed.
    return Origin("near", uid, ours[1]) if inode else Origin("unknown", None, ours[1])


def _plain(place: Place) -> Place:
    """Convert an IPv4 address mapped into IPv6 to IPv4, and remove the scope."""
    address = ipaddress.ip_address(place[0].partition("%")[0])
    mapped = address.ipv4_mapped if address.version == 6 else None
    return str(mapped or address), place[1]


def _ask_kernel(ours: Place, theirs: Place) -> tuple[int, int] | None:
    """uid and inode of the other end's socket; None: there is none. Raises OSError."""
    family = socket.AF_INET6 if ":" in ours[0] else socket.AF_INET
    query = b"".join(
        [
            _ASK.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF),
            _PORTS.pack(theirs[1], ours[1]),
            *(socket.inet_pton(family, place[0]).ljust(16, b"\0") for place in (theirs, ours)),
            _ANY,
        ]
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.setblocking(False)
        size = _HEADER.size + len(query)
        kernel.send(_HEADER.pack(size, _BY_FAMILY, _REQUEST, 1, 0) + query)
        answer = kernel.recv(4096)
    kind = _HEADER.unpack_from(answer)[1]
    if kind == _ERROR:
        code = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        if code == _ENOENT:
            return None
        raise OSError(code, os.strerror(code))
    return _UID_AND_INODE.unpack_from(answer, _UID_AT)


def _read_proc(ours: Place, theirs: Place) -> tuple[int, int] | None:
    query = (_key(theirs), _key(ours))
    for name in ("tcp", "tcp6"):
        with suppress(OSError), Path(f"/proc/self/net/{name}").open(encoding="ascii") as file:
            next(file, None)
            for line in file:
                fields = line.split()
                if (_key_in(fields[1]), _key_in(fields[2])) == query:
                    return int(fields[7]), int(fields[9])
    return None


def _key(place: Place) -> tuple[bytes, int]:
    address = ipaddress.ip_address(place[0])
    return address.packed, place[1]


def _key_in(field: str) -> tuple[bytes, int]:
    """Parse the file's notation: words in the machine's byte order."""
    text, _, port = field.partition(":")
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    mapped = ipaddress.IPv6Address(packed).ipv4_mapped if len(packed) == 16 else None
    return mapped.packed if mapped else packed, int(port, 16)
