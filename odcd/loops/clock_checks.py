"""Detect a wrong clock before it times jobs out: compare it with PostgreSQL's and with itself."""

from __future__ import annotations

from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.errors import LeadershipLost

HINT = (
    "Synchronize the clocks of the daemons and of PostgreSQL with NTP. This daemon does not lead "
    "until they agree; another one may. ODC_CLOCK_LIMIT_S sets the limit."
)


def ahead_by(ours: datetime, took: timedelta, theirs: datetime) -> timedelta:
    """Return how far our clock is ahead of another; negative: behind; zero if they may agree.

    ours: our time when we asked; took: the time until the answer; theirs: the other clock's time.
    """
    if ours > theirs:
        return ours - theirs
    return min(timedelta(0), ours + took - theirs)


def wrong_clock(ours: datetime, theirs: datetime, limit: timedelta) -> LeadershipLost:
    seconds = (ours - theirs).total_seconds()
    way = "ahead of" if seconds > 0 else "behind"
    return LeadershipLost(
        f"this daemon's clock is {abs(seconds):.0f} s {way} PostgreSQL's: it shows {ours:%FT%TZ}, "
        f"PostgreSQL's shows {theirs:%FT%TZ}, and the limit is {limit.total_seconds():.0f} s",
        HINT,
    )


class SteadyClock:
    """A leader's clock. After a step, now() raises an error until confirm() is called."""

    def __init__(self, clock: Clock, limit: timedelta) -> None:
        self._clock = clock
        self._limit_s = limit.total_seconds()
        self.confirm()

    def confirm(self) -> None:
        """Accept the current time: PostgreSQL's clock agrees with it."""
        self._at = self._clock.now()
        self._since = self._clock.monotonic()

    def now(self) -> datetime:
        """Return the time. Raises LeadershipLost after a step larger than the limit."""
        now = self._clock.now()
        passed_s = self._clock.monotonic() - self._since
        stepped_s = (now - self._at).total_seconds() - passed_s
        if abs(stepped_s) > self._limit_s:
            expected = self._at + timedelta(seconds=passed_s)
            raise LeadershipLost(
                f"this daemon's clock stepped by {stepped_s:+.0f} s: it shows {now:%FT%TZ} "
                f"instead of {expected:%FT%TZ}",
                HINT,
            )
        return now

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
