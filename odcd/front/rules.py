"""Limits on how requests arrive. Normal clients never come close to any of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    head_s: float = 10.0
    """From the connection, or the first byte of a later request, to the end of its headers."""
    handshake_s: float = 60.0
    """From the end of a WebSocket's headers to its answer, which may wait for database and node."""
    head_bytes: int = 64 * 1024
    """Request line and headers together; also the limit for trailers, and for the bytes between the
    pieces of a body."""
    target_bytes: int = 16 * 1024
    headers: int = 100
    """Trailers count as headers."""
    pipelined: int = 32
    """The maximum number of requests that wait for the answer to an earlier one."""
    body_s: float = 10.0
    """How often a body's progress is checked, while the daemon reads it."""
    body_rate: int = 1024
    """The minimum average rate of a body in that time, in bytes per second."""
