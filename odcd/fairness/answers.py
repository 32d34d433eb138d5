"""Keep the answers that wait in memory for slow clients below a limit, for each user and in all.

Small answers are not counted: the front door limits the connections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from odcd.errors import DaemonBusy, TooManyRequests
from odcd.records.job import Identity

MIB = 1024 * 1024
PER_USER = 128 * MIB
IN_ALL = 512 * MIB
SMALL = 64 * 1024
AFTER_S = 5


class Answers:
    """per_user, in_all: bytes. Operators have the limit in all only."""

    def __init__(self, per_user: int = PER_USER, in_all: int = IN_ALL) -> None:
        self._per_user = per_user
        self._in_all = in_all
        self._all = 0
        self._of: Counter[int] = Counter()

    @property
    def size(self) -> int:
        """Bytes of all."""
        return self._all

    def check(self, who: Identity, size: int = 1) -> None:
        """Before anything is done for a request, or before an answer of that size is sent. Raises
        TooManyRequests and DaemonBusy."""
        self._refuse(who, size)

    @contextmanager
    def hold(self, who: Identity, size: int, *, done: bool) -> Generator[None]:
        """Around the sending of an answer. done: something was changed, so it is never refused.
        Raises TooManyRequests and DaemonBusy."""
        if size <= SMALL:
            yield
            return
        if not done:
            self._refuse(who, size)
        self._count(who.uid, size)
        try:
            yield
        finally:
            self._count(who.uid, -size)

    def _refuse(self, who: Identity, size: int) -> None:
        """A user's first answer, and the first of all, may be larger than the limits."""
        mine = self._of[who.uid]
        if mine and mine + size > self._per_user and not who.operator:
            raise TooManyRequests(
                f"user {who.user} does not read {mine // MIB} MiB of earlier answers",
                f"Read them, or ask for less: fewer rows (limit), fewer fields. Try again in "
                f"{AFTER_S} s.",
                limit="answers", retry_after_s=AFTER_S,
            )  # fmt: skip
        if mine and self._all + size > self._in_all:
            raise DaemonBusy(
                "too many large answers wait for their readers at this moment",
                f"Ask for less, or try again in {AFTER_S} s.",
            )

    def _count(self, uid: int, change: int) -> None:
        self._all += change
        self._of[uid] += change
        if not self._of[uid]:
            del self._of[uid]
