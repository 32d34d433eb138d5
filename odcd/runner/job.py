"""The path from the shim's fork to the job's script.

Everything that runs as the job's user happens here. The shim itself never takes any of the user's
ids, so the user can neither signal nor trace it. Anything that blocks here, such as a file on a
slow server, is below the shim and ends with the job.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import termios
from typing import Any, NoReturn

from odcd.runner import limits
from odcd.runner.begin import CannotBegin, enter, open_input, open_outputs
from odcd.runner.hooks.task import run_task_prolog
from odcd.runner.prepare import Prepared

EXECUTING = b"x"
FAILED = {False: b"!", True: b"?"}
"""The first byte of a failure, by whether a retry may succeed; the reason follows."""
MAX_OUTCOME_BYTES = 32768
"""The limit for the whole message: less than a pipe accepts at once."""


def become(
    order: dict[str, Any],
    prepared: Prepared,
    record_fd: int,
    status_fd: int,
    gate_fd: int | None,
    tty_fd: int | None,
    spool_ends: list[int],
) -> NoReturn:
    """Run the script of the order in this process; never returns.

    status_fd: receives EXECUTING just before the script starts, or FAILED and the reason; the exec
    of the script closes it. gate_fd: see _pass_gate. tty_fd: the job's terminal, if it has one.
    spool_ends: used instead of output files if odc keeps the output.
    """
    failure = CannotBegin("", passing=True)
    try:
        os.setsid()
        prepared.begun.write(record_fd, os.getpid())
        # The job must not hold the lock that shows whether the shim lives.
        os.close(record_fd)
        limits.apply(prepared.limits, ordinary=prepared.ordinary)
        if prepared.group_fd is not None:
            _join(prepared.group_fd)
        if prepared.groups is not None:
            _switch_user(order["uid"], order["gid"], prepared.groups)
        os.umask(order["umask"])
        enter(order["work_dir"])
        if tty_fd is not None:
            _take_terminal(tty_fd)
        else:
            os.dup2(open_input(order), 0)
            if order["wait_gate"]:
                _pass_gate(gate_fd)
            out, err = spool_ends or open_outputs(order)
            os.dup2(out, 1)
            os.dup2(err, 2)
        env = run_task_prolog(order.get("hooks"), order["env"])
        os.write(status_fd, EXECUTING)
        _execute(order, env)
    except CannotBegin as error:
        failure = error
    except BaseException as error:
        failure = CannotBegin(f"cannot start: {error}", passing=True)
    with contextlib.suppress(OSError):
        report = FAILED[failure.passing] + str(failure).encode(errors="replace")
        os.write(status_fd, report[: MAX_OUTCOME_BYTES - len(EXECUTING)])
    os._exit(127)


def _join(group_fd: int) -> None:
    try:
        os.write(group_fd, b"0")
    except OSError as error:
        raise CannotBegin(f"cannot join its cgroup: {error.strerror}", passing=True) from None


def _switch_user(uid: int, gid: int, groups: list[int]) -> None:
    try:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except (OSError, ValueError) as error:
        raise CannotBegin.by(f"cannot become uid {uid}, gid {gid}", error) from None


def _pass_gate(gate_fd: int | None) -> None:
    """Wait until rank 0 has opened, and truncated, the output file that all ranks share.

    Rank 0 holds the gate's write end until its exec or its end. Nothing is ever written to it.
    """
    if gate_fd is not None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.read(gate_fd, 1)


def _take_terminal(tty_fd: int) -> None:
    fcntl.ioctl(tty_fd, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(tty_fd, number)


def _execute(order: dict[str, Any], env: dict[str, str]) -> None:
    script = order["script"]
    try:
        os.execve(script, [script, *order["args"]], env)
    except (OSError, ValueError) as error:
        interpreter = _missing_interpreter(script)
        part = f"'s interpreter {interpreter}" if interpreter else ""
        raise CannotBegin.by(f"cannot execute the script{part}", error) from None


def _missing_interpreter(script: str) -> str | None:
    """The program of the script's #! line, if it cannot be executed; the kernel's error does not
    name it."""
    try:
        with open(script, "rb") as file:
            first = file.read(256).split(b"\n", 1)[0]
    except (OSError, ValueError):
        return None
    words = first.removeprefix(b"#!").split()
    if not first.startswith(b"#!") or not words or os.access(words[0], os.X_OK):
        return None
    return words[0].decode(errors="replace")
