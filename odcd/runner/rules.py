"""What the operator allows jobs of this machine: users, process limits, kept output.

A daemon's start writes RUN_DIR/rules, as root where root starts it; the runner reads it when it
starts and whenever it changes. The daemon itself, which gives up root, cannot write it: what it
asks for later is checked against the rules.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path

NAME = "rules"
MIN_UID = 1000
OUTPUT_MIB = 1024
OUTPUT_TOTAL_MIB = 10_240
MAX_BYTES = 65536

Limit = tuple[int | None, int | None]
"""Soft and hard; None: unlimited."""


def _kernel_processes() -> int:
    """What the kernel gives its first process: half of all threads it allows."""
    try:
        with open("/proc/sys/kernel/threads-max") as file:
            return max(1024, int(file.read()) // 2)
    except (OSError, ValueError):
        return 32768


def default_limits() -> dict[str, Limit]:
    """Every limit a job has, by the kernel's name in lowercase; bytes, seconds and counts.

    They are those of a fresh login, with locked memory as InfiniBand and EFA need it.
    """
    processes = _kernel_processes()
    unlimited: Limit = (None, None)
    return {
        "as": unlimited, "core": (0, None), "cpu": unlimited, "data": unlimited,
        "fsize": unlimited, "memlock": unlimited, "msgqueue": (819_200, 819_200),
        "nice": (0, 0), "nofile": (1024, 524_288), "nproc": (processes, processes),
        "rss": unlimited, "rtprio": (0, 0), "rttime": unlimited,
        "sigpending": (processes, processes), "stack": (8 * 1024 * 1024, None),
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    min_uid: int = MIN_UID
    allow_root: bool = False
    limits: dict[str, Limit] = field(default_factory=default_limits)
    output_mib: int = OUTPUT_MIB
    output_total_mib: int = OUTPUT_TOTAL_MIB


def write(run_dir: Path, rules: Rules) -> None:
    """Raises OSError."""
    run_dir.mkdir(parents=True, exist_ok=True)
    # Jobs of any user must reach their script below it, and list nothing.
    run_dir.chmod(0o711)
    made = run_dir / f"{NAME}.new"
    made.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(made, flags, 0o600)
    try:
        os.write(fd, json.dumps(asdict(rules)).encode())
    finally:
        os.close(fd)
    made.replace(run_dir / NAME)


class Reader:
    """The rules as they are now. A file that is not ours, or not whole, is none: the defaults."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / NAME
        self._seen: tuple[int, int] | None = None
        self.rules = Rules()
        self.refresh()

    def refresh(self) -> None:
        """Read them again if they were written again."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            self._seen, self.rules = None, Rules()
            return
        try:
            status = os.fstat(fd)
            seen = status.st_ino, status.st_mtime_ns
            if seen != self._seen:
                self._seen = seen
                ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                self.rules = _parse(os.read(fd, MAX_BYTES)) if ours else Rules()
        finally:
            os.close(fd)


def _parse(data: bytes) -> Rules:
    try:
        told = json.loads(data)
        limits = {name: (soft, hard) for name, (soft, hard) in told.pop("limits").items()}
        known = {name: told[name] for name in Rules.__slots__ if name in told}
        return Rules(limits={**default_limits(), **limits}, **known)
    except (ValueError, TypeError, AttributeError, KeyError):
        return Rules()
