"""CPU time, memory and disk use of jobs and steps, in Slurm's forms."""

from __future__ import annotations

import msgspec


class Used(msgspec.Struct, kw_only=True):
    """See odcd.api.answers.jobs.Used."""

    user_cpu_s: float
    system_cpu_s: float
    max_rss_kib: int
    read_kib: int
    written_kib: int

    @property
    def cpu_s(self) -> float:
        return self.user_cpu_s + self.system_cpu_s

    @classmethod
    def of(cls, numbers: list[int]) -> Used:
        """numbers: see odcd.runner.used.Used.numbers."""
        user_ms, system_ms, rss, read, written = numbers
        return cls(
            user_cpu_s=user_ms / 1000, system_cpu_s=system_ms / 1000, max_rss_kib=rss,
            read_kib=read, written_kib=written,
        )  # fmt: skip


class ResourceUse(Used):
    script: Used | None = None


def precise_clock(seconds: float) -> str:
    """sacct's CPU times: 00:01.250, 02:03:04, 1-02:03:04."""
    whole, ms = divmod(round(1000 * seconds), 1000)
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3600)
    if not days and not hours:
        return f"{rest // 60:02}:{rest % 60:02}.{ms:03}"
    text = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def exact_size(kib: int) -> str:
    """19604K, and 2M for 2048 KiB: the largest unit that needs no rounding."""
    units = "KMGTP"
    at = 0
    while kib and kib % 1024 == 0 and at < len(units) - 1:
        kib, at = kib // 1024, at + 1
    return f"{kib}{units[at]}" if kib else "0"


def mebibytes(kib: int) -> str:
    """12.34M, 0.01M, 0."""
    return f"{kib / 1024:.2f}M".replace(".00M", "M") if kib else "0"
