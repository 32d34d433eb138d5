"""The steps that this runner knows: it starts them, ends them with their job, and keeps how they
ended until the daemon has acknowledged that.

A step's files are in RUN_DIR/steps: <job>-<attempt>-<step> is its record (see odcd.runner.record),
and with .journal and .socket, what its supervisor has.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from odcd.runner import cgroup, children, processes, protocol, record, socket_paths
from odcd.runner.cgroup import Cgroups
from odcd.runner.hooks.task import task_hooks
from odcd.runner.limits import Limits
from odcd.runner.log import Log
from odcd.runner.loop import Loop
from odcd.runner.orders import mark_of
from odcd.runner.protocol import ProtocolError
from odcd.runner.record import Key
from odcd.runner.rules import Rules
from odcd.runner.steps import keeping, supervisor
from odcd.runner.steps.step import Step
from odcd.runner.terminal import frame

MAX_REPORTED = 500
"""Ends in one answer."""
KILL_AGAIN_S = 0.25
STUCK_S = 5.0
"""A supervisor that lives so long after its step should have been killed is killed itself."""
LOST = {"e": "lost", "detail": "the process that watched the step was killed"}


class Steps:
    def __init__(
        self, run_dir: Path, loop: Loop, log: Log, cgroups: Cgroups, limits: Limits,
        rules: Callable[[], Rules],
    ) -> None:  # fmt: skip
        self.run_dir = run_dir
        self.folder = run_dir / "steps"
        self._loop = loop
        self._log = log
        self._cgroups = cgroups
        self._limits = limits
        self._rules = rules
        self._steps: dict[Key, Step] = {}

    # -- starts -----------------------------------------------------------------------------------

    def start(self, order: dict[str, Any]) -> None:
        """Start a step, unless it was started already. Raises OSError, KeyError, TypeError or
        ValueError; then there is no step."""
        key = Key(int(order["job"]), int(order["attempt"]), int(order["step"]))
        if key in self._steps:
            return
        ranks = {int(task["rank"]) for task in order["tasks"]}
        groups = {str(rank): self._group(key, rank) for rank in ranks}
        step = Step(key, int(order["uid"]), self._mark(key), [g for g in groups.values() if g])
        order = {
            **order, "cgroups": groups, "limits": self._rules().limits,
            "hooks": task_hooks(self._rules()),
            "switch_user": os.geteuid() == 0, "env": {**order["env"], processes.MARK: step.mark},
        }  # fmt: skip
        intent: dict[str, Any] = {"uid": step.uid, "mark": step.mark, "at": time.time(),
                                  "cgroups": step.cgroups[:4]}  # fmt: skip
        while intent["cgroups"] and not record.fits(record.INTENT, intent):
            intent["cgroups"].pop()
        record_fd = record.create(self.path_of(key), intent)
        try:
            gc.freeze()
            step.pid = children.fork()
            if step.pid == 0:
                supervisor.run(order, self._paths(key), record_fd, self._limits)
        except OSError:
            self.path_of(key).unlink(missing_ok=True)
            raise
        finally:
            os.close(record_fd)
        self._steps[key] = step
        self._log.info("step.starts", step=key, uid=step.uid, tasks=len(order["tasks"]))
        self.follow(step)

    def _group(self, key: Key, rank: int) -> str | None:
        """A group below that of the job on this node, so that the job's limits hold for it, too."""
        parent = self._cgroups.find(str(Key(key.job, key.attempt, rank)))
        if parent is None:
            return None
        path = f"{parent}/step-{key.rank}"
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        return path

    def _mark(self, key: Key) -> str:
        return f"step-{mark_of(key, self.run_dir)}"

    def path_of(self, key: Key) -> Path:
        return self.folder / str(key)

    def _paths(self, key: Key) -> dict[str, str]:
        return {name: f"{self.path_of(key)}.{name}" for name in ("journal", "socket")}

    # -- ends -------------------------------------------------------------------------------------

    def follow(self, step: Step) -> None:
        assert step.pid is not None
        try:
            step.watch_fd = os.pidfd_open(step.pid)
        except OSError:
            self.ended(step)
            return
        self._loop.watch(step.watch_fd, lambda _: self.ended(step))

    def ended(self, step: Step) -> None:
        """Its supervisor has ended."""
        if step.watch_fd is not None:
            self._loop.forget(step.watch_fd)
            os.close(step.watch_fd)
            step.watch_fd = None
        step.pid = None
        try:
            end = record.read_file(self.path_of(step.key))["exit"]
        except OSError:
            end = None
        if end is None:
            self._log.error("step.supervisor_died", step=step.key)
            self.end_orphans(step, LOST)
        elif end["e"] == "failed":
            # It could not wait for its tasks, and may have left some.
            self.end_orphans(step, end)
        else:
            self.settle(step, end)

    def end_orphans(self, step: Step, end: dict[str, Any]) -> None:
        for group in step.cgroups:
            cgroup.kill(group)
        left = processes.leftovers(step.mark, step.uid, None, 0) + children.strays()
        if left or any(cgroup.populated(group) for group in step.cgroups):
            processes.signal_all(left, signal.SIGKILL)
            self._loop.at(time.time() + KILL_AGAIN_S, lambda: self.end_orphans(step, end))
            return
        end = {**end, "at": time.time()}
        with contextlib.suppress(OSError):
            record.write_file(self.path_of(step.key), record.EXIT, end)
        for group in step.cgroups:
            cgroup.remove(group)
        self.settle(step, end)

    def settle(self, step: Step, end: dict[str, Any]) -> None:
        step.end = end
        step.ended_at = time.monotonic()
        with contextlib.suppress(OSError):
            step.kept_bytes = os.stat(self._paths(step.key)["journal"]).st_blocks * 512
        waiting, step.waiting = step.waiting, []
        for callback in waiting:
            callback()

    # -- requests ---------------------------------------------------------------------------------

    def live_of(self, job: int, attempt: int) -> list[Step]:
        return [s for s in self._steps.values() if s.live and s.key[:2] == (job, attempt)]

    def live_attempts(self) -> set[tuple[int, int]]:
        return {(s.key.job, s.key.attempt) for s in self._steps.values() if s.live}

    def signal(self, job: int, attempt: int, number: int, step: int | None = None) -> bool:
        """Send a signal to all processes of the job's steps, or of one; False: it has none."""
        found = [s for s in self.live_of(job, attempt) if step is None or s.key.rank == step]
        for one in found:
            if one.pid is not None:
                processes.signal_all(processes.descendants(one.pid), number)
        return bool(found)

    def stop(
        self, job: int, attempt: int, number: int, grace_s: float, *, timeout: bool = False,
        step: int | None = None,
    ) -> None:  # fmt: skip
        for one in self.live_of(job, attempt):
            if step is None or one.key.rank == step:
                request = {"signal": number, "grace_s": grace_s, "timeout": timeout}
                self._tell(one, frame(b"k", json.dumps(request).encode()))
                self._loop.at(
                    time.time() + max(0.0, grace_s) + STUCK_S, lambda one=one: self._kill(one)
                )

    def stop_before(self, job: int, attempt: int, grace_s: float, done: Callable[[], None]) -> bool:
        """The job is over: end its steps, and call done when none is left. False: it has none."""
        live = self.live_of(job, attempt)
        if not live:
            return False

        def check() -> None:
            if not self.live_of(job, attempt):
                done()

        for step in live:
            step.waiting.append(check)
        self.stop(job, attempt, signal.SIGTERM, grace_s)
        return True

    def _kill(self, step: Step) -> None:
        """Its supervisor should have ended it long ago: it may be stopped, or hang."""
        if step.live and step.pid is not None:
            self._log.error("step.stuck", step=step.key)
            processes.kill_below(step.pid)
            with contextlib.suppress(OSError):
                os.kill(step.pid, signal.SIGCONT)
                os.kill(step.pid, signal.SIGKILL)

    def _tell(self, step: Step, message: bytes) -> None:
        try:
            with self.connect(step.key) as sock:
                sock.sendall(message)
        except (OSError, ProtocolError):
            # It is only starting, or hangs: its processes get the signal at least.
            if step.pid is not None:
                self._loop.at(time.time() + 0.05, lambda: self._tell_again(step, message))

    def _tell_again(self, step: Step, message: bytes) -> None:
        if step.live:
            self._tell(step, message)

    def add(self, step: Step) -> None:
        self._steps[step.key] = step

    def find(self, key: Key) -> Step | None:
        return self._steps.get(key)

    def connect(self, key: Key) -> socket.socket:
        """A connection to its supervisor. Raises ProtocolError."""
        step = self._steps.get(key)
        if step is None or not step.live:
            raise ProtocolError(protocol.NOT_FOUND, f"step {key} is not running")
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            socket_paths.connect(sock, self._paths(key)["socket"])
        except OSError as error:
            sock.close()
            text = f"step {key} accepts no one now: {error.strerror}"
            raise ProtocolError(protocol.NOT_READY, text) from None
        sock.setblocking(True)
        return sock

    def open_journal(self, key: Key) -> int:
        """Raises ProtocolError."""
        try:
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
            return os.open(self._paths(key)["journal"], flags)
        except OSError as error:
            known = key in self._steps and self._steps[key].live
            code = protocol.NOT_READY if known else protocol.NOT_FOUND
            text = f"step {key} has no output: {error.strerror}"
            raise ProtocolError(code, text) from None

    def acknowledge(self, key: Key, *, forget: bool) -> None:
        """Its end is recorded. forget: its client has everything, too."""
        step = self._steps.get(key)
        if step is not None and not step.live:
            step.acknowledged = True
            if forget:
                self._forget(step)

    def _forget(self, step: Step) -> None:
        self._steps.pop(step.key, None)
        for path in (*self._paths(step.key).values(), str(self.path_of(step.key))):
            with contextlib.suppress(OSError):
                os.unlink(path)

    # -- regularly --------------------------------------------------------------------------------

    def list(self, keys: Collection[Key]) -> list[dict[str, Any]]:
        """These steps, as far as they are known, and all ends that were not acknowledged."""
        unacknowledged = [
            s for s in self._steps.values() if not s.live and not s.acknowledged
        ][:MAX_REPORTED]  # fmt: skip
        found = {s.key: s for s in unacknowledged}
        found |= {key: self._steps[key] for key in keys if key in self._steps}
        return [s.fact() for s in found.values()]

    def look_after(self) -> None:
        too_much = keeping.surplus(self._steps.values(), time.monotonic())
        for step in too_much.steps:
            self._forget(step)
        for step in too_much.journals:
            step.kept_bytes = 0
            with contextlib.suppress(OSError):
                os.unlink(self._paths(step.key)["journal"])
