"""The output of containers: kept line by line with its time, and read as pods/log requests it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 10 * 1024 * 1024  # of a file: containerLogMaxSize
_LONGEST = 16 * 1024  # of a line; longer ones are kept in pieces, as container runtimes do


def rfc3339(moment: datetime, micro: bool = False) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def now() -> datetime:
    return datetime.now(UTC)


class ContainerLog:
    """One container's: each line in the file is its time, F or P (a piece), and the text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ended = False
        self._files = 1
        self._rest = b""
        self._more = asyncio.Event()
        path.write_bytes(b"")  # each start of a container has its own

    def write(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        stamp = rfc3339(now(), micro=True).encode()
        kept: list[bytes] = []
        for line in lines:
            while len(line) > _LONGEST:
                kept.append(stamp + b" P " + line[:_LONGEST] + b"\n")
                line = line[_LONGEST:]
            kept.append(stamp + b" F " + line + b"\n")
        while len(self._rest) > _LONGEST:
            kept.append(stamp + b" P " + self._rest[:_LONGEST] + b"\n")
            self._rest = self._rest[_LONGEST:]
        self._append(kept)

    def end(self) -> None:
        if self._rest:
            stamp = rfc3339(now(), micro=True).encode()
            self._append([stamp + b" P " + self._rest + b"\n"])
            self._rest = b""
        self.ended = True
        self._wake()

    def last_words(self) -> str:
        """As kubelet writes them into a container's status."""
        lines = self.path.read_bytes().splitlines(keepends=True)[-80:]
        return b"".join(_text(line, False) for line in lines)[-2048:].decode(errors="replace")

    def _append(self, kept: list[bytes]) -> None:
        with self.path.open("ab") as file:
            file.writelines(kept)
        if self.path.stat().st_size > MAX_BYTES:
            self.path.replace(f"{self.path}.{self._files}")
            self.path.write_bytes(b"")
            self._files += 1
        self._wake()

    def _wake(self) -> None:
        more, self._more = self._more, asyncio.Event()
        more.set()

    def _open(self, number: int | None) -> BinaryIO:
        """A file that was rotated, or the newest."""
        return (self.path if number is None else Path(f"{self.path}.{number}")).open("rb")

    async def read(self, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """The output by kubelet's query: follow, tailLines, sinceSeconds, sinceTime, limitBytes,
        timestamps. Of a log that was rotated, only the newest file; a follower reads on in the
        next one."""
        left = int(query["limitBytes"]) if "limitBytes" in query else None
        timestamps = query.get("timestamps") == "true"
        since = _since(query)
        number, begins = self._files, True
        file = self._open(None)
        try:
            lines: Iterator[bytes] = (line for line in file if line[: len(since)] >= since)
            if "tailLines" in query:
                lines = iter(deque(lines, maxlen=int(query["tailLines"])))
            while True:
                more, ended, files = self._more, self.ended, self._files
                for line in lines:
                    text = _text(line, timestamps and begins)
                    begins = text.endswith(b"\n")
                    piece = text[:left]
                    if left is not None:
                        left -= len(piece)
                    if piece:
                        yield piece
                if left == 0 or query.get("follow") != "true":
                    return
                if number < files:
                    number += 1
                    file.close()
                    file = self._open(number if number < files else None)
                elif ended:
                    return
                else:
                    await more.wait()
                lines = iter(file)
        finally:
            file.close()


def _since(query: Mapping[str, str]) -> bytes:
    if "sinceTime" in query:
        return query["sinceTime"].rstrip("Z").encode()
    if "sinceSeconds" in query:
        return rfc3339(now() - timedelta(seconds=int(query["sinceSeconds"])), micro=True).encode()
    return b""


def _text(line: bytes, timestamps: bool) -> bytes:
    stamp, kind, text = line.split(b" ", 2)
    text = text if kind == b"F" else text[:-1]
    return stamp + b" " + text if timestamps else text
