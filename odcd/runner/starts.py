"""How members start: accept the daemon's dispatches, queue their members, and launch a limited
number of them at once."""

from __future__ import annotations

import errno
import os
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from odcd.runner import record
from odcd.runner.attempts import Attempts
from odcd.runner.hooks.prologs import Prologs
from odcd.runner.lifecycle import Lifecycle
from odcd.runner.log import Log
from odcd.runner.loop import Loop
from odcd.runner.member_launcher import MemberLauncher
from odcd.runner.members import Member
from odcd.runner.memory import Memory
from odcd.runner.orders import members_of
from odcd.runner.texts import Texts
from odcd.runner.uids import Users

START_WIDTH = 2 * (os.cpu_count() or 1) + 2
"""The limit of members being started at once: more would not start faster, and shims get reused."""
SLOW_START_S = 0.25
"""A start that takes longer (a FIFO, a slow file system) no longer counts for that limit."""


class Starts:
    def __init__(
        self,
        loop: Loop,
        log: Log,
        attempts: Attempts,
        lifecycle: Lifecycle,
        launcher: MemberLauncher,
        *,
        memory: Memory,
        texts: Texts,
        users: Users,
        prologs: Prologs,
    ) -> None:
        self._loop = loop
        self._log = log
        self._attempts = attempts
        self._lifecycle = lifecycle
        self._launcher = launcher
        self._memory = memory
        self._texts = texts
        self._users = users
        self._prologs = prologs
        self._queue: deque[tuple[Member, tuple[str, ...]]] = deque()
        """Queued members, each with the texts that are held for it."""
        self._args: list[str] | None = None
        """The arguments of the last dispatch."""
        self._starting: dict[Member, float] = {}
        """When each member that counts for START_WIDTH was launched, as a monotonic time."""
        self._will_look = False

    def missing_texts(self, dispatches: Iterable[dict[str, Any]]) -> list[str]:
        """The digests of the texts that must be kept before these dispatches can be accepted."""
        needed: set[str] = set()
        for dispatch in dispatches:
            if not self._attempts.is_settled(dispatch):
                needed |= {dispatch["script"], dispatch["environment"]}
        return self._texts.missing(needed)

    def accept(self, dispatches: list[dict[str, Any]]) -> None:
        """Queue all members that are not there yet. Their texts must already be kept. Raises
        KeyError, TypeError or ValueError for a malformed dispatch; then nothing was queued."""
        new = [
            (dispatch, members_of(dispatch))
            for dispatch in dispatches
            if not self._attempts.is_settled(dispatch)
        ]
        for dispatch, members in new:
            if dispatch.get("args") == self._args:
                # Queued tasks of one array share one list, which may have a MiB.
                dispatch["args"] = self._args
            self._args = dispatch.get("args")
            attempt = self._attempts.get_or_add(dispatch["job"], dispatch["attempt"])
            added = [m for m in members if m.key.rank not in attempt.members]
            queued: list[tuple[Member, tuple[str, ...]]] = []
            for member in added:
                attempt.members[member.key.rank] = member
                refusal = self._refusal(dispatch, attempt.refusal)
                if refusal:
                    self._lifecycle.settle(member, refusal)
                else:
                    held = self._texts.hold(
                        dispatch["script"], dispatch["environment"], member.uid, dispatch["gid"]
                    )
                    queued.append((member, held))
            attempt.gate({m.key.rank for m in added if m.order and m.order["shared"]})
            self._prologs.run_before([member for member, _ in queued],
                                     lambda queued=queued: self._queue.extend(queued))  # fmt: skip

    def _refusal(self, dispatch: dict[str, Any], why: str | None) -> dict[str, Any] | None:
        """The fact that replaces a start: the user may not run jobs, the start was ordered before
        this runner's memory begins, or the daemon knows that it cannot start. why: this runner
        knows that the attempt cannot start."""
        now = time.time()
        if why is not None:
            return {"kind": "start_failed", "at": now, "cause": "launch", "detail": why}
        detail = self._users.refusal(int(dispatch["uid"]))
        if detail:
            self._log.limited("user.refused", job=dispatch["job"], why=detail)
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

    def _look_again(self) -> None:
        """Only wakes the loop: slow starts no longer count for the limit by now."""
        self._will_look = False

    def _launch(self, member: Member) -> None:
        attempt = self._attempts.attempt_of(member)
        try:
            self._launcher.launch(member, attempt.gate_of(member.key.rank))
        except FileExistsError:
            # A record of an attempt that is unknown here: it may have run.
            detail = "a record of it already existed"
            self._lifecycle.settle_for_good(member, {"e": "lost", "detail": detail})
            return
        except (OSError, KeyError, ValueError) as error:
            self._refuse_launch(member, error)
            return
        finally:
            attempt.passed_gate(member.key.rank)
        # The daemon cannot change this log: it records the user for whom the daemon had a job
        # started.
        self._log.info("member.starts", member=member.key, uid=member.uid)
        member.state = "starting"
        member.order = None
        self._starting[member] = time.monotonic()
        self._lifecycle.ending.arm(member)

    def _refuse_launch(self, member: Member, error: Exception) -> None:
        if isinstance(error, OSError):
            detail = f"cannot start: {error.strerror}"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                detail = f"cannot start: no space left in {self._launcher.run_dir}"
        else:
            detail = f"cannot start: invalid order: {error!r}"
        self._log.error("member.refused", member=member.key, error=error)
        self._lifecycle.settle(member, {"kind": "start_failed", "at": time.time(),
                                        "cause": "launch", "detail": detail})  # fmt: skip

    def answered(self, member: Member) -> None:
        """Its shim has answered or died, so its start is over."""
        self._starting.pop(member, None)
