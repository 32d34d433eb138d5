"""Send users of dev servers notices 30, 15 and 5 minutes before the end. Runs on the leader
only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from odcd.loops.notices import Notices
from odcd.records.dev_server import ExpiryNotice
from odcd.records.dispatch import Notice

LEVELS = (30, 15, 5)
WALLS = (15, 5)
"""Levels that are also shown on the terminals, not only written to a file."""
GRACE = timedelta(seconds=120)
"""Same as odc._reservation_grace()."""


class ExpiryNotices(Notices[ExpiryNotice]):
    """Woken when an end time may have been set or postponed."""

    name = "expiry"

    def _key(self, due: ExpiryNotice) -> object:
        return due.job_id, due.attempt, due.minutes

    async def _list(self, now: datetime) -> Sequence[ExpiryNotice]:
        return await self._store.list_expiry_notices(self._term, now)

    def _notice(self, due: ExpiryNotice, now: datetime) -> Notice:
        return notice_of(due)

    async def _record(self, due: ExpiryNotice, trouble: str | None, now: datetime) -> None:
        await self._store.record_expiry_notice(self._term, due, trouble, now)

    async def _next_s(self) -> float:
        now = self._clock.now()
        next_at = await self._store.get_next_notice_time(now)
        every_s = self._every.total_seconds()
        return every_s if next_at is None else min(every_s, (next_at - now).total_seconds())


def notice_of(warning: ExpiryNotice) -> Notice:
    ends = f"{warning.expires_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    shared_by = warning.job_id if warning.shared_home else None
    files = [file_name(level, shared_by) for level in LEVELS]
    if warning.minutes is None:
        return Notice(
            remove=files, wall=f"reservation {warning.job_id} continues: it now ends at {ends}"
        )
    more = (
        f"`odcctl extend {warning.job_id}` adds up to 24 hours, once. "
        if warning.extensible
        else "It was already extended. "
    )
    if warning.minutes == 0:
        gone_at = warning.expires_at.astimezone(UTC) + GRACE
        return Notice(
            wall=f"The time of reservation {warning.job_id} is over: its processes are stopped at "
            f"{gone_at:%H:%M:%S} UTC. {more}\n"
        )
    text = (
        f"Reservation {warning.job_id} ({warning.name}) ends in {warning.minutes} minutes, "
        f"at {ends}.\n{more}Save your work: all processes are stopped then.\n"
    )
    return Notice(
        name=file_name(warning.minutes, shared_by),
        text=text,
        wall=text if warning.minutes in WALLS else None,
    )


def file_name(minutes: int, shared_by: int | None = None) -> str:
    """The name of the file in the home folder, the same as in gpu-dev: scripts look for it. It has
    the reservation's number if several reservations share a home."""
    return f"WARN_EXPIRES_IN_{minutes}MIN{'' if shared_by is None else f'_{shared_by}'}.txt"
