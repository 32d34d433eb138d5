"""How tasks and steps ended, in Slurm's words."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable

_NAMES = {
    signal.SIGHUP: "Hangup", signal.SIGINT: "Interrupt", signal.SIGQUIT: "Quit",
    signal.SIGILL: "Illegal instruction", signal.SIGTRAP: "Trace/breakpoint trap",
    signal.SIGABRT: "Aborted", signal.SIGBUS: "Bus error",
    signal.SIGFPE: "Floating point exception", signal.SIGKILL: "Killed",
    signal.SIGUSR1: "User defined signal 1", signal.SIGSEGV: "Segmentation fault",
    signal.SIGUSR2: "User defined signal 2", signal.SIGPIPE: "Broken pipe",
    signal.SIGALRM: "Alarm clock", signal.SIGTERM: "Terminated",
    signal.SIGXCPU: "CPU time limit exceeded", signal.SIGXFSZ: "File size limit exceeded",
}  # fmt: skip


def exit_code(status: int) -> int:
    """The exit code for a task's wait status: 128 and the signal if one ended it."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def describe_failure(host: str, tasks: Iterable[int], status: int) -> str:
    """The line that srun prints about tasks of one node that failed in the same way."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        how = _NAMES.get(signal.Signals(number), f"Unknown signal {number}") if (
            number in signal.valid_signals()
        ) else f"Unknown signal {number}"  # fmt: skip
        how += " (core dumped)" if os.WCOREDUMP(status) else ""
    else:
        how = f"Exited with exit code {os.WEXITSTATUS(status)}"
    return f"srun: error: {host}: {name_tasks(tasks)}: {how}"


def name_tasks(tasks: Iterable[int]) -> str:
    """`task 3`, or `tasks 0-2,5`."""
    numbers = sorted(tasks)
    return f"task{'s' if len(numbers) > 1 else ''} {ranges(numbers)}"


def ranges(numbers: Iterable[int]) -> str:
    """0-2,5 for 0, 1, 2 and 5, in ascending order."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def describe_cancel(step: str, host: str, why: str) -> str:
    """slurmstepd's line in the output of a step that is being ended."""
    at = time.strftime("%Y-%m-%dT%H:%M:%S")
    return f"slurmstepd-{host}: error: *** STEP {step} ON {host} CANCELLED AT {at}{why} ***"
