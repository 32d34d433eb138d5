"""The events that the front door counts."""

from __future__ import annotations

from typing import Literal, Protocol

Refused = Literal["user", "address", "tcp", "all", "descriptors"]
"""Why a connection was closed at once: its user, its address, TCP as a whole or the daemon has the
maximum number of connections, or no file descriptor was free."""
Rejected = Literal["tls", "head_late", "head_size", "body_slow", "malformed", "host"]
"""Why a request was rejected before the API read it."""
REFUSED: tuple[Refused, ...] = ("user", "address", "tcp", "all", "descriptors")
REJECTED: tuple[Rejected, ...] = (
    "tls", "head_late", "head_size", "body_slow", "malformed", "host",
)  # fmt: skip


class Watch(Protocol):
    """client: an address, or the uid of a Unix connection."""

    def connected(self, change: int) -> None: ...
    def connection_refused(self, reason: Refused, client: str | int = "") -> None: ...
    def request_rejected(self, reason: Rejected, client: str | int = "") -> None: ...


class Nobody:
    def connected(self, change: int) -> None: ...
    def connection_refused(self, reason: Refused, client: str | int = "") -> None: ...
    def request_rejected(self, reason: Rejected, client: str | int = "") -> None: ...
