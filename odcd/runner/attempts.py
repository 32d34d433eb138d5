"""The attempts of jobs that this runner knows. It forgets an attempt once the daemon has all of its
facts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from odcd.runner.files import Files
from odcd.runner.log import Log
from odcd.runner.members import Member
from odcd.runner.memory import Memory
from odcd.runner.record import Key


@dataclass(slots=True, eq=False)
class Attempt:
    members: dict[int, Member] = field(default_factory=dict)
    refusal: str | None = None
    """Why none of its members may start any longer."""
    _gated: set[int] = field(default_factory=set)
    """Ranks that share one output file and have not been launched yet."""
    _gate: dict[bool, int] = field(default_factory=dict)
    """A pipe: rank 0 holds the write end (True) until it has opened the file; the others wait."""

    @property
    def forgettable(self) -> bool:
        """Whether all members have ended and all their facts are acknowledged."""
        return all(
            not member.live and not (member.facts or member.has_steps or member.has_hooks)
            for member in self.members.values()
        )

    def gate(self, ranks: set[int]) -> None:
        """Make these ranks, not launched yet, wait for rank 0. If rank 0 is not among them, it has
        already opened the file."""
        if 0 in ranks and len(ranks) > 1:
            self._gated = ranks

    def gate_of(self, rank: int) -> int | None:
        """The end of the gate to launch this rank with. Raises OSError when no pipe can be
        created."""
        if rank not in self._gated:
            return None
        if not self._gate:
            self._gate[False], self._gate[True] = os.pipe()
        return self._gate[rank == 0]

    def passed_gate(self, rank: int) -> None:
        """The rank was launched, or never will be."""
        self._gated.discard(rank)
        if rank == 0 and True in self._gate:
            os.close(self._gate.pop(True))
        if not self._gated and False in self._gate:
            os.close(self._gate.pop(False))


class Attempts:
    def __init__(self, memory: Memory, files: Files, log: Log) -> None:
        self._memory = memory
        self._files = files
        self._log = log
        self._attempts: dict[tuple[int, int], Attempt] = {}

    def members(self) -> list[Member]:
        return [m for attempt in self._attempts.values() for m in attempt.members.values()]

    def members_of(self, job: int, attempt: int) -> list[Member] | None:
        """None: the attempt is unknown here."""
        known = self._attempts.get((job, attempt))
        return None if known is None else list(known.members.values())

    def find(self, key: Key) -> Member | None:
        attempt = self._attempts.get((key.job, key.attempt))
        return attempt.members.get(key.rank) if attempt else None

    def first_live(self, job: int, attempt: int) -> Member | None:
        """Of the members that have not ended, the one with the lowest rank."""
        live = [member for member in self.members_of(job, attempt) or () if member.live]
        return min(live, key=lambda member: member.key.rank, default=None)

    def attempt_of(self, member: Member) -> Attempt:
        """The attempt of a member that was added."""
        return self._attempts[member.key[:2]]

    def get_or_add(self, job: int, attempt: int) -> Attempt:
        return self._attempts.setdefault((job, attempt), Attempt())

    def add(self, member: Member) -> None:
        self.get_or_add(member.key.job, member.key.attempt).members[member.key.rank] = member

    def is_settled(self, dispatch: dict[str, Any]) -> bool:
        """Whether a dispatch is a repeated one: its attempt has ended, or has all its members."""
        key = dispatch["job"], dispatch["attempt"]
        if self._memory.has_ended(*key):
            return True
        known = self._attempts.get(key)
        return known is not None and len(known.members) == len(dispatch["members"])

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
                self._files.give_up(member.key)
