"""CPU time, memory and disk use of a job's processes."""

from __future__ import annotations

import resource
from dataclasses import dataclass

_BLOCK_KIB = 0.5
"""The kernel counts blocks of 512 bytes."""


@dataclass(slots=True)
class Used:
    """Sums over processes that have ended and were waited for. max_rss_kib: the largest resident
    set of one of them. It is never smaller than that of the process that odc forked, about 20 MiB.
    """

    user_s: float = 0.0
    system_s: float = 0.0
    max_rss_kib: int = 0
    read_blocks: int = 0
    written_blocks: int = 0

    def add(self, usage: resource.struct_rusage) -> None:
        self.user_s += usage.ru_utime
        self.system_s += usage.ru_stime
        self.max_rss_kib = max(self.max_rss_kib, usage.ru_maxrss)
        self.read_blocks += usage.ru_inblock
        self.written_blocks += usage.ru_oublock

    def numbers(self) -> list[int]:
        """CPU time in user mode and in system mode, in ms; the largest resident set, and what was
        read from and written to disks, in KiB."""
        return [
            round(1000 * self.user_s), round(1000 * self.system_s), self.max_rss_kib,
            round(self.read_blocks * _BLOCK_KIB), round(self.written_blocks * _BLOCK_KIB),
        ]  # fmt: skip
