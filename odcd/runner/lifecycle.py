"""A member's life after its launch: it begins and ends, and the daemon receives the facts."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from odcd.runner import cgroup, record
from odcd.runner.attempts import Attempts
from odcd.runner.ending import Ending
from odcd.runner.facts import Facts
from odcd.runner.files import Files
from odcd.runner.hooks.epilogs import run_epilogs
from odcd.runner.hooks.hooks import Hooks
from odcd.runner.log import Log
from odcd.runner.loop import Loop
from odcd.runner.members import Member, outcome
from odcd.runner.steps.book import Steps

NEVER_BEGAN = {
    "e": "failed", "passing": True, "detail": "the process that should have started it died",
}  # fmt: skip
STEPS_GRACE_S = 2.0
"""The time between TERM and KILL for steps that outlive the batch script."""
UNWATCHED = {
    "e": "lost",
    "detail": "the process that watched it was killed; how it ended is unknown",
}


class Lifecycle:
    def __init__(
        self, loop: Loop, log: Log, attempts: Attempts, files: Files, facts: Facts, steps: Steps,
        hooks: Hooks,
    ) -> None:  # fmt: skip
        self.ending = Ending(loop, files.path, self.fail_queued, steps)
        self._steps = steps
        self._hooks = hooks
        self._log = log
        self._attempts = attempts
        self._files = files
        self._facts = facts

    def begin(self, member: Member, answer: dict[str, Any]) -> None:
        """The script runs. answer: the shim's message or record about it."""
        member.state = "running"
        member.job_pid = answer["pid"]
        self._facts.report(member, member.fact("started", answer["at"]))
        self.ending.began(member)

    def shim_died(self, member: Member) -> None:
        """Its shim was killed: use the record, or end the remaining processes and report it as
        lost."""
        member.shim_pid = None
        self._log.error("shim.died", member=member.key)
        self.settle_by_record(member)

    def settle_by_record(self, member: Member) -> None:
        """Its shim has ended: the end is the recorded one, or follows from the missing parts of the
        record.

        The result is written down too, so that the next runner reports the same.
        """
        path = self._files.path(member.key)
        try:
            regions = record.read_file(path)
        except OSError as error:
            self._log.error("record.unreadable", member=member.key, error=error)
            regions = record.UNREADABLE
        ended, begun = regions["exit"], regions["begun"]
        if regions["started"] and member.state != "running":
            self.begin(member, regions["started"])
        if ended:
            self.settle(member, outcome(ended, member.cause))
            return
        if begun is not None:
            member.job_pid, member.ticks = begun["pid"] or None, begun["ticks"]
        # Also if it never began: its process may be about to start.
        answer = NEVER_BEGAN if begun is None else UNWATCHED
        self.ending.end_orphans(member, lambda: self.settle_for_good(member, answer))

    def settle_for_good(self, member: Member, answer: dict[str, Any]) -> None:
        """It has ended, and no shim recorded how: record the answer as its end."""
        answer = {**answer, "at": time.time()}
        with contextlib.suppress(OSError):
            record.write_file(self._files.path(member.key), record.EXIT, answer)
        self.settle(member, outcome(answer, member.cause))

    def settle(self, member: Member, end: dict[str, Any]) -> None:
        """It has ended, for whatever reason: none of its processes is left. end: the fact to
        report, see odcd.runner.members.outcome."""
        if member.released is not None and end["kind"] == "exited":
            end = {**end, "exit_code": member.released, "signal": None, "cause": None}
        member.state = "ended"
        member.order = None
        member.timers += 1
        member.shim_pid = None
        job, attempt, _ = member.key
        if self._attempts.first_live(job, attempt) is None:
            # The job's GPUs must not be free before its steps are gone, too.
            member.has_steps = self._steps.stop_before(
                job, attempt, STEPS_GRACE_S, lambda: self._end_job(member, end)
            )
            if not member.has_steps:
                self._end_job(member, end)
            return
        self._finish(member, end)

    def _end_job(self, member: Member, end: dict[str, Any]) -> None:
        """No process of the job is left here: run its epilogs, then report the last end."""
        member.has_steps = False
        member.has_hooks = True

        def done(drains: dict[str, str]) -> None:
            member.has_hooks = False
            if drains:
                self.ending.keep_drains(member, {**member.drains, **drains})
            self._finish(member, {**end, "drains": member.drains} if member.drains else end)

        run_epilogs(self._hooks, member.key, done)

    def _finish(self, member: Member, end: dict[str, Any]) -> None:
        if member.cgroup:
            cgroup.remove(member.cgroup)
        self._facts.report(member, member.fact(**end))

    def fail_queued(self, member: Member, detail: str) -> None:
        """It never began, and will not."""
        self._attempts.attempt_of(member).passed_gate(member.key.rank)
        detail = detail[: record.DETAIL_BYTES]
        self.settle(member, {"kind": "start_failed", "at": time.time(),
                              "cause": member.cause or "launch", "detail": detail})  # fmt: skip
