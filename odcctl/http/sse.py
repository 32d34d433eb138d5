"""Server-sent events, as /v1/events sends them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from odcctl.http.wire import Answer


class Parser:
    """Makes events of the bytes of a stream."""

    def __init__(self) -> None:
        self._rest = b""
        self.last_id: str | None = None

    def feed(self, piece: bytes) -> list[dict[str, Any]]:
        """The events that this piece completes."""
        *blocks, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(b"\n\n")
        found: list[dict[str, Any]] = []
        for block in blocks:
            data: list[str] = []
            for line in block.decode("utf-8", "replace").split("\n"):
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if name == "id":
                    self.last_id = value
                elif name == "data":
                    data.append(value)
            if data:
                found.append(json.loads("\n".join(data)))
        return found


class Events:
    """Events of a stream, with a limit on how long to wait for the next."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._parser = Parser()
        self._ready: list[dict[str, Any]] = []
        self.ended = False

    @property
    def last_id(self) -> str | None:
        return self._parser.last_id

    def next(self, timeout_s: float | None = None) -> dict[str, Any] | None:
        """The next event; None if none arrived in time, or the stream has ended."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._ready:
            left = None if until is None else until - time.monotonic()
            if self.ended or (left is not None and left <= 0):
                return None
            piece = self._answer.read(left)
            if piece == b"":
                self.ended = True
            elif piece:
                self._ready += self._parser.feed(piece)
        return self._ready.pop(0)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while (event := self.next()) is not None:
            yield event

    def fileno(self) -> int:
        """For select: readable when an event or the end may have arrived."""
        return self._answer.fileno()

    def close(self) -> None:
        self._answer.close()
