"""The parent of one hook of a node: runs it, ends every process that it leaves, and reports.

The runner forks it without exec. If the runner dies, the keeper ends the hook and itself.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from typing import Any, NoReturn

from odcd.runner import kernel, processes
from odcd.runner.hooks import program
from odcd.runner.hooks.environment import user_name
from odcd.runner.hooks.program import Outcome
from odcd.runner.limits import Limits
from odcd.runner.waiting import any_left

_PAUSE_S = 0.01


def keep(channel: socket.socket, lock_fd: int, order: dict[str, Any], limits: Limits) -> NoReturn:
    """order: {"path", "env", "limit_s", "owners"}. lock_fd: the file of the member, which stays
    locked until no process of the hook is left. Sends {"why", "output", "size"}."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        program.close_all_but({channel.fileno(), lock_fd})
        limits.restore()
        kernel.become_subreaper()
        kernel.name_process("odc-hook")
        outcome = _run(order, channel.fileno())
        _end_all()
        # The member's next hook may begin as soon as it is reported.
        os.close(lock_fd)
        answer = {"why": outcome.why, "size": outcome.size, "output": _printable(outcome.tail)}
        channel.setblocking(True)
        channel.send(json.dumps(answer).encode())
    except OSError:
        pass
    finally:
        os._exit(0)


def _run(order: dict[str, Any], closed_fd: int) -> Outcome:
    why = program.refusal(order["path"], order["owners"])
    if why is not None:
        return Outcome(why)
    env = order["env"]
    env["SLURM_JOB_USER"] = user_name(env["SLURM_JOB_UID"])
    try:
        return program.run(order["path"], env, order["limit_s"], closed_fd=closed_fd)
    except OSError as error:
        return Outcome(f"cannot start: {error.strerror}")


def _end_all() -> None:
    """Also processes that detached themselves: this process is their subreaper."""
    while any_left():
        processes.kill_below(os.getpid())
        time.sleep(_PAUSE_S)


def _printable(output: bytes) -> str:
    text = output.decode(errors="replace").strip()
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
