"""Take over the members of an earlier runner, whether they ended or live on below their shims."""

from __future__ import annotations

import contextlib
import os
import time

from odcd.runner import record
from odcd.runner.log import Log
from odcd.runner.loop import Loop
from odcd.runner.members import EndSignal, Member, outcome
from odcd.runner.record import Key
from odcd.runner.roster import Roster

LOOK_AGAIN_S = 0.05
UNSTARTED = "the runner was restarted before it started"
RESTARTED = {"e": "lost", "detail": "the machine was restarted while it ran"}


class Recovery:
    def __init__(self, roster: Roster, loop: Loop, log: Log, *, same_boot: bool) -> None:
        self._files = roster.files
        self._attempts = roster.attempts
        self._hooks = roster.hooks
        self._lifecycle = roster.lifecycle
        self._loop = loop
        self._log = log
        self._same_boot = same_boot

    def run(self) -> None:
        counts = {"ended": 0, "live": 0, "gone": 0}
        files = self._files
        found: list[tuple[Member, record.Regions]] = []
        for key in files.all_keys():
            regions = record.read_file(files.path(key))
            member = _member(key, regions)
            if member is None:
                # It never began: the intent is complete before anything else happens.
                self._log.error("member.unreadable", member=key)
                files.give_up(key)
                continue
            self._attempts.add(member)
            found.append((member, regions))
        unstarted = self._add_unstarted()
        # All are known now: the steps of a job end with the last of its members.
        for member, regions in found:
            counts[self._take(member, regions)] += 1
        for member in unstarted:
            self._lifecycle.fail_queued(member, UNSTARTED)
            counts["gone"] += 1
        if any(counts.values()):
            self._log.info("runner.recovered", **counts)

    def _add_unstarted(self) -> list[Member]:
        """Members whose prolog had begun, and that never started."""
        members: list[Member] = []
        for key in self._hooks.debts:
            if self._attempts.find(key) is None:
                debt = self._hooks.debts.read(key) or {}
                member = Member(key, uid=int(debt.get("uid", -1)), state="queued")
                self._attempts.add(member)
                self._attempts.attempt_of(member).refusal = UNSTARTED
                members.append(member)
        return members

    def _take(self, member: Member, regions: record.Regions) -> str:
        if regions["started"]:
            self._lifecycle.begin(member, regions["started"])
        if regions["exit"]:
            self._lifecycle.settle(member, outcome(regions["exit"], member.cause))
            return "ended"
        if not self._same_boot:
            self._lifecycle.settle_for_good(member, RESTARTED)
            return "gone"
        if not record.is_held(self._files.path(member.key)):
            self._lifecycle.settle_by_record(member)
            return "gone"
        self._follow(member)
        return "live"

    def _follow(self, member: Member) -> None:
        """Watch a living shim; until its script runs, check its record from time to time."""
        if not member.live:
            return
        path = self._files.path(member.key)
        regions = record.read_file(path)
        if regions["started"] and member.state != "running":
            self._lifecycle.begin(member, regions["started"])
        begun = regions["begun"]
        if begun and member.watch_fd is None:
            with contextlib.suppress(ProcessLookupError):
                member.watch_fd = os.pidfd_open(begun["shim"])
                member.shim_pid, member.job_pid = begun["shim"], begun["pid"]
                self._lifecycle.ending.arm(member)
                self._loop.watch(member.watch_fd, lambda _: self._shim_ended(member))
        # Check the lock last: while it is held, the pid above belongs to the shim.
        if not record.is_held(path):
            self._shim_ended(member)
        elif member.state != "running" or member.watch_fd is None:
            self._loop.at(time.time() + LOOK_AGAIN_S, lambda: self._follow(member))

    def _shim_ended(self, member: Member) -> None:
        if member.watch_fd is not None:
            self._loop.forget(member.watch_fd)
            os.close(member.watch_fd)
            member.watch_fd = None
        member.shim_pid = None
        if member.live:
            self._lifecycle.settle_by_record(member)


def _member(key: Key, regions: record.Regions) -> Member | None:
    intent, control = regions["intent"], regions["control"]
    if intent is None:
        return None
    member = Member(key, uid=intent["uid"], state="starting")
    member.gid, member.home = intent.get("gid"), intent.get("home")
    member.script = intent.get("script")
    member.mark, member.cgroup = intent["mark"], intent["cgroup"]
    member.ends_at, member.grace_s = intent["ends_at"], intent["grace_s"]
    if intent["signal"]:
        member.end_signal = EndSignal(*intent["signal"])
    if control:
        member.ends_at, member.kill_at = control["ends_at"], control["kill_at"]
        member.released = control.get("released")
        member.drains = control.get("drains", {})
        member.cause, member.stop_signal = control["cause"], control["stop_signal"]
        if control["signalled"]:
            member.end_signal = None
    return member
