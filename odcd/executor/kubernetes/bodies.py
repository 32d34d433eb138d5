"""Bodies of the API server's answers. Every user of the cluster may make some of them large: a pod
has up to 1.5 MiB in etcd, which can be 9 MiB as JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

MAX_LINE_BYTES = 64 * 1024 * 1024


class Content(Protocol):
    def iter_any(self) -> AsyncIterator[bytes]: ...


class Response(Protocol):
    """The part of aiohttp's that is used here."""

    @property
    def content(self) -> Content: ...
    async def read(self) -> bytes: ...
    def close(self) -> None: ...


class BodyTooLong(Exception):
    """The body has more bytes than allowed, and was not read on."""


async def read_body(response: Response, max_bytes: int | None) -> bytes:
    """Raises BodyTooLong."""
    if max_bytes is None:
        return await response.read()
    body = bytearray()
    async for data in response.content.iter_any():
        body += data
        if len(body) > max_bytes:
            response.close()
            raise BodyTooLong
    return bytes(body)


async def lines_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines. aiohttp's own reader fails at 4 MiB. Raises BodyTooLong for a line that is too
    long to be an object."""
    parts: list[bytes] = []
    size = 0
    async for data in pieces:
        *whole, rest = data.split(b"\n")
        for line in whole:
            yield b"".join([*parts, line])
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > MAX_LINE_BYTES:
            raise BodyTooLong
