"""The audit log: who changed what, from where and with which result, and which requests were
refused.

Each line is one JSON object. It has no bodies, headers or query strings, so no keys, tickets or
secrets. Lines are buffered briefly and written by a thread, so that no request waits for a disk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from odcd.audit.refusal_meter import RefusalMeter
from odcd.clock import Clock
from odcd.errors import OdcError

log = logging.getLogger(__name__)

FLUSH_S = 0.25
"""The maximum time a line stays in memory: a killed daemon loses this much."""
MAX_LINES = 100_000
"""The number of lines kept while the file cannot be written. After that the newest are lost, and
the log reports how many."""
MODE = 0o640
STDOUT = "-"


class AuditLog:
    """place: the path of a file, or - for standard output."""

    def __init__(self, place: str, clock: Clock) -> None:
        """Raises OdcError when the file cannot be opened for appending."""
        self._place = place
        self._clock = clock
        self._lines: list[bytes] = []
        self.refusals = RefusalMeter(clock)
        self._lost = 0
        self._failing = False
        self._writing = threading.Lock()
        self._encode = msgspec.json.Encoder().encode
        self._descriptor = -1
        try:
            self._descriptor = self._open()
        except OSError as error:
            raise OdcError(
                f"the audit log {place} cannot be opened: {error.strerror}",
                "Use a folder that the daemon's account may write to.",
            ) from error

    def note(self, facts: Mapping[str, Any]) -> None:
        """Record an event with the current time. This takes microseconds."""
        if len(self._lines) >= MAX_LINES:
            self._lost += 1
            return
        at = self._clock.now().astimezone(UTC)
        self._lines.append(self._encode({"at": _iso(at), **facts}) + b"\n")

    async def run(self) -> None:
        """Write the buffered lines until cancelled."""
        while True:
            await self._clock.sleep(FLUSH_S)
            if self._lines:
                await asyncio.to_thread(self.flush)

    def flush(self) -> None:
        """Write all lines now; lines that cannot be written are kept."""
        with self._writing:
            self._flush()

    def _flush(self) -> None:
        lines = self._lines
        taken = len(lines)
        data = b"".join(lines[:taken])
        try:
            self._reopen()
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            # Unwritten lines are written again as a whole; a part that was written already remains.
            done = taken - data.count(b"\n")
            del lines[:done]
            if not self._failing:
                log.error("audit.unwritten", extra={"place": self._place, "why": error.strerror})
            self._failing = True
            return
        del lines[:taken]
        self._failing = False
        if self._lost:
            log.error("audit.lost", extra={"lines": self._lost})
            self._lost = 0

    def close(self) -> None:
        """Write the remaining lines and close the file."""
        self.flush()
        if self._place != STDOUT:
            with suppress(OSError):
                os.close(self._descriptor)

    def _open(self) -> int:
        if self._place == STDOUT:
            return 1
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self._place, flags, MODE)

    def _reopen(self) -> None:
        """If the file was renamed or removed, continue in a new file of that name."""
        if self._place == STDOUT:
            return
        ours = os.fstat(self._descriptor)
        with suppress(FileNotFoundError):
            there = os.lstat(self._place)
            if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                return
        fresh = self._open()
        os.close(self._descriptor)
        self._descriptor = fresh


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"
