"""The process that starts one child for each request of the submit filter.

The daemon forks it before it has threads. It never runs the site's code itself. For each request it
forks a keeper, which forks the child, ends all that the child leaves, and reports.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import time
from contextlib import suppress
from typing import NoReturn

from odcd.jobs.submit_filter import site_code
from odcd.jobs.submit_filter.target import Target
from odcd.runner import kernel, processes
from odcd.runner.hooks import program
from odcd.runner.hooks.program import Outcome
from odcd.runner.waiting import any_left

MAX_PRINTED = 64 * 1024
REAP_EVERY_MS = 10_000
FDS = 2
"""Of one request: the child's end of its channel, and the keeper's end of the report's."""
_PAUSE_S = 0.01


def start(target: Target) -> socket.socket:
    """Fork the process; it ends when the returned socket is closed. Call it before any thread or
    event loop exists. Raises OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        try:
            _serve(theirs, target)
        finally:
            os._exit(0)
    theirs.close()
    ours.setblocking(False)
    return ours


def _serve(control: socket.socket, target: Target) -> None:
    # The daemon handles the terminal's signals; this process ends when the daemon does.
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    # Above all the home's lock, and the listeners that root has opened.
    program.close_all_but({control.fileno()})
    kernel.name_process("odc-filter")
    gc.freeze()
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        poll.poll(REAP_EVERY_MS)
        _reap()
        try:
            order, fds, _, _ = socket.recv_fds(control, 4096, FDS, socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue
        if not order:
            return
        try:
            if len(fds) == FDS:
                _fork_keeper(control, fds, float(json.loads(order)["limit_s"]), target)
        finally:
            for fd in fds:
                os.close(fd)


def _fork_keeper(control: socket.socket, fds: list[int], limit_s: float, target: Target) -> None:
    """If no process can be created, the daemon finds both ends closed."""
    with suppress(OSError):
        if os.fork() == 0:
            try:
                control.close()
                _keep(socket.socket(fileno=fds[0]), socket.socket(fileno=fds[1]), limit_s, target)
            finally:
                os._exit(0)


def _keep(channel: socket.socket, report: socket.socket, limit_s: float, target: Target) -> None:
    kernel.become_subreaper()

    def become(output: int) -> NoReturn:
        report.close()
        site_code.become(channel, target, output)

    try:
        outcome = program.run_child(
            become, limit_s, closed_fd=report.fileno(), max_output=MAX_PRINTED
        )
    except OSError as error:
        outcome = Outcome(f"cannot start: {error.strerror}")
    while any_left():
        processes.kill_below(os.getpid())
        time.sleep(_PAUSE_S)
    channel.close()
    answer = {"why": outcome.why, "printed": outcome.tail.decode(errors="replace")}
    report.send(json.dumps(answer).encode())


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
