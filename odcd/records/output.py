"""The stored output of a member."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """content: compressed by zlib; it may lack the middle. written: the bytes of the whole output.
    through: the member may still be writing, and its log was read up to this position; None: it has
    ended."""

    content: bytes
    written: int
    through: str | None = None
