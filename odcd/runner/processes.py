"""Find and end every process of a member, even if it detached itself.

A shim is the subreaper of its member: a process that forks twice or creates its own session is
still the shim's descendant. Only if the shim itself was killed, its processes are found by their
session and by the mark in their environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import NamedTuple

from odcd.runner.subuids import Owner

MARK = "ODC_MEMBER"
_PROC = Path("/proc")
_FREEZE_ROUNDS = 20
_LISTS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()


class Process(NamedTuple):
    """Identifies a process, also if its pid is used again later."""

    pid: int
    started: int
    """Clock ticks since boot, from /proc/<pid>/stat."""


def describe(pid: int) -> Process | None:
    """None: there is no such process, or only its zombie."""
    fields = _stat(pid)
    return Process(pid, int(fields[19])) if fields and _lives(fields) else None


def _lives(fields: list[str]) -> bool:
    """Whether it is alive. A process whose first thread has ended looks like a zombie while other
    threads run."""
    return fields[0] not in "ZX" or int(fields[17]) > 1


def descendants(root: int) -> list[Process]:
    """Every living process below root, parents first; root itself is not included."""
    found: list[Process] = []
    queue = [root]
    while queue:
        for child in children(queue.pop()):
            process = describe(child)
            if process:
                found.append(process)
            queue.append(child)
    return found


def send(process: Process, number: int) -> None:
    """Send it a signal, unless it has ended and its pid belongs to another process by now."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        if describe(process.pid) == process:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        pass
    finally:
        os.close(handle)


def exit_status(pid: int) -> int | None:
    """The wait status of a zombie, read without reaping it. None: it is alive, or already
    reaped."""
    fields = _stat(pid)
    return int(fields[49]) if fields and not _lives(fields) and len(fields) > 49 else None


def signal_all(processes: list[Process], number: int) -> None:
    for process in processes:
        send(process, number)


def kill_below(root: int) -> None:
    """KILL all descendants. Stopping them first keeps a fork bomb from outrunning the search."""
    stopped: set[Process] = set()
    for _ in range(_FREEZE_ROUNDS):
        new = [process for process in descendants(root) if process not in stopped]
        if not new:
            break
        signal_all(new, signal.SIGSTOP)
        stopped.update(new)
    signal_all(list(stopped), signal.SIGKILL)


def free_of_tracers(root: int, uid: int) -> None:
    """KILL the user's tracers of killed processes below root.

    A tracer can stop a dying process before it releases anything, and no signal continues it.
    """
    owner = Owner(uid)
    for process in descendants(root):
        tracer = describe(_tracer(process.pid))
        if tracer and owner.has(tracer.pid):
            send(tracer, signal.SIGKILL)


def _tracer(pid: int) -> int:
    """0: it has none."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(b"TracerPid:"):
                return int(line.split()[1])
    return 0


def leftovers(mark: str, uid: int, session: int | None, since: int) -> list[Process]:
    """Processes of a member whose shim has died.

    mark: the value of ODC_MEMBER that they inherited. session: the pid of the member's first
    process, which created its session. since: the start time of that process in ticks, so that a
    reused number is not mistaken for it.
    """
    found: list[Process] = []
    owner = Owner(uid)
    variable = f"{MARK}={mark}".encode()
    for pid in _all_pids():
        entry = _PROC / str(pid)
        try:
            if not owner.has(pid):
                continue
            fields = _stat(pid)
            if not fields or not _lives(fields):
                continue
            of_session = session is not None and int(fields[3]) == session
            if (of_session and int(fields[19]) >= since) or (
                variable in (entry / "environ").read_bytes().split(b"\0")
            ):
                found.append(Process(pid, int(fields[19])))
        except OSError:
            continue
    return found


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/<pid>/stat from the state on; the name before it may contain any
    characters."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        text = os.read(fd, 4096)
    except OSError:
        return None
    finally:
        os.close(fd)
    return text[text.rindex(b")") + 2 :].decode().split()


def children(pid: int) -> list[int]:
    """Pids of all children, including zombies."""
    if not _LISTS_CHILDREN:
        return [other for other in _all_pids() if (_stat(other) or ["", ""])[1] == str(pid)]
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                fd = os.open(f"/proc/{pid}/task/{task}/children", os.O_RDONLY)
                try:
                    found += map(int, _read_all(fd).split())
                finally:
                    os.close(fd)
    return found


def _read_all(fd: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(fd, 65536):
        parts.append(part)
    return b"".join(parts)
