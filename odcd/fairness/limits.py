"""Keep each user's requests, streams and submits below their limits.

odcd.database.slots shares the database; these limits share the daemon's own time, memory and file
descriptors.
Pending jobs and stored bytes are counted in the database: odc._refused_by_pending and
odc._refused_by_stored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from odcd.clock import Clock, SystemClock
from odcd.errors import TooLarge, TooManyRequests
from odcd.fairness.answers import Answers
from odcd.fairness.bodies import Bodies, Receipt
from odcd.fairness.outputs import Outputs
from odcd.fairness.settings import FairnessSettings
from odcd.records.job import Identity

MIB = 1024 * 1024
BURST_S = 10.0
"""Requests not made for this long may be made at once."""
MINUTE_S = 60.0
LOOKUPS = 60
"""GitHub users that one user may name per minute, as one's own or for a list of keys. GitHub limits
the lists of the daemon's address, so those of all users together."""
SLOT_AFTER_S = 5
MAX_KEPT = 10_000
"""The number of users in a table above which idle users are dropped from it."""
BY_OPERATORS = "Operators set the limit with {name}."


class Buckets:
    """A token bucket per user. per_s: tokens added per second; size: tokens in a full bucket."""

    def __init__(self, clock: Clock, *, per_s: float, size: float) -> None:
        self._clock = clock
        self._per_s = per_s
        self._size = size
        self._kept: dict[int, tuple[float, float]] = {}
        """By uid: the tokens, and the time for which they were computed."""

    def take(self, uid: int, count: int) -> float:
        """0.0 if the tokens were taken, otherwise the seconds until they can be.

        A user with a full bucket may take more than it holds, and owes the rest.
        """
        now_s = self._clock.monotonic()
        tokens = self._tokens(uid, now_s)
        short = min(count, self._size) - tokens
        if short > 0:
            return short / self._per_s
        if len(self._kept) >= MAX_KEPT:
            self._kept = {
                one: kept
                for one, kept in self._kept.items()
                if self._tokens(one, now_s) < self._size
            }
        self._kept[uid] = (tokens - count, now_s)
        return 0.0

    def _tokens(self, uid: int, now_s: float) -> float:
        tokens, at_s = self._kept.get(uid, (self._size, now_s))
        return min(self._size, tokens + (now_s - at_s) * self._per_s)


class Fairness:
    """Methods raise TooManyRequests; operators are exempt, except in body() and sync()."""

    def __init__(
        self, settings: FairnessSettings | None = None, clock: Clock | None = None,
        bodies: Bodies | None = None, answers: Answers | None = None,
    ) -> None:  # fmt: skip
        self._settings = limits = settings or FairnessSettings()
        self.bodies = bodies or Bodies()
        self.answers = answers or Answers()
        self.outputs = Outputs()
        clock = clock or SystemClock()
        self._requests = _buckets(clock, limits.requests, limits.requests * BURST_S)
        self._submits = _buckets(clock, limits.submits / MINUTE_S, limits.submits)
        self._lookups = Buckets(clock, per_s=LOOKUPS / MINUTE_S, size=LOOKUPS)
        self._open: dict[str, Counter[int]] = {"streams": Counter(), "sockets": Counter()}

    @property
    def pending(self) -> int | None:
        """The maximum number of pending jobs of one user."""
        return self._settings.pending or None

    @property
    def stored_bytes(self) -> int | None:
        """The maximum number of bytes that one user's submits may add to the database per day."""
        return self._settings.stored_mib * MIB or None

    def request(self, who: Identity) -> None:
        """Count one request."""
        if self._requests is None or who.operator:
            return
        if wait_s := self._requests.take(who.uid, 1):
            raise _refused(
                "requests", f"user {who.user} sends more than {self._settings.requests} requests "
                "per second", wait_s,
            )  # fmt: skip

    def submit(self, who: Identity, jobs: int) -> None:
        """Count the jobs of a submit."""
        if self._submits is None or who.operator:
            return
        if wait_s := self._submits.take(who.uid, jobs):
            raise _refused(
                "submits", f"user {who.user} submits more than {self._settings.submits} jobs per "
                "minute", wait_s, "An array counts as one job. ",
            )  # fmt: skip

    @property
    def sync_bytes(self) -> int | None:
        """The maximum size of the files that `run --sync` sends."""
        return self._settings.sync_mib * MIB or None

    def sync(self, size_bytes: int) -> None:
        """Check the size of the files that a job gets, also for operators. Raises TooLarge."""
        if self.sync_bytes is not None and size_bytes > self.sync_bytes:
            raise TooLarge(
                f"the files have {size_bytes / MIB:.1f} MiB, and run --sync sends at most "
                f"{self._settings.sync_mib} MiB",
                "List files that the job does not need in a .odcignore, or keep large data on "
                f"storage that the job reaches. {BY_OPERATORS.format(name='ODC_USER_SYNC_MIB')}",
            )

    def lookup(self, who: Identity) -> None:
        """Count one GitHub user that was named."""
        if who.operator:
            return
        if wait_s := self._lookups.take(who.uid, 1):
            after_s = max(1, math.ceil(wait_s))
            raise TooManyRequests(
                f"user {who.user} names more than {LOOKUPS} GitHub users per minute",
                f"Try again in {after_s} s.", limit="lookups", retry_after_s=after_s,
            )  # fmt: skip

    def body(self, who: Identity) -> Receipt:
        """The receipt for one request's body, which the request releases. Also limits operators."""
        return Receipt(self.bodies, who)

    @contextmanager
    def stream(self, who: Identity) -> Generator[None]:
        """Use around an event stream, a followed log or a long poll."""
        with self._slot("streams", self._settings.streams, who):
            yield

    @contextmanager
    def socket(self, who: Identity) -> Generator[None]:
        """Use around a terminal or a tunnel."""
        with self._slot("sockets", self._settings.sockets, who):
            yield

    @contextmanager
    def _slot(self, what: str, limit: int, who: Identity) -> Generator[None]:
        if not limit or who.operator:
            yield
            return
        count = self._open[what]
        if count[who.uid] >= limit:
            named = "streams" if what == "streams" else "terminals and tunnels"
            raise _refused(
                what, f"user {who.user} has {limit} {named} open", SLOT_AFTER_S,
                "Close some of them. ",
            )  # fmt: skip
        count[who.uid] += 1
        try:
            yield
        finally:
            count[who.uid] -= 1
            if not count[who.uid]:
                del count[who.uid]


def _buckets(clock: Clock, per_s: float, size: float) -> Buckets | None:
    return Buckets(clock, per_s=per_s, size=size) if size else None


def _refused(limit: str, message: str, wait_s: float, advice: str = "") -> TooManyRequests:
    after_s = max(1, math.ceil(wait_s))
    by = BY_OPERATORS.format(name=f"ODC_USER_{limit.upper()}")
    return TooManyRequests(
        message, f"{advice}Try again in {after_s} s. {by}", limit=limit, retry_after_s=after_s
    )
