"""All members of this runner: accept, start, end and report them. Each step may be repeated."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from odcd.runner import cgroup, record
from odcd.runner.ending import Ending
from odcd.runner.facts import Facts
from odcd.runner.files import Files
from odcd.runner.limits import Limits
from odcd.runner.log import Log
from odcd.runner.loop import Loop
from odcd.runner.members import Attempt, Member, outcome
from odcd.runner.memory import Memory
from odcd.runner.orders import members_of, order_of
from odcd.runner.record import Key
from odcd.runner.shims import Shims
from odcd.runner.texts import Texts
from odcd.runner.uids import Users

START_WIDTH = 2 * (os.cpu_count() or 1) + 2
"""The limit of members being started at once: more would not start faster, and shims get reused."""
SLOW_START_S = 0.25
"""A start that takes longer (a FIFO, a slow file system) no longer counts for that limit."""

NEVER_BEGAN = {
    "e": "failed", "passing": True, "detail": "the process that was to start it died",
}  # fmt: skip
UNWATCHED = {
    "e": "lost",
    "detail": "the process that watched it was killed; how it ended is unknown",
}


class Roster:
    def __init__(
        self,
        run_dir: Path,
        loop: Loop,
        log: Log,
        memory: Memory,
        texts: Texts,
        cgroups: cgroup.Cgroups,
        limits: Limits,
        users: Users,
    ) -> None:
        self.run_dir = run_dir
        self.files = Files(run_dir)
        self.facts = Facts(self.files)
        self._loop = loop
        self._log = log
        self._memory = memory
        self._texts = texts
        self._cgroups = cgroups
        self._users = users
        self._attempts: dict[tuple[int, int], Attempt] = {}
        self._queue: deque[tuple[Member, tuple[str, ...]]] = deque()
        """Queued members, each with the texts that are held for it."""
        self._args: list[str] | None = None
        """The arguments of the last dispatch."""
        self._starting: dict[Member, float] = {}
        self._will_look = False
        self._shims = Shims(loop, limits, self._on_answer, self._on_death)
        self._ending = Ending(loop, self.files.path, self._drop_queued)

    # -- requests of the daemon -------------------------------------------------------------------

    def missing_texts(self, dispatches: Iterable[dict[str, Any]]) -> list[str]:
        wanted: set[str] = set()
        for dispatch in dispatches:
            if not self._is_settled(dispatch):
                wanted |= {dispatch["script"], dispatch["environment"]}
        return self._texts.missing(wanted)

    def start(self, dispatches: list[dict[str, Any]]) -> None:
        """Queue all members that are not there yet. Their texts must already be kept. Raises
        KeyError, TypeError or ValueError for a malformed dispatch; then nothing was queued."""
        new = [
            (dispatch, members_of(dispatch))
            for dispatch in dispatches
            if not self._is_settled(dispatch)
        ]
        for dispatch, members in new:
            if dispatch.get("args") == self._args:
                # Queued tasks of one array share one list, which may have a MiB.
                dispatch["args"] = self._args
            self._args = dispatch.get("args")
            attempt = self._attempts.setdefault((dispatch["job"], dispatch["attempt"]), Attempt())
            added = [m for m in members if m.key.rank not in attempt.members]
            for member in added:
                attempt.members[member.key.rank] = member
                refusal = self._refusal(dispatch)
                if refusal:
                    self.settle(member, refusal)
                else:
                    held = self._texts.hold(
                        dispatch["script"], dispatch["environment"], member.uid, dispatch["gid"]
                    )
                    self._queue.append((member, held))
            attempt.gate({m.key.rank for m in added if m.order and m.order["shared"]})

    def _is_settled(self, dispatch: dict[str, Any]) -> bool:
        key = dispatch["job"], dispatch["attempt"]
        if self._memory.has_ended(*key):
            return True
        known = self._attempts.get(key)
        return known is not None and len(known.members) == len(dispatch["members"])

    def _refusal(self, dispatch: dict[str, Any]) -> dict[str, Any] | None:
        """The fact that replaces a start: the user may not run jobs, the start was ordered before
        this runner's memory begins, or the daemon knows that it cannot start."""
        now = time.time()
        detail = self._users.refusal(int(dispatch["uid"]))
        if detail:
            self._log.asked("user.refused", job=dispatch["job"], why=detail)
            return {"kind": "start_failed", "at": now, "cause": "unknown", "detail": detail}
        if self._memory.fresh and dispatch["started_at"] < self._memory.since:
            detail = (
                "the machine was restarted since the start was ordered; whether it ran is unknown"
            )
            return {"kind": "lost", "at": now, "cause": "unknown", "detail": detail}
        if dispatch.get("refusal"):
            detail = str(dispatch["refusal"])[: record.DETAIL_BYTES]
            return {"kind": "start_failed", "at": now, "cause": "unknown", "detail": detail}
        return None

    def stop(self, job: int, attempt: int, number: int, grace_s: float, ranks: int) -> None:
        """ranks: the daemon's number of members; a fact is reported for each unknown one."""
        known = self._attempts.get((job, attempt))
        if known is None:
            if not self._memory.has_ended(job, attempt):
                for rank in range(ranks):
                    self._add_ghost(Key(job, attempt, rank), "lost", "the runner does not know it")
            return
        for member in list(known.members.values()):
            self._ending.stop(member, number, grace_s)

    def signal(self, job: int, attempt: int, number: int, *, batch_only: bool) -> None:
        known = self._attempts.get((job, attempt))
        for member in known.members.values() if known else ():
            self._ending.signal(member, number, batch_only=batch_only)

    def set_end(self, job: int, attempt: int, ends_at: float | None) -> None:
        known = self._attempts.get((job, attempt))
        for member in known.members.values() if known else ():
            self._ending.set_end(member, ends_at)

    def adopt(self, expected: list[Key]) -> dict[str, int]:
        """Make the members here match those in the database. Returns how many were lost and how
        many killed."""
        wanted = set(expected)
        lost = 0
        for key in expected:
            attempt = self._attempts.get((key.job, key.attempt))
            if attempt is None or key.rank not in attempt.members:
                lost += 1
                if self._memory.fresh or self._memory.has_ended(key.job, key.attempt):
                    self._add_ghost(key, "lost", "the runner has no trace of it")
                else:
                    self._add_ghost(key, "start_failed", "it was never given to the runner")
        # From now on the runner knows all attempts that were ordered.
        self._memory.fresh = False
        strangers = [m for m in self.members() if m.live and m.key not in wanted]
        for member in strangers:
            self._log.info("member.unexpected", member=member.key)
            self._ending.stop(member, 9, 0.0)
        return {"lost": lost, "killed": len(strangers)}

    def acknowledge(self, facts: Iterable[tuple[int, int, int, str]]) -> None:
        """Forget facts that are committed, and attempts without further facts to report."""
        touched: dict[tuple[int, int], Attempt] = {}
        for job, number, rank, kind in facts:
            attempt = self._attempts.get((job, number))
            member = attempt.members.get(rank) if attempt else None
            if attempt and member:
                member.facts.pop(kind, None)
                if not member.live and kind != "started":
                    member.facts.clear()
                touched[job, number] = attempt
        self._forget([key for key, attempt in touched.items() if attempt.forgettable])

    def _forget(self, keys: list[tuple[int, int]]) -> None:
        if not keys:
            return
        try:
            self._memory.remember_ended(keys)
        except OSError as error:
            # The files stay, with the same content, until there is space again.
            self._log.error("ended.unwritten", error=error)
            return
        for key in keys:
            for member in self._attempts.pop(key).members.values():
                self.files.give_up(member.key)

    # -- a member's life ---------------------------------------------------------------------------

    def members(self) -> list[Member]:
        return [m for attempt in self._attempts.values() for m in attempt.members.values()]

    def find(self, key: Key) -> Member | None:
        attempt = self._attempts.get((key.job, key.attempt))
        return attempt.members.get(key.rank) if attempt else None

    def first_live(self, job: int, attempt: int) -> Member | None:
        """Of the members that have not ended, the one with the lowest rank."""
        known = self._attempts.get((job, attempt))
        live = [member for member in known.members.values() if member.live] if known else []
        return min(live, key=lambda member: member.key.rank, default=None)

    @property
    def can_start(self) -> bool:
        return bool(self._queue) and len(self._starting) < START_WIDTH

    def start_some(self) -> None:
        """Launch as many queued members as may start at once."""
        if self._queue and self._starting:
            slow = time.monotonic() - SLOW_START_S
            for member in [m for m, since in self._starting.items() if since < slow]:
                del self._starting[member]
        while self.can_start:
            member, held = self._queue.popleft()
            if member.state == "queued":
                self._launch(member)
            self._texts.release(held)
        if self._queue and not self._will_look:
            self._will_look = True
            self._loop.at(time.time() + SLOW_START_S, self._look_again)

    def stock(self) -> None:
        """While idle: prepare for the next burst, and release idle shims."""
        self.files.stock()
        self._shims.let_go()

    def _look_again(self) -> None:
        """Only wakes the loop: slow starts no longer count for the limit by now."""
        self._will_look = False

    def _launch(self, member: Member) -> None:
        attempt = self._attempts[member.key[:2]]
        record_fd = None
        try:
            gate = attempt.gate_of(member.key.rank)
            member.cgroup = self._cgroups.create(str(member.key), member.limits)
            order = order_of(
                member, self.run_dir, self._texts, self._users.rules, gated=gate is not None
            )
            record_fd = self.files.create(member.key, self._intent(member))
            self._shims.give(member, record_fd, order, gate)
        except FileExistsError:
            # A record of an attempt that is unknown here: it may have run.
            self.settle_for_good(member, {"e": "lost", "detail": "a record of it already existed"})
            return
        except (OSError, KeyError, ValueError) as error:
            self._refuse_launch(member, error, made=record_fd is not None)
            return
        finally:
            if record_fd is not None:
                os.close(record_fd)
            attempt.passed_gate(member.key.rank)
        # The daemon cannot change this log: it records the user for whom the daemon had a job
        # started.
        self._log.info("member.starts", member=member.key, uid=member.uid)
        member.state = "starting"
        member.order = None
        self._starting[member] = time.monotonic()
        self._ending.arm(member)

    def arm(self, member: Member) -> None:
        self._ending.arm(member)

    def _refuse_launch(self, member: Member, error: Exception, *, made: bool) -> None:
        if made:
            self.files.give_up(member.key)
        if isinstance(error, OSError):
            detail = f"cannot start: {error.strerror}"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                detail = f"cannot start: no space left in {self.run_dir}"
        else:
            detail = f"cannot start: invalid order: {error!r}"
        self._log.error("member.refused", member=member.key, error=error)
        self.settle(member, {"kind": "start_failed", "at": time.time(), "cause": "launch",
                              "detail": detail})  # fmt: skip

    def _intent(self, member: Member) -> dict[str, Any]:
        wanted = member.end_signal
        intent = {
            "uid": member.uid, "gid": member.gid, "at": time.time(), "mark": member.mark,
            "cgroup": member.cgroup, "ends_at": member.ends_at, "grace_s": member.grace_s,
            "signal": [wanted.number, wanted.before_s, wanted.batch_only] if wanted else None,
            "script": member.script,
        }  # fmt: skip
        # A home that is too long for the record is forgotten with this runner.
        with_home = {**intent, "home": member.home}
        return with_home if record.fits(record.INTENT, with_home) else intent

    def _drop_queued(self, member: Member, detail: str) -> None:
        self._attempts[member.key[:2]].passed_gate(member.key.rank)
        self.settle(member, {"kind": "start_failed", "at": time.time(),
                              "cause": member.cause or "launch", "detail": detail})  # fmt: skip

    def _on_answer(self, member: Member, answer: dict[str, Any]) -> None:
        self._starting.pop(member, None)
        if answer["e"] == "started":
            self.begin(member, answer)
        else:
            self.settle(member, outcome(answer, member.cause))

    def begin(self, member: Member, answer: dict[str, Any]) -> None:
        """The script runs. answer: the shim's message or record about it."""
        member.state = "running"
        member.job_pid = answer["pid"]
        self.facts.report(member, member.fact("started", answer["at"]))
        self._ending.began(member)

    def _on_death(self, member: Member) -> None:
        """Its shim was killed: use the record, or end the remaining processes and report it as
        lost."""
        self._starting.pop(member, None)
        member.shim_pid = None
        self._log.error("shim.died", member=member.key)
        self.settle_by_record(member)

    def settle_by_record(self, member: Member) -> None:
        """Its shim has ended: the end is the recorded one, or follows from the missing parts of the
        record.

        The result is written down too, so that the next runner reports the same.
        """
        path = self.files.path(member.key)
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
        self._ending.end_orphans(member, lambda: self.settle_for_good(member, answer))

    def settle_for_good(self, member: Member, answer: dict[str, Any]) -> None:
        answer = {**answer, "at": time.time()}
        with contextlib.suppress(OSError):
            record.write_file(self.files.path(member.key), record.EXIT, answer)
        self.settle(member, outcome(answer, member.cause))

    def settle(self, member: Member, end: dict[str, Any]) -> None:
        """It has ended, for whatever reason: none of its processes is left."""
        member.state = "ended"
        member.order = None
        member.timers += 1
        if member.cgroup:
            cgroup.remove(member.cgroup)
        self.facts.report(member, member.fact(**end))

    def _add_ghost(self, key: Key, kind: str, detail: str) -> None:
        """Add a member that is unknown here, to report one more fact about it to the daemon."""
        attempt = self._attempts.setdefault((key.job, key.attempt), Attempt())
        member = Member(key, uid=-1, state="ended")
        attempt.members[key.rank] = member
        cause = "unknown" if kind == "lost" else "launch"
        self.facts.report(member, member.fact(kind, time.time(), cause=cause, detail=detail))

    def add(self, member: Member) -> None:
        """Take over a member from an earlier runner."""
        attempt = self._attempts.setdefault(member.key[:2], Attempt())
        attempt.members[member.key.rank] = member
