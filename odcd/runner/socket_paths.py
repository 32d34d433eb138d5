"""Unix sockets in deep folders. A socket's path may have at most 107 bytes, so these functions use
the folder's descriptor instead of its path."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Generator


def bind(sock: socket.socket, path: str | os.PathLike[str]) -> None:
    """Raises OSError."""
    with _short(path) as short:
        sock.bind(short)


def connect(sock: socket.socket, path: str | os.PathLike[str]) -> None:
    """Raises OSError; BlockingIOError for a socket that does not block, if the queue is full."""
    with _short(path) as short:
        sock.connect(short)


@contextlib.contextmanager
def _short(path: str | os.PathLike[str]) -> Generator[str]:
    folder, name = os.path.split(path)
    fd = os.open(folder or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{name}"
    finally:
        os.close(fd)
