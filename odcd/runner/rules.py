"""The operator's rules for jobs of this machine: users, process limits, kept output, hooks.

When a daemon starts, it writes RUN_DIR/rules, as root if root starts it. The runner reads the file
when it starts and whenever it changes. Once the daemon has given up root, it cannot write the file:
its later requests are checked against these rules.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path

NAME = "rules"
MIN_UID = 1000
OUTPUT_MIB = 1024
OUTPUT_TOTAL_MIB = 10_240
HOOK_TIMEOUT_S = 60.0
MAX_BYTES = 65536

Limit = tuple[int | None, int | None]
"""Soft and hard limit; None: unlimited."""


def _kernel_processes() -> int:
    """Half of the processes that the kernel allows: of its threads, as for its first process, and
    of its process ids, so that one user cannot take them all."""
    found = [_kernel_number("threads-max"), _kernel_number("pid_max")]
    known = [number for number in found if number is not None]
    return max(1024, min(known) // 2) if known else 32768


def _kernel_number(name: str) -> int | None:
    try:
        with open(f"/proc/sys/kernel/{name}") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def default_limits() -> dict[str, Limit]:
    """Every limit of a job, by the kernel's name in lowercase; in bytes, seconds or counts.

    They are those of a fresh login, with unlimited locked memory for InfiniBand and EFA.
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
    prolog: str | None = None
    epilog: str | None = None
    task_prolog: str | None = None
    task_epilog: str | None = None
    prolog_timeout_s: float = HOOK_TIMEOUT_S
    epilog_timeout_s: float = HOOK_TIMEOUT_S
    task_prolog_timeout_s: float = HOOK_TIMEOUT_S
    task_epilog_timeout_s: float = HOOK_TIMEOUT_S


def write(run_dir: Path, rules: Rules) -> None:
    """Write the file only if the rules changed: the disk may be full.

    Raises OSError, also when the folder belongs to another user, or is another user's link.
    """
    with contextlib.suppress(FileExistsError):
        run_dir.mkdir(parents=True)
    link = run_dir.lstat()
    # Our own link is allowed: an operator may have put the folder on another disk.
    foreign = stat.S_ISLNK(link.st_mode) and link.st_uid != os.geteuid()
    folder = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW * foreign)
    made = f"{NAME}.new"
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "the folder belongs to another user", str(run_dir))
        # Jobs of all users must reach their script below it, but must not list it.
        os.fchmod(folder, 0o711)
        if Reader(run_dir).read and Reader(run_dir).rules == rules:
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(made, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(made, flags, 0o600, dir_fd=folder)
        try:
            os.write(fd, json.dumps(asdict(rules)).encode())
        finally:
            os.close(fd)
        os.replace(made, NAME, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


class Reader:
    """The current rules. A file that is not ours, or incomplete, does not count: the defaults
    apply."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / NAME
        self._seen: tuple[int, int] | None = None
        self.read = False
        """Whether these are the rules of a file, not the defaults."""
        self.rules = Rules()
        self.refresh()

    def refresh(self) -> None:
        """Read them again if the file has changed."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            self._seen, self.rules, self.read = None, Rules(), False
            return
        try:
            status = os.fstat(fd)
            seen = status.st_ino, status.st_mtime_ns
            if seen != self._seen:
                self._seen = seen
                ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                self.rules = _parse(os.read(fd, MAX_BYTES)) if ours else Rules()
                self.read = ours
        finally:
            os.close(fd)


def _parse(data: bytes) -> Rules:
    try:
        settings = json.loads(data)
        limits = {name: (soft, hard) for name, (soft, hard) in settings.pop("limits").items()}
        known = {name: settings[name] for name in Rules.__slots__ if name in settings}
        return Rules(limits={**default_limits(), **limits}, **known)
    except (ValueError, TypeError, AttributeError, KeyError):
        return Rules()
