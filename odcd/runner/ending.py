"""How members end: signals, grace, KILL, and the time limit."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from odcd.runner import cgroup, children, processes, record
from odcd.runner.loop import Loop
from odcd.runner.members import Member
from odcd.runner.record import Key
from odcd.runner.steps.book import Steps

KILL_AGAIN_S = 0.25
STUCK_S = 2.0
"""If processes are left so long after a KILL, their tracers are killed, too, and a shim that still
waits to start."""
_FOR_ALL = (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT)


class Ending:
    def __init__(
        self, loop: Loop, path_of: Callable[[Key], Path], drop: Callable[[Member, str], None],
        steps: Steps,
    ) -> None:  # fmt: skip
        """drop: settle a queued member as never begun, with a reason."""
        self._steps = steps
        self._loop = loop
        self._path_of = path_of
        self._drop = drop

    def stop(self, member: Member, number: int, grace_s: float) -> None:
        """Signal every process; KILL them when the grace period is over. A repeated stop can only
        be stricter, and does not send the same signal twice."""
        if member.state == "ended":
            return
        if member.state == "queued":
            self._drop(member, "stopped before it started")
            return
        if number == signal.SIGKILL:
            grace_s = 0.0
        job, attempt, _ = member.key
        self._steps.stop(job, attempt, number, grace_s, timeout=member.cause == "timeout")
        kill_at = time.time() + max(0.0, grace_s)
        repeats = member.kill_at is not None and member.stop_signal == number
        member.stop_signal = number
        member.kill_at = kill_at if member.kill_at is None else min(kill_at, member.kill_at)
        self._write_control(member)
        if grace_s > 0.0 and not repeats:
            self._deliver_stop(member)
        self.arm(member)

    def _deliver_stop(self, member: Member) -> None:
        if member.shim_pid is not None and member.stop_signal is not None:
            below = processes.descendants(member.shim_pid)
            processes.signal_all(below, member.stop_signal)
            # A stopped process handles no other signal before it is continued.
            processes.signal_all(below, signal.SIGCONT)

    def signal(self, member: Member, number: int, *, batch_only: bool) -> None:
        """Send a signal: only to the batch shell, or to the processes it started (or became, by an
        exec)."""
        if member.state == "starting":
            member.early_signals.append((number, batch_only))
        if member.state != "running" or member.shim_pid is None:
            return
        below = processes.descendants(member.shim_pid)
        shell = [process for process in below if process.pid == member.job_pid]
        others = [process for process in below if process.pid != member.job_pid]
        if batch_only:
            processes.signal_all(shell, number)
        elif number in _FOR_ALL:
            processes.signal_all(below, number)
        else:
            processes.signal_all(others or shell, number)

    def set_end(self, member: Member, ends_at: float | None) -> None:
        member.ends_at = ends_at
        if member.state in ("starting", "running"):
            self._write_control(member)
            self.arm(member)

    def began(self, member: Member) -> None:
        """The script runs now. Earlier signals may have found no process."""
        self._deliver_stop(member)
        self.arm(member)
        early, member.early_signals = member.early_signals, []
        for number, batch_only in early:
            self.signal(member, number, batch_only=batch_only)

    def arm(self, member: Member) -> None:
        """Set the member's timers again, from its current state."""
        member.timers += 1
        generation = member.timers

        def at(moment: float, action: Callable[[Member], None]) -> None:
            def act() -> None:
                if member.live and member.timers == generation:
                    action(member)

            self._loop.at(moment, act)

        if member.kill_at is not None:
            at(member.kill_at, self._kill)
        elif member.ends_at is not None:
            at(member.ends_at, self._time_out)
            if member.end_signal and member.state == "running":
                at(member.ends_at - member.end_signal.before_s, self._send_end_signal)

    def _send_end_signal(self, member: Member) -> None:
        due, member.end_signal = member.end_signal, None
        self._write_control(member)
        if due and not (not due.batch_only and self._steps.signal(*member.key[:2], due.number)):
            self.signal(member, due.number, batch_only=due.batch_only)

    def _time_out(self, member: Member) -> None:
        if member.cause is None:
            member.cause = "timeout"
        self.stop(member, signal.SIGTERM, member.grace_s)

    def _kill(self, member: Member) -> None:
        """KILL everything, again and again until the end is reported."""
        if member.cgroup:
            cgroup.kill(member.cgroup)
        if member.stuck_at is None:
            member.stuck_at = time.time() + STUCK_S
        if member.shim_pid is not None:
            processes.kill_below(member.shim_pid)
            if time.time() > member.stuck_at:
                processes.free_of_tracers(member.shim_pid, member.uid)
            # A stopped shim would never report the end.
            with contextlib.suppress(OSError):
                os.kill(member.shim_pid, signal.SIGCONT)
                if member.state == "starting" and time.time() > member.stuck_at:
                    # It waits for something that never happens. The death of a shim is handled
                    # elsewhere.
                    os.kill(member.shim_pid, signal.SIGKILL)
        member.kill_at = time.time() + KILL_AGAIN_S
        self.arm(member)

    def end_orphans(self, member: Member, done: Callable[[], None]) -> None:
        """The shim is dead: KILL its remaining processes, and call done when none is left."""
        if member.cgroup:
            cgroup.kill(member.cgroup)
        left = processes.leftovers(member.mark, member.uid, member.job_pid, member.ticks)
        # Strays belong to this member, or to another one whose shim was killed as well.
        left += children.strays()
        if not left and not (member.cgroup and cgroup.populated(member.cgroup)):
            done()
            return
        processes.signal_all(left, signal.SIGKILL)
        self._loop.at(time.time() + KILL_AGAIN_S, lambda: self.end_orphans(member, done))

    def keep_drains(self, member: Member, drains: dict[str, str]) -> None:
        """The nodes to drain, for a later runner if this one cannot report them. Too many for the
        record are forgotten with this runner."""
        member.drains = drains
        if record.fits(record.CONTROL, member.control()):
            self._write_control(member)

    def _write_control(self, member: Member) -> None:
        # Only a later runner reads it, so a write error has no effect on this runner.
        with contextlib.suppress(OSError):
            record.write_file(self._path_of(member.key), record.CONTROL, member.control())
