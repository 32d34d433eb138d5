"""Send users of dev servers notices 30, 15 and 5 minutes before the end. Runs on the leader only.

The database lists the notices that are due. A notice stays due until it is delivered.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, timedelta

from odcd.clock import Clock
from odcd.errors import OdcError, RunnerDown
from odcd.executor.base import DevServers
from odcd.isolation import Isolation
from odcd.loops.rounds import RoundMetrics, Rounds
from odcd.records.dev_server import ExpiryNotice
from odcd.records.dispatch import Notice
from odcd.stores.dev_servers import DevServerStore

LEVELS = (30, 15, 5)
WALLS = (15, 5)
"""Levels that are also shown on the terminals, not only written to a file."""
RETRY_S = 5.0
GRACE = timedelta(seconds=120)
"""Same as odc._reservation_grace()."""


class ExpiryNotices(Rounds):
    """Woken when an end time may have been set or postponed."""

    name = "expiry"

    def __init__(
        self, term: int, store: DevServerStore, servers: DevServers, clock: Clock, every: timedelta,
        metrics: RoundMetrics | None = None,
    ) -> None:  # fmt: skip
        super().__init__(clock, every, metrics)
        self._term = term
        self._store = store
        self._servers = servers
        self._isolation = Isolation[ExpiryNotice](
            self.name, clock, metrics, key=lambda due: (due.job_id, due.attempt, due.minutes)
        )

    async def run_once(self) -> float:
        """Deliver the notices that are due; return the seconds until the next check."""
        due = await self._store.list_expiry_notices(self._term, self._clock.now())
        self._isolation.keep_only(due)
        ready = self._isolation.ready(due)
        if not all(await asyncio.gather(*map(self._deliver_apart, ready))):
            return RETRY_S
        now = self._clock.now()
        next_at = await self._store.get_next_notice_time(now)
        every_s = self._every.total_seconds()
        return every_s if next_at is None else min(every_s, (next_at - now).total_seconds())

    async def _deliver_apart(self, warning: ExpiryNotice) -> bool:
        """Return whether no retry is needed soon."""
        delivered = True

        async def deliver() -> None:
            nonlocal delivered
            delivered = await self._deliver(warning)

        await self._isolation.one(warning, deliver(), job_id=warning.job_id)
        return delivered

    async def _deliver(self, warning: ExpiryNotice) -> bool:
        trouble = None
        try:
            notice = notice_of(warning)
            await self.reach(
                warning.job_id, self._servers.notify(warning.job_id, warning.attempt, notice)
            )
        except RunnerDown:
            return False
        except OdcError as error:
            trouble = error.message
        await self._store.record_expiry_notice(self._term, warning, trouble, self._clock.now())
        return True


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
