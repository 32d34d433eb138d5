"""All members of this runner, and the daemon's requests about them. Each step may be repeated."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

from odcd.runner.attempts import Attempts
from odcd.runner.cgroup import Cgroups
from odcd.runner.facts import Facts
from odcd.runner.files import Files
from odcd.runner.hooks.hooks import Hooks
from odcd.runner.hooks.prologs import Prologs
from odcd.runner.lifecycle import Lifecycle
from odcd.runner.limits import Limits
from odcd.runner.log import Log
from odcd.runner.loop import Loop
from odcd.runner.member_launcher import MemberLauncher
from odcd.runner.members import Member, outcome
from odcd.runner.memory import Memory
from odcd.runner.record import Key
from odcd.runner.shims import Shims
from odcd.runner.starts import Starts
from odcd.runner.steps.book import Steps
from odcd.runner.texts import Texts
from odcd.runner.uids import Users

RELEASE_GRACE_S = 2.0


class Roster:
    def __init__(
        self,
        run_dir: Path,
        loop: Loop,
        log: Log,
        memory: Memory,
        texts: Texts,
        cgroups: Cgroups,
        limits: Limits,
        users: Users,
    ) -> None:
        self.run_dir = run_dir
        self.files = Files(run_dir)
        self.facts = Facts(self.files)
        self.attempts = Attempts(memory, self.files, log)
        self.steps = Steps(run_dir, loop, log, cgroups, limits, lambda: users.rules)
        self.hooks = Hooks(run_dir, loop, log, limits, lambda: users.rules)
        self.lifecycle = Lifecycle(
            loop, log, self.attempts, self.files, self.facts, self.steps, self.hooks
        )
        self._log = log
        self._memory = memory
        self._shims = Shims(loop, limits, self._on_answer, self._on_death)
        launcher = MemberLauncher(run_dir, self.files, texts, cgroups, users, self._shims)
        self.starts = Starts(
            loop, log, self.attempts, self.lifecycle, launcher,
            memory=memory, texts=texts, users=users, prologs=Prologs(self.hooks, self.lifecycle),
        )  # fmt: skip

    # -- requests of the daemon -------------------------------------------------------------------

    def stop(self, job: int, attempt: int, number: int, grace_s: float, ranks: int) -> None:
        """ranks: the daemon's number of members; a fact is reported for each unknown one."""
        members = self.attempts.members_of(job, attempt)
        if members is None:
            if not self._memory.has_ended(job, attempt):
                for rank in range(ranks):
                    key = Key(job, attempt, rank)
                    self._report_unknown(key, "lost", "the runner does not know it")
            return
        for member in members:
            self.lifecycle.ending.stop(member, number, grace_s)

    def release(self, job: int, attempt: int, exit_code: int) -> None:
        """End a job that only holds its nodes, as if its script had exited with that code."""
        for member in self.attempts.members_of(job, attempt) or ():
            if member.live:
                member.released = exit_code
                self.lifecycle.ending.stop(member, signal.SIGTERM, RELEASE_GRACE_S)

    def signal(self, job: int, attempt: int, number: int, *, batch_only: bool) -> None:
        if not batch_only and self.steps.signal(job, attempt, number):
            # As in Slurm, the steps receive it, and the batch shell and its commands do not.
            return
        for member in self.attempts.members_of(job, attempt) or ():
            self.lifecycle.ending.signal(member, number, batch_only=batch_only)

    def set_end(self, job: int, attempt: int, ends_at: float | None) -> None:
        for member in self.attempts.members_of(job, attempt) or ():
            self.lifecycle.ending.set_end(member, ends_at)

    def adopt(self, expected: list[Key]) -> dict[str, int]:
        """Make the members here match those in the database. Returns how many were lost and how
        many killed."""
        known = set(expected)
        lost = 0
        for key in expected:
            if self.attempts.find(key) is None:
                lost += 1
                if self._memory.fresh or self._memory.has_ended(key.job, key.attempt):
                    self._report_unknown(key, "lost", "the runner has no record of it")
                else:
                    detail = "it was never sent to the runner"
                    self._report_unknown(key, "start_failed", detail)
        # From now on the runner knows all attempts that were ordered.
        self._memory.fresh = False
        strangers = [m for m in self.attempts.members() if m.live and m.key not in known]
        for member in strangers:
            self._log.info("member.unexpected", member=member.key)
            self.lifecycle.ending.stop(member, 9, 0.0)
        attempts = {(key.job, key.attempt) for key in known}
        for job, attempt in self.steps.live_attempts() - attempts:
            self.steps.stop(job, attempt, 9, 0.0)
        return {"lost": lost, "killed": len(strangers)}

    def _report_unknown(self, key: Key, kind: str, detail: str) -> None:
        """Add a member that is unknown here, to report one more fact about it to the daemon."""
        member = Member(key, uid=-1, state="ended")
        self.attempts.add(member)
        cause = "unknown" if kind == "lost" else "launch"
        self.facts.report(member, member.fact(kind, time.time(), cause=cause, detail=detail))

    # -- shims ------------------------------------------------------------------------------------

    def stock(self) -> None:
        """While idle: prepare for the next burst, and release idle shims."""
        self.files.stock()
        self._shims.let_go()

    def _on_answer(self, member: Member, answer: dict[str, Any]) -> None:
        self.starts.answered(member)
        if answer["e"] == "started":
            self.lifecycle.begin(member, answer)
        else:
            self.lifecycle.settle(member, outcome(answer, member.cause))

    def _on_death(self, member: Member) -> None:
        self.starts.answered(member)
        self.lifecycle.shim_died(member)
