"""Refuse new jobs while the disk of the embedded database is almost full.

PostgreSQL stops when it cannot write its log. So submits and uploads are refused before that, and
the rest of the disk is left for ending, cancelling and changing jobs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from odcd.clock import Clock
from odcd.errors import BadRequest, DiskAlmostFull

log = logging.getLogger(__name__)

NAME = "ODC_DISK_RESERVE_MIB"
LOOK_S = 1.0
MIB = 1024 * 1024
MAX_MIB = 1_000_000
DEFAULT_MIB = 512
DEFAULT_PART = 50
"""By default a fiftieth of the disk, at most 512 MiB: less than kept output leaves free."""


def read_reserve(environment: Mapping[str, str]) -> int | None:
    """The reserve in MiB; None if the variable is not set. Raises BadRequest."""
    text = environment.get(NAME)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 9 and int(text) <= MAX_MIB):
        raise BadRequest(
            f'{NAME}="{text[:100]}" is not a number of MiB', f"Give 1 to {MAX_MIB}, or 0 for none."
        )
    return int(text)


class DiskReserve:
    """folder: on the database's disk. mib: the space to keep free; None: the default; 0: none."""

    def __init__(self, folder: Path, mib: int | None, clock: Clock) -> None:
        self._folder = folder
        self._mib = mib
        self._clock = clock
        self._looked_at: float | None = None
        self._free = self._reserved = 0
        self._full = False

    def check(self) -> None:
        """Raises DiskAlmostFull. Checks the disk at most once a second."""
        self._look()
        if self._full:
            raise DiskAlmostFull(
                f"the disk of {self._folder} has {self._free // MIB} MiB free, less than the "
                f"reserve of {self._reserved // MIB} MiB",
                f"Free space there; odcd then accepts jobs again. Operators set {NAME}.",
            )

    def free_bytes(self) -> int:
        self._look()
        return self._free

    def reserved_bytes(self) -> int:
        self._look()
        return self._reserved

    def _look(self) -> None:
        now_s = self._clock.monotonic()
        if self._looked_at is not None and now_s < self._looked_at + LOOK_S:
            return
        self._looked_at = now_s
        try:
            disk = os.statvfs(self._folder)
        except OSError as error:
            # The database itself reports what is wrong with its disk.
            log.warning("disk.unknown", extra={"folder": str(self._folder), "why": str(error)})
            self._full = False
            return
        size = disk.f_blocks * disk.f_frsize
        mib = self._mib
        self._free = disk.f_bavail * disk.f_frsize
        self._reserved = min(size // DEFAULT_PART, DEFAULT_MIB * MIB) if mib is None else mib * MIB
        full = self._free < self._reserved
        if full != self._full:
            facts = {"folder": str(self._folder), "free_mib": self._free // MIB}
            if full:
                log.error("disk.almost_full", extra=facts)
            else:
                log.info("disk.has_space", extra=facts)
        self._full = full
