"""Preparation of a job's process before it executes the script."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Any

from odcd.runner import kernel

_OUTPUT = os.O_WRONLY | os.O_CREAT | os.O_NOCTTY | os.O_CLOEXEC

# null, zero, full, random, urandom
_DEVICES = frozenset(os.makedev(1, minor) for minor in (3, 5, 7, 8, 9))

# Errors that may be gone in a minute on the same machine: space, processes, files, a server's
# answer.
_PASSING = frozenset({
    errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO,
    errno.ESTALE, errno.ETIMEDOUT, errno.EINTR, errno.ETXTBSY,
})  # fmt: skip


class CannotBegin(Exception):
    """The text is for the user: the action, the path and the reason. passing: a retry may
    succeed."""

    def __init__(self, text: str, *, passing: bool) -> None:
        super().__init__(text)
        self.passing = passing

    @classmethod
    def by(cls, what: str, error: OSError | ValueError) -> CannotBegin:
        if isinstance(error, OSError):
            return cls(f"{what}: {error.strerror}", passing=error.errno in _PASSING)
        return cls(f"{what}: {error}", passing=False)


def enter(path: str) -> None:
    try:
        os.chdir(path)
    except (OSError, ValueError) as error:
        raise CannotBegin.by(f"cannot enter the working directory {path}", error) from None


def open_input(order: dict[str, Any]) -> int:
    path = order["stdin"]
    if path is None or path == os.devnull:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    return open_file(path, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC, "input file")


def open_outputs(order: dict[str, Any]) -> list[int]:
    """Descriptors of stdout and stderr; the same one twice if they are the same file."""
    out = _open_output("output file", order["stdout"])
    if not order["stderr"]:
        return [out, out]
    try:
        return [out, _open_output("error file", order["stderr"])]
    except CannotBegin:
        os.close(out)
        raise


def _open_output(what: str, output: dict[str, Any]) -> int:
    flags = _OUTPUT
    flags |= os.O_TRUNC if output["truncate"] else 0
    flags |= os.O_APPEND if output["append"] else 0
    return open_file(output["path"], flags, what)


def open_file(path: str, flags: int, what: str) -> int:
    """Never waits for another process, and never opens a file that could make the job wait."""
    try:
        fd = os.open(path, flags | os.O_NONBLOCK, 0o666)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENXIO:
            # A FIFO without a reader, or a socket.
            raise _wrong_kind(what, path) from None
        raise CannotBegin.by(f"cannot open the {what} {path}", error) from None
    status = os.fstat(fd)
    # /proc/self would be the runner's fork here, with the memory layout of root's process.
    if stat.S_ISREG(status.st_mode):
        harmless = not kernel.is_kernels_own(fd)
    else:
        harmless = _is_harmless(status)
    if not harmless:
        os.close(fd)
        raise _wrong_kind(what, path)
    os.set_blocking(fd, True)
    return fd


def _is_harmless(status: os.stat_result) -> bool:
    """/dev/null and similar devices, which answer at once."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev in _DEVICES


def _wrong_kind(what: str, path: str) -> CannotBegin:
    return CannotBegin(
        f"cannot open the {what} {path}: it is neither a regular file nor /dev/null; "
        "open FIFOs, sockets and devices in the script",
        passing=False,
    )


def close(fds: list[int]) -> None:
    for fd in set(fds):
        with contextlib.suppress(OSError):
            os.close(fd)
