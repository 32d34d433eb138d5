"""From a fork of the shim to the script.

Everything that is done as the job's user happens here: the shim itself never has the user's
identity, in whichever sense, so the user can neither signal nor trace it. What waits here, a file
of a slow server for example, is below the shim, and ends with the job.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import termios
import time
from typing import Any, NoReturn

from odcd.runner import kernel, limits, processes, record
from odcd.runner.begin import CannotBegin, enter, open_input, open_outputs
from odcd.runner.uids import groups_of

EXECUTING = b"x"
FAILED = {False: b"!", True: b"?"}
"""By whether another try may succeed; the reason follows."""


def become(
    order: dict[str, Any],
    record_fd: int,
    status_fd: int,
    gate_fd: int | None,
    tty_fd: int | None,
    spool_ends: list[int],
) -> NoReturn:
    """Run the script of the order in this process; never returns.

    status_fd: told EXECUTING just before the script, or FAILED and why; closed by the script's
    exec. gate_fd: see _pass_gate. tty_fd: the terminal to be in, if the job has one.
    spool_ends: instead of output files, if odc keeps the output.
    """
    failure = CannotBegin("", passing=True)
    try:
        os.setsid()
        # Ours, those that Python ignores, and those that whoever started odcd ignored.
        for number in range(1, signal.NSIG):
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        write_begun(record_fd, os.getpid(), os.getppid())
        # The job must not hold the lock that tells whether the shim lives.
        os.close(record_fd)
        limits.apply(order["limits"])
        kernel.leave_session_keyring()
        if order["cgroup"]:
            _join(order["cgroup"])
        if order["switch_user"]:
            _switch_user(order["uid"], order["gid"])
        os.umask(order["umask"])
        enter(order["work_dir"])
        if tty_fd is not None:
            _take_terminal(tty_fd)
        else:
            fds = [open_input(order)]
            if order["wait_gate"]:
                _pass_gate(gate_fd)
            for number, fd in enumerate(fds + (spool_ends or open_outputs(order))):
                os.dup2(fd, number)
        os.write(status_fd, EXECUTING)
        _execute(order)
    except CannotBegin as error:
        failure = error
    except BaseException as error:
        failure = CannotBegin(f"cannot start: {error}", passing=True)
    with contextlib.suppress(OSError):
        os.write(status_fd, FAILED[failure.passing] + str(failure).encode(errors="replace"))
    os._exit(127)


def write_begun(record_fd: int, pid: int, shim: int) -> None:
    """pid 0: there is no process yet, but from now on there may be one."""
    process = processes.describe(pid) if pid else None
    ticks = process.started if process else 0
    facts = {"pid": pid, "ticks": ticks, "shim": shim, "at": time.time()}
    record.write(record_fd, record.BEGUN, facts)


def _join(group: str) -> None:
    try:
        with open(f"{group}/cgroup.procs", "w") as file:
            file.write("0")
    except OSError as error:
        raise CannotBegin(f"cannot join {group}: {error.strerror}", passing=True) from None


def _switch_user(uid: int, gid: int) -> None:
    try:
        os.setgroups(groups_of(uid, gid))
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except (OSError, ValueError) as error:
        raise CannotBegin.by(f"cannot become uid {uid}, gid {gid}", error) from None


def _pass_gate(gate_fd: int | None) -> None:
    """Wait until rank 0 has opened, and emptied, the output file all ranks share.

    Rank 0 holds the gate's write end until its exec, whatever becomes of it; nothing is ever
    written.
    """
    if gate_fd is not None:
        os.read(gate_fd, 1)


def _take_terminal(tty_fd: int) -> None:
    fcntl.ioctl(tty_fd, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(tty_fd, number)


def _execute(order: dict[str, Any]) -> None:
    script = order["script"]
    try:
        os.execve(script, [script, *order["args"]], order["env"])
    except (OSError, ValueError) as error:
        raise CannotBegin.by("cannot execute the script", error) from None
