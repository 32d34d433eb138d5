"""The beginning and the end of a long output."""

from __future__ import annotations

import re
import zlib
from collections import deque

HEAD_BYTES = 64 * 1024
BLOCK_BYTES = 64 * 1024
_MARK = b"\n[odc: %d bytes are not kept here]\n"
_MARKED = re.compile(rb"\n\[odc: \d+ bytes are not kept here\]\n")


class Shortened:
    """Keeps the beginning and the end of its input, compressed in memory: the leader holds one for
    each member that runs."""

    def __init__(self, limit: int) -> None:
        self._tail_bytes = max(limit, 2 * HEAD_BYTES) - HEAD_BYTES
        self._head = bytearray()
        self._tail = _Blocks()
        self.written = 0

    @classmethod
    def resume(cls, limit: int, content: bytes, written: int) -> Shortened:
        """Continue one whose content was stored."""
        short = cls(limit)
        head, tail = content[:HEAD_BYTES], content[HEAD_BYTES:]
        if written > len(content) and (mark := _MARKED.match(tail)):
            tail = tail[mark.end() :]
        short.feed(head)
        short.feed(tail)
        short.written = written
        return short

    def feed(self, data: bytes) -> None:
        self.written += len(data)
        room = HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail.add(data)
        self._tail.trim(self._tail_bytes)

    def content(self) -> bytes:
        tail = self._tail.last(self._tail_bytes)
        cut = self.written - len(self._head) - len(tail)
        mark = _MARK % cut if cut > 0 else b""
        return bytes(self._head) + mark + tail


class _Blocks:
    """A text in compressed blocks."""

    def __init__(self) -> None:
        self._full: deque[bytes] = deque()
        self._open = bytearray()

    def add(self, data: bytes) -> None:
        self._open += data
        while len(self._open) >= BLOCK_BYTES:
            self._full.append(zlib.compress(self._open[:BLOCK_BYTES], 1))
            del self._open[:BLOCK_BYTES]

    def trim(self, keep_bytes: int) -> None:
        """Drop blocks from the front that the last so many bytes do not need."""
        while (len(self._full) - 1) * BLOCK_BYTES + len(self._open) >= keep_bytes:
            self._full.popleft()

    def last(self, size: int) -> bytes:
        text = b"".join(map(zlib.decompress, self._full)) + bytes(self._open)
        return text[max(0, len(text) - size) :]
