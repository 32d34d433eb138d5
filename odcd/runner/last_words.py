"""A line at the end of a job's output about an end that the script itself could not report: its
time limit, or a lack of memory. The words are Slurm's, since tools search for them."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Any, NoReturn

from odcd.runner import record
from odcd.runner.begin import CannotBegin, enter, open_file
from odcd.runner.uids import groups_of

WRITE_S = 5.0
"""A file that takes longer gets no line."""


def last_words(order: dict[str, Any], record_fd: int, status: int, oom_kills: int) -> str | None:
    """The line, for the first node of a job without a terminal; None: there is nothing to say."""
    env = order["env"]
    if order["terminal"] or env.get("ODC_RANK", "0") != "0":
        return None
    job, node = env.get("ODC_JOB_ID", "?"), env.get("ODC_NODE", "?")
    control = record.read(record_fd)["control"]
    if control and control.get("cause") == "timeout":
        at = time.strftime("%Y-%m-%dT%H:%M:%S")
        return f"slurmstepd: error: *** JOB {job} ON {node} CANCELLED AT {at} DUE TO TIME LIMIT ***"
    if oom_kills and status:
        events = f"{oom_kills} oom_kill event{'' if oom_kills == 1 else 's'}"
        return (
            f"slurmstepd: error: Detected {events} in StepId={job}.batch. "
            "The job was out of memory."
        )
    return None


def append(order: dict[str, Any], line: str) -> None:
    """Add the line to the file of standard error, as the job's user. All processes of the job have
    ended. Never fails: without the file, only the line is lost."""
    try:
        child = os.fork()
    except OSError:
        return
    if child == 0:
        _write(order, f"{line}\n".encode())
    ended = os.pidfd_open(child)
    try:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        if not poll.poll(WRITE_S * 1000):
            os.kill(child, signal.SIGKILL)
            poll.poll(WRITE_S * 1000)
        # A child that waits for its file server forever is not waited for.
        os.waitpid(child, os.WNOHANG)
    finally:
        os.close(ended)


def _write(order: dict[str, Any], line: bytes) -> NoReturn:
    code = 1
    try:
        if order["switch_user"]:
            os.setgroups(groups_of(order["uid"], order["gid"]))
            os.setresgid(order["gid"], order["gid"], order["gid"])
            os.setresuid(order["uid"], order["uid"], order["uid"])
        enter(order["work_dir"])
        path = (order["stderr"] or order["stdout"])["path"]
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC
        os.write(open_file(path, flags, "output file"), line)
        code = 0
    except (CannotBegin, OSError, ValueError):
        pass
    finally:
        os._exit(code)
