"""Check whether a daemon of this machine answers, using only the standard library."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path


def answers(path: Path) -> bool:
    """Whether the daemon at this socket is ready for requests."""
    try:
        return get(path, "/ready")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def get(path: Path, target: str, timeout_s: float = 5.0) -> tuple[int, bytes]:
    """One HTTP request over a Unix socket; returns status and body."""
    connection = http.client.HTTPConnection("localhost", timeout=timeout_s)
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.settimeout(timeout_s)
        connection.sock.connect(str(path))
        connection.request("GET", target)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
