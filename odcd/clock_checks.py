"""Notice a wrong clock before it times jobs out: against PostgreSQL's clock, and against itself."""

from __future__ import annotations

from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.errors import LeadershipLost

HINT = (
    "Let NTP keep the clocks of the daemons and of PostgreSQL. This daemon does not lead until "
    "they agree; another one may. ODC_CLOCK_LIMIT_S sets the limit."
)


def ahead_by(ours: datetime, took: timedelta, theirs: datetime) -> timedelta:
    """How far our clock is ahead of another one; negative: behind; zero when they may agree.

    ours: our time when we asked; took: until the answer; theirs: the other clock's, in between.
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
    """A leader's clock. It refuses to tell the time after a step, until confirm() accepts it."""

    def __init__(self, clock: Clock, limit: timedelta) -> None:
        self._clock = clock
        self._limit_s = limit.total_seconds()
        self.confirm()

    def confirm(self) -> None:
        """PostgreSQL's clock agrees with this one now."""
        self._at = self._clock.now()
        self._since = self._clock.monotonic()

    def now(self) -> datetime:
        """The moment. Raises LeadershipLost after a step above the limit."""
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
