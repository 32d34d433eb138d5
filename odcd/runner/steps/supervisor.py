"""The parent of a step's tasks: starts them, keeps their output, and records how they ended.

The runner forks one for each step, without exec. It lives until no process of the step is left,
with or without a runner or a daemon. Its order, from odcd.slurm.steps, is a JSON object:

    {"job", "attempt", "step", "name", "uid", "gid", "umask", "work_dir", "env",
     "node_env": {rank: variables}, "files": [{"path", "truncate"}], "programs": [[word, …], …],
     "tasks": [{"host", "rank", "env", "program", "in", "out", "err", "cpu_ids"}], "stdin": "all", a
     task or null, "pty", "rows", "columns", "ends_at", "kill_on_bad_exit", "wait_s", "grace_s",
     "hooks": see odcd.runner.hooks.task}

in: a path or null. out, err: an index of files, or null: the journal. rank: the job's node.
The exit record and the journal's last frame have the same object:
    {"e": "ended", "state", "code", "statuses": {wait status: tasks}, "started_at", "at", "size",
     "used": see odcd.runner.waiting.take_used}
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import struct
import time
from typing import Any, NoReturn

from odcd.runner import cgroup, kernel, processes, record
from odcd.runner.limits import Limits
from odcd.runner.steps import report
from odcd.runner.steps.clients import Client, Clients
from odcd.runner.steps.journal import EXITED, MESSAGE, OVER, Journal
from odcd.runner.steps.tasks import Tasks
from odcd.runner.waiting import Children, any_left, reap, take_used

LEFTOVER_GRACE_S = 2.0
KILL_AGAIN_S = 0.25
MERGE_S = 0.02
"""Failures of several tasks within this time are reported in one line."""
_OFFSET = struct.Struct(">Q")


def run(order: dict[str, Any], paths: dict[str, str], record_fd: int, limits: Limits) -> NoReturn:
    """paths: those of the step's "journal" and "socket"; never returns."""
    code = 1
    try:
        gc.disable()
        signal.set_wakeup_fd(-1)
        os.closerange(3, record_fd)
        os.closerange(record_fd + 1, 1 << 20)
        children = Children()
        limits.restore()
        kernel.become_subreaper()
        kernel.name_process("odc-step")
        Supervisor(order, paths, record_fd, children).run()
        code = 0
    except BaseException as error:
        processes.kill_below(os.getpid())
        failed = {"e": "failed", "detail": str(error)[: record.DETAIL_BYTES], "at": time.time()}
        with contextlib.suppress(OSError, ValueError):
            record.write(record_fd, record.EXIT, failed)
    finally:
        os._exit(code)


class Supervisor:
    def __init__(
        self, order: dict[str, Any], paths: dict[str, str], record_fd: int, children: Children
    ) -> None:
        self._order = order
        self._name = order["name"]
        self._record_fd = record_fd
        self._selector = selectors.DefaultSelector()
        self._journal = Journal(paths["journal"], order["behind_bytes"])
        self._clients = Clients(paths["socket"], self._selector, self._obey)
        self._tasks = Tasks(order, self._selector, self._journal, record_fd)
        self._children = children
        self._selector.register(children.woken, selectors.EVENT_READ, children.drain)
        self._started_at = time.time()
        self._kill_at: float | None = None
        self._stopping: str | None = None
        """Why the step is being ended: cancelled, timeout or task."""
        self._ends_at: float | None = order["ends_at"]
        self._wait_until: float | None = None
        self._failed: dict[tuple[str, int], list[int]] = {}
        self._failed_at = 0.0
        self._paused = False
        self._credit = 0

    def run(self) -> None:
        self._tasks.begin()
        record.write(self._record_fd, record.STARTED, {"e": "started", "at": self._started_at})
        while not self._tasks.over:
            size = self._journal.size
            for key, _ in self._selector.select(self._timeout()):
                key.data()
            self._collect()
            self._act_on_time()
            self._tell(size)
        self._end_leftovers()
        self._tasks.finish()
        self._report_failures()
        self._finish()

    def _timeout(self) -> float | None:
        moments = [self._kill_at, self._wait_until, self._ends_at if not self._stopping else None,
                   self._failed_at + MERGE_S if self._failed else None]  # fmt: skip
        due = [moment for moment in moments if moment is not None]
        # Times are wall-clock times: a changed clock is noticed within this time.
        return max(0.0, min(2.0, min(due) - time.time())) if due else None

    def _tell(self, size: int) -> None:
        """After a round: news for the clients, and a pause of the output while it is behind."""
        if self._journal.size != size:
            self._clients.tell_all(b"n")
        if self._journal.is_full != self._paused:
            self._paused = self._journal.is_full
            self._tasks.read_output(on=not self._paused)
        if self._tasks.input.received > self._credit and self._tasks.input.accepts:
            self._credit = self._tasks.input.received
            self._clients.tell_all(b"g", _OFFSET.pack(self._credit), owner=True)

    # -- ends of tasks ----------------------------------------------------------------------------

    def _collect(self) -> None:
        """Record the tasks that have ended."""
        for pid, status in _reap():
            number = self._tasks.ended(pid, status)
            if number is None:
                continue
            self._journal.add(EXITED, number, str(status).encode())
            if self._order["wait_s"] and self._wait_until is None:
                self._wait_until = time.time() + self._order["wait_s"]
            if status != 0:
                self._failed_at = self._failed_at if self._failed else time.time()
                self._failed.setdefault((self._tasks.host(number), status), []).append(number)
                if self._order["kill_on_bad_exit"] and self._stopping is None:
                    self._report_failures()
                    self._say(f"srun: Terminating StepId={self._name}")
                    self._stop(signal.SIGTERM, self._order["grace_s"], "task")

    def _report_failures(self) -> None:
        for (host, status), tasks in self._failed.items():
            self._say(report.describe_failure(host, tasks, status))
        self._failed.clear()

    def _say(self, text: str) -> None:
        self._journal.add(MESSAGE, 0, f"{text}\n".encode())

    def _act_on_time(self) -> None:
        now = time.time()
        if self._failed and now >= self._failed_at + MERGE_S:
            self._report_failures()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill()
            self._kill_at = now + KILL_AGAIN_S
        elif self._ends_at is not None and now >= self._ends_at and self._stopping is None:
            self._cancel(signal.SIGTERM, self._order["grace_s"], "timeout", " DUE TO TIME LIMIT")
        elif self._wait_until is not None and now >= self._wait_until and self._stopping is None:
            self._say(f"srun: First task exited {self._order['wait_s']}s ago")
            self._say(f"srun: StepId={self._name} {report.name_tasks(self._tasks.live)}: running")
            self._say(f"srun: Terminating StepId={self._name}")
            self._stop(signal.SIGTERM, self._order["grace_s"], "task")
        if self._wait_until is not None and self._stopping is not None:
            self._wait_until = None

    # -- signals ----------------------------------------------------------------------------------

    def _cancel(self, number: int, grace_s: float, state: str, why: str) -> None:
        if self._stopping is None:
            host = self._tasks.host(0)
            self._say("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.")
            self._say(report.describe_cancel(self._name, host, why))
        self._stop(number, grace_s, state)

    def _stop(self, number: int, grace_s: float, state: str) -> None:
        """End the step: the signal, and KILL after the grace period. A repeated stop can only be
        stricter."""
        if self._stopping is None or state != "task":
            self._stopping = self._stopping if self._stopping in ("cancelled", "timeout") else state
        self._tasks.cancelled = True
        kill_at = time.time() + (0.0 if number == signal.SIGKILL else max(0.0, grace_s))
        self._kill_at = kill_at if self._kill_at is None else min(kill_at, self._kill_at)
        below = processes.descendants(os.getpid())
        processes.signal_all(below, number)
        processes.signal_all(below, signal.SIGCONT)

    def _kill(self) -> None:
        for group in self._tasks.groups:
            cgroup.kill(group)
        processes.kill_below(os.getpid())

    def _end_leftovers(self) -> None:
        """Processes that outlive their task get TERM, and KILL after a short time."""
        if not any_left():
            return
        processes.signal_all(processes.descendants(os.getpid()), signal.SIGTERM)
        deadline = time.time() + LEFTOVER_GRACE_S
        pause = 0.002
        while any_left():
            if not self._journal.is_full:
                self._tasks.drain()
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
            if time.time() > min(deadline, self._kill_at or deadline):
                self._kill()
            if time.time() > deadline + LEFTOVER_GRACE_S:
                processes.free_of_tracers(os.getpid(), self._order["uid"])

    # -- clients ----------------------------------------------------------------------------------

    def _obey(self, client: Client, kind: bytes, data: bytes) -> None:
        if kind == b"h":
            client.owner = bool(json.loads(data or b"{}").get("owner"))
            answer = {"size": self._journal.size, "acknowledged": self._journal.acknowledged,
                      "input": self._tasks.input.received,
                      "accepts": self._tasks.input.accepts}  # fmt: skip
            self._clients.send(client, b"h", json.dumps(answer).encode())
        elif kind == b"a" and client.owner and len(data) == _OFFSET.size:
            self._journal.acknowledge(_OFFSET.unpack(data)[0])
        elif kind == b"i" and client.owner and len(data) >= _OFFSET.size:
            self._tasks.input.give(_OFFSET.unpack_from(data)[0], data[_OFFSET.size :])
        elif kind == b"s" and len(data) == 1:
            processes.signal_all(processes.descendants(os.getpid()), data[0])
        elif kind == b"k":
            request = json.loads(data)
            state = "timeout" if request.get("timeout") else "cancelled"
            why = " DUE TO TIME LIMIT" if state == "timeout" else ""
            self._cancel(int(request["signal"]), float(request["grace_s"]), state, why)
        elif kind == b"r" and len(data) == 4:
            self._tasks.resize(*struct.unpack(">HH", data))

    # -- the end ----------------------------------------------------------------------------------

    def _finish(self) -> None:
        statuses: dict[int, list[int]] = {}
        for number, status in enumerate(self._tasks.statuses):
            statuses.setdefault(status, []).append(number)
        code = max((report.exit_code(status) for status in statuses), default=0)
        state = {"cancelled": "CANCELLED", "timeout": "TIMEOUT"}.get(
            self._stopping or "", "FAILED" if code else "COMPLETED"
        )
        end = {
            "e": "ended", "state": state, "code": code, "started_at": self._started_at,
            "at": time.time(), "size": self._journal.size,
            "statuses": {str(status): report.ranges(tasks) for status, tasks in statuses.items()},
            "used": take_used(),
        }  # fmt: skip
        if not record.fits(record.EXIT, end):
            end["statuses"] = {}
        if self._journal.broken is not None:
            end["broken"] = self._journal.broken
        record.write(self._record_fd, record.EXIT, end)
        self._journal.add(OVER, 0, json.dumps(end).encode())
        self._clients.tell_all(b"n")
        self._clients.close()


def _reap() -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = reap()
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        found.append((pid, status))
