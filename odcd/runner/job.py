"""From a fork of the shim to the script: everything a job's process does before it is the job."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import resource
import signal
import termios
import time
from typing import Any, NoReturn

from odcd.runner import processes, record

EXECUTING = b"x"
FAILED = b"!"

_RESET = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGPIPE, signal.SIGXFSZ,
)  # fmt: skip
_OUTPUT = os.O_WRONLY | os.O_CREAT | os.O_NOCTTY | os.O_CLOEXEC


class _CannotBegin(Exception):
    pass


def become(
    order: dict[str, Any], record_fd: int, status_fd: int, gate_fd: int | None, tty_fd: int | None
) -> NoReturn:
    """Run the script of the order in this process; never returns.

    status_fd: told EXECUTING just before the script, or FAILED and why; closed by the script's exec.
    gate_fd: see _pass_gate. tty_fd: the terminal to be in, if the job has one.
    """
    try:
        os.setsid()
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _write_begun(record_fd)
        # The job must not hold the lock that tells whether the shim lives.
        os.close(record_fd)
        spool = _open_spool(order) if order["spool"] else None
        _limit(order)
        if order["switch_user"]:
            _switch_user(order)
        os.umask(order["umask"])
        _change_directory(order["work_dir"])
        if tty_fd is not None:
            _take_terminal(tty_fd)
        else:
            _open_streams(order, spool, gate_fd)
        os.write(status_fd, EXECUTING)
        _execute(order)
    except _CannotBegin as failure:
        detail = str(failure)
    except OSError as error:
        detail = f"cannot start: {error.strerror}"
    except BaseException as error:
        detail = f"cannot start: {type(error).__name__}: {error}"
    printable = "".join(c if c.isprintable() else "?" for c in detail)
    with contextlib.suppress(OSError):
        os.write(status_fd, FAILED + printable.encode(errors="replace")[: record.DETAIL_BYTES])
    os._exit(127)


def _write_begun(record_fd: int) -> None:
    me = processes.describe(os.getpid())
    record.write(
        record_fd,
        record.BEGUN,
        {
            "pid": os.getpid(),
            "ticks": me.started if me else 0,
            "shim": os.getppid(),
            "at": time.time(),
        },
    )


def _open_spool(order: dict[str, Any]) -> tuple[int, int]:
    """Output that odcd keeps: in the runner's folder, so it is made before the user is switched to."""
    fds: list[int] = []
    for path in order["spool"]:
        try:
            fd = os.open(path, _OUTPUT | os.O_TRUNC | os.O_APPEND, 0o600)
            if order["switch_user"]:
                os.fchown(fd, order["uid"], order["gid"])
        except OSError as error:
            raise _CannotBegin(f"cannot keep output in {path}: {error.strerror}") from None
        fds.append(fd)
    return fds[0], fds[1]


def _limit(order: dict[str, Any]) -> None:
    if order["cgroup"]:
        try:
            with open(f"{order['cgroup']}/cgroup.procs", "w") as file:
                file.write("0")
        except OSError as error:
            raise _CannotBegin(f"cannot join {order['cgroup']}: {error.strerror}") from None
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, tuple(order["nofile"]))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, order["niceness"])
    if order["switch_user"]:
        # The runner is shielded from the kernel's out-of-memory killer; a job is not.
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("0")


def _switch_user(order: dict[str, Any]) -> None:
    uid, gid = order["uid"], order["gid"]
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        groups = [gid]
    else:
        groups = os.getgrouplist(name, gid)
    try:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise _CannotBegin(f"cannot become uid {uid}, gid {gid}: {error.strerror}") from None


def _change_directory(path: str) -> None:
    try:
        os.chdir(path)
    except (OSError, ValueError) as error:
        raise _CannotBegin(f"cannot enter the working directory {path}: {_why(error)}") from None


def _open_streams(
    order: dict[str, Any], spool: tuple[int, int] | None, gate_fd: int | None
) -> None:
    stdin = order["stdin"] or "/dev/null"
    fds = [_open("input file", stdin, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)]
    if spool:
        fds += spool
    else:
        if order["wait_gate"]:
            _pass_gate(gate_fd)
        out = _open_output("output file", order["stdout"])
        fds += [out, _open_output("error file", order["stderr"]) if order["stderr"] else out]
    for number, fd in enumerate(fds):
        os.dup2(fd, number)


def _pass_gate(gate_fd: int | None) -> None:
    """Wait until rank 0 has opened, and emptied, the output file all ranks share.

    Rank 0 holds the gate's write end until its exec, whatever becomes of it; nothing is ever written.
    """
    if gate_fd is not None:
        os.read(gate_fd, 1)


def _open_output(what: str, output: dict[str, Any]) -> int:
    flags = _OUTPUT
    flags |= os.O_TRUNC if output["truncate"] else 0
    flags |= os.O_APPEND if output["append"] else 0
    return _open(what, output["path"], flags)


def _open(what: str, path: str, flags: int) -> int:
    try:
        return os.open(path, flags, 0o666)
    except (OSError, ValueError) as error:
        raise _CannotBegin(f"cannot open the {what} {path}: {_why(error)}") from None


def _take_terminal(tty_fd: int) -> None:
    fcntl.ioctl(tty_fd, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(tty_fd, number)


def _execute(order: dict[str, Any]) -> None:
    script = order["script"]
    try:
        os.execve(script, [script, *order["args"]], order["env"])
    except (OSError, ValueError) as error:
        raise _CannotBegin(f"cannot execute the script: {_why(error)}") from None


def _why(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
