"""Notify users of dev servers that a node of theirs is drained, has maintenance, or is taken away.
Runs on the leader only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from odcd.loops.notices import Notices
from odcd.records.dev_server import NodeNotice
from odcd.records.dispatch import Notice

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class NodeNotices(Notices[NodeNotice]):
    """Woken when a node or a booking may have changed."""

    name = "node-notices"

    def _key(self, due: NodeNotice) -> object:
        return due.job_id, due.attempt, due.text

    async def _list(self, now: datetime) -> Sequence[NodeNotice]:
        return await self._store.list_node_notices(self._term, now)

    def _notice(self, due: NodeNotice, now: datetime) -> Notice:
        return notice_of(due, now)

    async def _record(self, due: NodeNotice, trouble: str | None, now: datetime) -> None:
        await self._store.record_node_notice(self._term, due, trouble, now)


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
