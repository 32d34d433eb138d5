"""Notify users of dev servers that a node of theirs is drained, has maintenance, or is taken away.
Runs on the leader only.

The database lists the notices that are due. A notice stays due until it is delivered.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from odcd.clock import Clock
from odcd.errors import OdcError, RunnerDown
from odcd.executor.base import DevServers
from odcd.isolation import Isolation
from odcd.loops.rounds import RoundMetrics, Rounds
from odcd.records.dev_server import NodeNotice
from odcd.records.dispatch import Notice
from odcd.stores.dev_servers import DevServerStore

RETRY_S = 5.0
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class NodeNotices(Rounds):
    """Woken when a node or a booking may have changed."""

    name = "node-notices"

    def __init__(
        self, term: int, store: DevServerStore, servers: DevServers, clock: Clock, every: timedelta,
        metrics: RoundMetrics | None = None,
    ) -> None:  # fmt: skip
        super().__init__(clock, every, metrics)
        self._term = term
        self._store = store
        self._servers = servers
        self._isolation = Isolation[NodeNotice](
            self.name, clock, metrics, key=lambda due: (due.job_id, due.attempt, due.text)
        )

    async def run_once(self) -> float | None:
        """Deliver the notices that are due; return the seconds until the next check."""
        due = await self._store.list_node_notices(self._term, self._clock.now())
        self._isolation.keep_only(due)
        ready = self._isolation.ready(due)
        delivered = await asyncio.gather(*map(self._deliver_apart, ready))
        return None if all(delivered) else RETRY_S

    async def _deliver_apart(self, due: NodeNotice) -> bool:
        """Return whether no retry is needed soon."""
        delivered = True

        async def deliver() -> None:
            nonlocal delivered
            delivered = await self._deliver(due)

        await self._isolation.one(due, deliver(), job_id=due.job_id)
        return delivered

    async def _deliver(self, due: NodeNotice) -> bool:
        trouble = None
        try:
            notice = notice_of(due, self._clock.now())
            await self.reach(due.job_id, self._servers.notify(due.job_id, due.attempt, notice))
        except RunnerDown:
            return False
        except OdcError as error:
            trouble = error.message
        await self._store.record_node_notice(self._term, due, trouble, self._clock.now())
        return True


def notice_of(due: NodeNotice, now: datetime) -> Notice:
    name = file_name(due.job_id if due.shared_home else None)
    if due.text is None:
        return Notice(
            remove=[name], wall=f"the nodes of reservation {due.job_id} are available again"
        )
    ends = f"{due.expires_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    text = f"Reservation {due.job_id} ({due.name}): {due.text}.\n"
    if due.until_at is None:
        text += (
            f"It continues until its end at {ends}, in {left(due.expires_at - now)}, unless the "
            "node is taken away before.\n"
        )
    else:
        text += f"Time left until the node may be gone: {left(due.until_at - now)}.\n"
    text += (
        "Save your work. A new reservation gets other nodes: `odcctl cancel "
        f"{due.job_id}`, then reserve again.\n"
    )
    return Notice(name=name, text=text, wall=text)


def left(time: timedelta) -> str:
    """2 minutes; 3 hours"""
    if time < 2 * MINUTE:
        seconds = max(0, round(time.total_seconds()))
        return f"{seconds} second{'' if seconds == 1 else 's'}"
    if time < 2 * HOUR:
        return f"{time // MINUTE} minutes"
    return f"{time // HOUR} hours" if time < 2 * DAY else f"{time // DAY} days"


def file_name(shared_by: int | None = None) -> str:
    """The name of the file in the home folder. It has the reservation's number if several
    reservations share a home."""
    return f"WARN_NODE{'' if shared_by is None else f'_{shared_by}'}.txt"
