"""How a request may arrive. No honest client comes near any of these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    head_s: float = 10.0
    """From the connection, or the first byte of a later request, to the end of its headers."""
    handshake_s: float = 60.0
    """From the end of a WebSocket's headers to its answer, which may wait for database and node."""
    head_bytes: int = 64 * 1024
    """Request line and headers together; also the trailers, and what stands between the pieces of a
    body."""
    target_bytes: int = 16 * 1024
    headers: int = 100
    """Trailers are counted with them."""
    pipelined: int = 32
    """Requests that wait for the answer to the first of them."""
    body_s: float = 10.0
    """How often a body's progress is checked, while the daemon reads it."""
    body_rate: int = 1024
    """Bytes per second that a body has on average in that time."""
