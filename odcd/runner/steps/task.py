"""The path from the supervisor's fork to a task's program."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import signal
import termios
from typing import Any, NamedTuple, NoReturn

from odcd.runner import limits
from odcd.runner.begin import CannotBegin, open_file
from odcd.runner.hooks.task import become_task_epilog, run_task_prolog
from odcd.runner.prepare import Prepared

_MODE = os.O_WRONLY | os.O_CREAT | os.O_NOCTTY | os.O_CLOEXEC
RESET = frozenset({
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
})  # fmt: skip
"""The supervisor's handlers for these must not be those of a task that has not executed yet."""
FALLBACK_DIR = "/tmp"
"""Where a task starts if its working directory cannot be entered, as in Slurm."""


class Ends(NamedTuple):
    """The task's ends of its pipes; None: a file, or nothing."""

    stdin: int | None
    stdout: int | None
    stderr: int | None
    terminal: int | None


def become(
    order: dict[str, Any], task: dict[str, Any], prepared: Prepared, ends: Ends, status_fd: int,
    nofile: tuple[int, int],
) -> NoReturn:  # fmt: skip
    """Run the task's program in this process; never returns. status_fd: receives lines for srun's
    standard error. nofile: the limit of open files to begin with."""
    code = 1
    try:
        for number in RESET:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.setsid()
        resource.setrlimit(resource.RLIMIT_NOFILE, nofile)
        limits.apply(prepared.limits, ordinary=prepared.ordinary)
        if prepared.group_fd is not None:
            os.write(prepared.group_fd, b"0")
        _switch_user(order, prepared)
        os.umask(order["umask"])
        _enter(order["work_dir"], status_fd)
        _bind(task, status_fd)
        _connect(order, task, ends)
        code = _execute(order, task, status_fd)
    except CannotBegin as error:
        _tell(status_fd, str(error))
    except BaseException as error:
        _tell(status_fd, f"cannot start the task: {error}")
    os._exit(code)


def become_epilog(
    order: dict[str, Any], task: dict[str, Any], pid: int, prepared: Prepared, status_fd: int,
    nofile: tuple[int, int],
) -> NoReturn:  # fmt: skip
    """Run the task's epilog in this process; never returns. pid: of the task. status_fd: as for
    become."""
    for number in RESET:
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_NOFILE, nofile)
    limits.apply(prepared.limits, ordinary=prepared.ordinary)
    become_task_epilog(order, environment(order, task, pid), prepared.group_fd, status_fd)


def _tell(status_fd: int, text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(status_fd, f"{text[:2000]}\n".encode(errors="replace"))


def _enter(path: str, status_fd: int) -> None:
    try:
        os.chdir(path)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        _tell(status_fd, f"couldn't chdir to `{path}': {why}: going to {FALLBACK_DIR} instead")
        os.chdir(FALLBACK_DIR)


def _bind(task: dict[str, Any], status_fd: int) -> None:
    """Bind the task to its CPUs, as far as this machine has them."""
    if task.get("cpu_ids"):
        try:
            os.sched_setaffinity(0, task["cpu_ids"])
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            _tell(status_fd, f"Unable to bind the task to CPUs {task['cpu_ids']}: {why}")


def _connect(order: dict[str, Any], task: dict[str, Any], ends: Ends) -> None:
    if ends.terminal is not None:
        fcntl.ioctl(ends.terminal, termios.TIOCSCTTY, 0)
        for number in (0, 1, 2):
            os.dup2(ends.terminal, number)
        return
    files = order["files"]
    stdin = ends.stdin
    if stdin is None:
        stdin = open_file(task.get("in") or os.devnull, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC,
                          "stdin file")  # fmt: skip
    out = ends.stdout
    if out is None:
        out = _open_output(files[task["out"]], "stdout file")
    err = ends.stderr
    if err is None:
        err = out if task["err"] == task["out"] else _open_output(files[task["err"]], "stderr file")
    os.dup2(stdin, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)


def _open_output(file: dict[str, Any], what: str) -> int:
    """The supervisor has emptied it already if that was requested."""
    return open_file(file["path"], _MODE | os.O_APPEND, what)


def empty_files(order: dict[str, Any], prepared: Prepared) -> NoReturn:
    """As the user, create and empty the output files; never returns. A task that cannot open its
    file reports that, so failures are ignored here."""
    try:
        _switch_user(order, prepared)
        os.umask(order["umask"])
        for file in order["files"]:
            if file["truncate"]:
                with contextlib.suppress(CannotBegin):
                    os.close(open_file(file["path"], _MODE | os.O_TRUNC, "output file"))
    except OSError:
        pass
    os._exit(0)


def environment(order: dict[str, Any], task: dict[str, Any], pid: int) -> dict[str, str]:
    env = {**order["env"], **order["node_env"].get(str(task["rank"]), {}), **task["env"]}
    return env | {"SLURM_TASK_PID": str(pid)}


def _switch_user(order: dict[str, Any], prepared: Prepared) -> None:
    if prepared.groups is not None:
        os.setgroups(prepared.groups)
        os.setresgid(order["gid"], order["gid"], order["gid"])
        os.setresuid(order["uid"], order["uid"], order["uid"])


def _execute(order: dict[str, Any], task: dict[str, Any], status_fd: int) -> int:
    """Only returns if the program cannot be executed: the exit code, as in Slurm."""
    argv = order["programs"][task["program"]]
    env = run_task_prolog(order.get("hooks"), environment(order, task, os.getpid()))
    try:
        os.execvpe(argv[0], argv, env)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        _tell(status_fd, f"execve(): {argv[0]}: {why}")
        return (error.errno if isinstance(error, OSError) else None) or errno.EINVAL
