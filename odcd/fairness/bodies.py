"""Limit the request bodies in memory, per user and in total.

A body that arrives in one piece is not counted: the front door limits the number of connections.
"""

from __future__ import annotations

from collections import Counter

from odcd.errors import DaemonBusy, TooManyRequests
from odcd.records.job import Identity

PER_USER = 64 * 1024 * 1024
IN_ALL = 256 * 1024 * 1024
MIB = 1024 * 1024
AFTER_S = 2


class Bodies:
    """per_user, in_all: bytes. For operators, only the total limit applies."""

    def __init__(self, per_user: int = PER_USER, in_all: int = IN_ALL) -> None:
        self._per_user = per_user
        self._in_all = in_all
        self._all = 0
        self._of: Counter[int] = Counter()

    def grow(self, who: Identity, size: int, more: int) -> None:
        """A body of this size grows. Raises TooManyRequests and DaemonBusy, and then counts
        nothing.

        A user's only body just has to fit. If a user has several, they may use at most half of what
        is left, so that users who send as much as they can still leave room for the next user.
        """
        mine = self._of[who.uid] + more
        if not who.operator and mine > self._per_user:
            raise TooManyRequests(
                f"user {who.user} sends more than {self._per_user // MIB} MiB in requests at once",
                f"Wait for answers before you send more, or try again in {AFTER_S} s.",
                limit="bodies", retry_after_s=AFTER_S,
            )  # fmt: skip
        left = self._in_all - self._all - more
        only = who.operator or mine == size + more
        if left < 0 or (not only and mine * 2 > left):
            raise DaemonBusy(
                "the daemon receives too many large requests at this moment",
                f"Nothing was changed. Try again in {AFTER_S} s.",
            )
        self._count(who.uid, more)

    def _count(self, uid: int, change: int) -> None:
        self._all += change
        self._of[uid] += change
        if not self._of[uid]:
            del self._of[uid]

    def shrink(self, who: Identity, by: int) -> None:
        if by:
            self._count(who.uid, -by)

    @property
    def size(self) -> int:
        """The bytes of all bodies."""
        return self._all


class Receipt:
    """The body of one request, counted until release()."""

    __slots__ = ("_bodies", "_size", "_who")

    def __init__(self, bodies: Bodies, who: Identity) -> None:
        self._bodies = bodies
        self._who = who
        self._size = 0

    def expect(self, size: int) -> None:
        """The body has at least this many bytes. Raises TooManyRequests and DaemonBusy."""
        if size > self._size:
            self._bodies.grow(self._who, self._size, size - self._size)
            self._size = size

    def release(self) -> None:
        size, self._size = self._size, 0
        self._bodies.shrink(self._who, size)
