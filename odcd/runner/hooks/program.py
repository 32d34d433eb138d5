"""Check that only the operator can change a hook, and run it within its limits."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import stat
import time
from collections.abc import Callable, Collection
from typing import NamedTuple, NoReturn

HEAD_BYTES = 64 * 1024
"""How much of the output is kept from its beginning."""
TAIL_BYTES = 1000
"""How much of the output is kept from its end, for the log."""
MAX_LINKS = 40
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_READ_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024
_CANNOT_EXECUTE = 126


class Outcome(NamedTuple):
    why: str | None
    """Why it failed; None: it succeeded."""
    head: bytes = b""
    tail: bytes = b""
    size: int = 0
    """The size of its whole output."""


def refusal(path: str, owners: Collection[int], *, executable: bool = True) -> str | None:
    """Why the program may not run as a hook; None: it may. executable: it must be.

    Only the owners can change the file, a folder on its path, or a link on its path. So nothing can
    change between this check and the execution, except by the owners.
    """
    try:
        return _refusal(path, owners, executable)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return f"{path}: {why}"


def _refusal(path: str, owners: Collection[int], executable: bool) -> str | None:
    if not path.startswith("/"):
        return f"{path} is not an absolute path"
    done, left, links = "/", path.split("/"), 0
    while True:
        status = os.lstat(done)
        if status.st_uid not in owners:
            return f"{done} belongs to user id {status.st_uid}, not to root"
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > MAX_LINKS:
                return f"{path} has too many symbolic links"
            target = os.readlink(done)
            left = target.split("/") + left
            done = "/" if target.startswith("/") else os.path.dirname(done)
            continue
        # In a sticky folder, only the owner of a file can replace it.
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        if status.st_mode & 0o022 and not sticky:
            return f"{done} is writable by its group or by others"
        name = ""
        while left and name in ("", "."):
            name = left.pop(0)
        if name in ("", "."):
            break
        done = os.path.normpath(os.path.join(done, name))
    if not stat.S_ISREG(status.st_mode):
        return f"{path} is not a regular file"
    return f"{path} is not executable" if executable and not status.st_mode & 0o111 else None


def run(
    path: str, env: dict[str, str], limit_s: float, *, closed_fd: int | None = None,
    in_place: bool = False,
) -> Outcome:  # fmt: skip
    """Run the program, wait for its end or its time limit, and KILL what is left of its process
    group. Raises OSError when no process can be created.

    closed_fd: a descriptor whose other end is closed when the program must end at once. in_place:
    the program keeps the working directory and the umask of this process.
    """
    return run_child(
        lambda output: _become(path, env, output, in_place=in_place), limit_s, closed_fd=closed_fd
    )


def run_child(
    become: Callable[[int], NoReturn], limit_s: float, *, closed_fd: int | None = None,
    max_output: int | None = None,
) -> Outcome:  # fmt: skip
    """run(), for a child that does its work in become, which gets the descriptor for its output.
    max_output: the child is killed if it writes more bytes."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        become(writing)
    os.close(writing)
    os.set_blocking(reading, False)
    ended = os.pidfd_open(pid)
    output = _Output(reading)
    try:
        why = _wait(ended, output, time.monotonic() + limit_s, closed_fd, max_output)
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        output.drain()
    finally:
        os.close(ended)
        os.close(reading)
    why = f"did not end within {limit_s:g} s" if why == "late" else why or _describe(status)
    return Outcome(why, bytes(output.head), bytes(output.tail), output.size)


def close_all_but(kept: Collection[int]) -> None:
    """Keeps standard input, output and error, too."""
    start = 3
    for number in sorted(kept):
        os.closerange(start, number)
        start = number + 1
    os.closerange(start, 1 << 20)


class _Output:
    """Keeps the beginning and the end of what it reads, and drops the rest."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.head = bytearray()
        self.tail = b""
        self.size = 0

    def read(self) -> int:
        """The number of bytes read; 0: the end, or nothing for now."""
        try:
            data = os.read(self.fd, _READ_BYTES)
        except BlockingIOError:
            return 0
        self.head += data[: max(0, HEAD_BYTES - len(self.head))]
        self.tail = (self.tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        self.size += len(data)
        return len(data)

    def drain(self) -> None:
        """At most a pipe's capacity: a process that detached itself may continue writing."""
        left = _PIPE_BYTES
        while left > 0 and (size := self.read()):
            left -= size


def _wait(
    ended: int, output: _Output, deadline: float, closed_fd: int | None, max_output: int | None
) -> str | None:
    """None: it has ended. Otherwise why it must."""
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(output.fd, select.POLLIN)
    if closed_fd is not None:
        poll.register(closed_fd, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        ready = dict(poll.poll(left * 1000))
        if ended in ready:
            return None
        if closed_fd in ready:
            return "its runner has ended"
        if output.fd in ready and not output.read() and not ready[output.fd] & select.POLLIN:
            poll.unregister(output.fd)
        if max_output is not None and output.size > max_output:
            return f"printed more than {max_output // 1024} KiB"
    return "late"


def _describe(status: int) -> str | None:
    if os.WIFSIGNALED(status):
        return f"ended by signal {os.WTERMSIG(status)}"
    code = os.WEXITSTATUS(status)
    return f"exit code {code}" if code else None


def detach(output: int, *, in_place: bool = False) -> None:
    """In a child: leave the parent's session, signal handlers and terminal. Raises OSError."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if not in_place:
        os.umask(0o022)
        os.chdir("/")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)


def _become(path: str, env: dict[str, str], output: int, *, in_place: bool) -> NoReturn:
    """Execute the program with this environment only, and no descriptors of ours."""
    try:
        detach(output, in_place=in_place)
        os.closerange(3, 1 << 20)
        os.execve(path, [path], env)
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError):
            os.write(2, f"cannot execute {path}: {error}\n".encode(errors="replace"))
    os._exit(_CANNOT_EXECUTE)
