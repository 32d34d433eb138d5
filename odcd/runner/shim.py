"""The parent of one member's processes: starts them, waits for all of them, and records the end.

The runner forks it without exec and gives it one member after the other. If the runner dies
meanwhile, the shim still watches its member until it ends, then exits. It runs as root if the
runner does; no code of the job runs in it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any, NoReturn

from odcd.runner import cgroup, descriptors, job, kernel, processes, record
from odcd.runner.begin import CannotBegin
from odcd.runner.hooks.batch import run_batch_epilog
from odcd.runner.last_words import append, last_words
from odcd.runner.limits import Limits
from odcd.runner.prepare import Preparer
from odcd.runner.spool import Spool
from odcd.runner.terminal import Terminal
from odcd.runner.waiting import Children, any_left, take_used

LEFTOVER_GRACE_S = 2.0
"""The time between TERM and KILL for processes that outlive the script."""


def run(channel: socket.socket, limits: Limits) -> NoReturn:
    """Run the members that arrive over the channel until it closes; never returns.

    An order arrives as the descriptors [record, order text, gate?]. Each answer is one JSON object:
    {"e": "started", "pid", "at"}, then {"e": "ended", "status", "oom", "at",
    "used": see take_used}; or
    {"e": "failed", "detail", "at"}.
    """
    code = 1
    try:
        gc.disable()
        signal.set_wakeup_fd(-1)
        _close_all_but(channel.fileno())
        children = Children()
        limits.restore()
        kernel.become_subreaper()
        kernel.name_process("odc-shim")
        preparer = Preparer()
        channel.setblocking(True)
        while True:
            data, fds = descriptors.receive(channel, 16, 3)
            if not data:
                break
            _serve(channel, fds, children, preparer)
        code = 0
    except OSError:
        pass
    finally:
        os._exit(code)


def _serve(channel: socket.socket, fds: list[int], children: Children, preparer: Preparer) -> None:
    record_fd, order_fd, *gates = fds
    order: dict[str, Any] = json.loads(os.pread(order_fd, os.fstat(order_fd).st_size, 0))
    os.close(order_fd)
    gate_fd = gates[0] if gates else None
    terminal: Terminal | None = None
    try:
        if order["terminal"]:
            terminal = Terminal(order)
    except OSError as error:
        answer = _failed(CannotBegin.by("cannot make a terminal", error))
    else:
        answer = _see_through(channel, order, record_fd, gate_fd, terminal, children, preparer)
    _keep(record_fd, record.EXIT, answer)
    # This frees the lock: from now on the record has all information.
    os.close(record_fd)
    if terminal:
        terminal.finish(answer.get("status", 0))
    _report(channel, answer)


def _see_through(
    channel: socket.socket,
    order: dict[str, Any],
    record_fd: int,
    gate_fd: int | None,
    terminal: Terminal | None,
    children: Children,
    preparer: Preparer,
) -> dict[str, Any]:
    """Run the job's process until all its descendants have ended. Returns the exit record."""
    spool = None
    try:
        spool = Spool(order) if order["spool"] else None
        child = _make(order, record_fd, gate_fd, terminal, spool, children, preparer)
    except (CannotBegin, OSError) as error:
        failure = error if isinstance(error, CannotBegin) else CannotBegin.by("cannot start", error)
        _end_leftovers(order, spool)
        return _failed(failure)
    take_used()  # Helpers before it do not count.
    answer = {"e": "started", "pid": child, "at": time.time()}
    _keep(record_fd, record.STARTED, answer)
    _report(channel, answer)
    status = (
        terminal.serve(child)
        if terminal
        else children.wait_for(child, spool.serving() if spool else {})
    )
    oom_kills = 0
    failed = run_batch_epilog(order, children, spool.serving() if spool else {})

    def words() -> str | None:
        nonlocal oom_kills
        oom_kills = cgroup.oom_kills(order["cgroup"]) if order["cgroup"] else 0
        lines = filter(None, (failed, last_words(order, record_fd, status, oom_kills)))
        return "\n".join(lines) or None

    _end_leftovers(order, spool, words)
    ended = {"e": "ended", "status": status, "oom": oom_kills, "at": time.time()}
    return {**ended, "used": take_used()}


def _make(
    order: dict[str, Any],
    record_fd: int,
    gate_fd: int | None,
    terminal: Terminal | None,
    spool: Spool | None,
    children: Children,
    preparer: Preparer,
) -> int:
    """Return the process that now runs the script. Raises CannotBegin."""
    try:
        ready = preparer.prepare(order)
        try:
            # If this shim dies from now on, there may be a process to look for.
            ready.begun.write(record_fd, 0)
            read_end, write_end = os.pipe()
            child = os.fork()
            if child == 0:
                tty_fd = terminal.slave if terminal else None
                ends = spool.ends if spool else []
                if spool:
                    spool.leave()
                job.become(order, ready, record_fd, write_end, gate_fd, tty_fd, ends)
            os.close(write_end)
            _wait_until_closed(read_end)
        finally:
            preparer.finish(ready)
    finally:
        if spool:
            spool.begun()
        if gate_fd is not None:
            os.close(gate_fd)
    outcome = os.read(read_end, job.MAX_OUTCOME_BYTES)
    os.close(read_end)
    if outcome != job.EXECUTING:
        raise _failure(outcome, children.wait_for(child, {}))
    return child


def _failure(outcome: bytes, status: int) -> CannotBegin:
    """The failure of a forked process that never executed the script."""
    report = outcome.removeprefix(job.EXECUTING)
    for passing, mark in job.FAILED.items():
        if report.startswith(mark):
            return CannotBegin(report[1:].decode(errors="replace"), passing=passing)
    how = f"by signal {os.WTERMSIG(status)} " if os.WIFSIGNALED(status) else ""
    return CannotBegin(f"ended {how}before the script began", passing=True)


def _failed(failure: CannotBegin) -> dict[str, Any]:
    """As much of the text as fits the record, printable characters only."""
    printable = "".join(c if c.isprintable() else "?" for c in str(failure))
    detail = printable.encode(errors="replace")[: record.DETAIL_BYTES].decode(errors="ignore")
    return {"e": "failed", "detail": detail, "passing": failure.passing, "at": time.time()}


def _end_leftovers(
    order: dict[str, Any], spool: Spool | None, words: Callable[[], str | None] | None = None
) -> None:
    """Return only when no process of the member is left and their output is kept. words: the line
    to add to it, if any."""
    if any_left():
        _end_what_is_left(order, spool)
    if spool:
        spool.drain()
    if words is not None and (line := words()):
        if spool:
            spool.add_line(line)
        else:
            append(order, line)
    if spool:
        spool.close()


def _end_what_is_left(order: dict[str, Any], spool: Spool | None) -> None:
    below = processes.descendants(os.getpid())
    processes.signal_all(below, signal.SIGTERM)
    processes.signal_all(below, signal.SIGCONT)
    deadline = time.monotonic() + LEFTOVER_GRACE_S
    pause = 0.002
    while any_left():
        time.sleep(pause)
        if spool:
            spool.drain()
        pause = min(pause * 2, 0.1)
        if time.monotonic() > deadline:
            if order["cgroup"]:
                cgroup.kill(order["cgroup"])
            processes.kill_below(os.getpid())
        if time.monotonic() > deadline + LEFTOVER_GRACE_S:
            processes.free_of_tracers(os.getpid(), order["uid"])


def _keep(record_fd: int, region: tuple[int, int], answer: dict[str, Any]) -> None:
    # The runner is informed as well, so losing only the file loses nothing.
    with contextlib.suppress(OSError):
        record.write(record_fd, region, answer)


def _report(channel: socket.socket, answer: dict[str, Any]) -> None:
    # If the runner is down, it reads the record when it returns.
    with contextlib.suppress(OSError):
        channel.send(json.dumps(answer).encode())


def _wait_until_closed(fd: int) -> None:
    """Sleep until no process has the other end. Data written to it wakes no one: while the fork
    lives, each page that this process writes to is copied."""
    poll = select.poll()
    poll.register(fd, 0)
    poll.poll()


def _close_all_but(kept: int) -> None:
    os.closerange(3, kept)
    os.closerange(kept + 1, 1 << 20)
