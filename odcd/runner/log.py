"""The runner's log: one line per event. Logging never fails: a full disk only drops lines."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path

MAX_BYTES = 10 * 1024 * 1024
WINDOW_S = 3600.0
MAX_LIMITED = 100
"""How many lines of one event peers may cause within the window."""


class Log:
    """Appends to a file that also receives the process's standard output and error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._dropped = 0
        self._size = 0
        self._second = -1
        self._stamp = ""
        self._limited: dict[str, tuple[float, int]] = {}
        self._open()

    def _open(self) -> None:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            fd = os.open(self._path, flags, 0o640)
        except OSError:
            fd = os.open("/dev/null", os.O_WRONLY)
        self._size = os.fstat(fd).st_size
        os.dup2(fd, 1)
        os.dup2(fd, 2)
        os.close(fd)

    def info(self, event: str, **fields: object) -> None:
        self._write("INFO", event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._write("ERROR", event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """Log the error being handled, with its traceback in the same line."""
        self._write("ERROR", event, {**fields, "traceback": traceback.format_exc()})

    def limited(self, event: str, **fields: object) -> None:
        """Log a line that a peer can cause as often as it likes. Above a limit, lines are only
        counted. Otherwise a peer could make the log rotate until the lines about its starts are
        gone."""
        now = time.monotonic()
        since, count = self._limited.get(event, (now, 0))
        left_out = 0
        if now >= since + WINDOW_S:
            left_out = max(0, count - MAX_LIMITED)
            since, count = now, 0
        self._limited[event] = since, count + 1
        if count < MAX_LIMITED:
            self._write("INFO", event, fields | ({"left_out": left_out} if left_out else {}))

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        facts = "".join(f" {name}={_quoted(value)}" for name, value in fields.items())
        lost = f" dropped_lines={self._dropped}" if self._dropped else ""
        line = f"{self._stamp}.{int(now % 1 * 1000):03d}Z {level} {event}{facts}{lost}\n"
        data = line.encode(errors="backslashreplace")
        try:
            written = os.write(2, data)
        except OSError:
            self._dropped += 1
            return
        self._dropped = 0
        self._size += written
        if self._size > MAX_BYTES:
            self._rotate()

    def _rotate(self) -> None:
        try:
            self._path.replace(self._path.with_suffix(".log.1"))
        except OSError:
            self._size = 0
            return
        self._open()


def _quoted(value: object) -> str:
    text = str(value)
    plain = text and text.isprintable() and not any(mark in text for mark in " \"'=")
    return text if plain else repr(text)
