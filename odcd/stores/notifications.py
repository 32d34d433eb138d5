"""Webhooks, and the outbox of notifications."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.records.notification import Channel, Notification
from odcd.stores.actor import actor_of


class NotificationStore:
    """The methods that take a term raise LeadershipLost."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def show_webhook(self, who: Identity) -> str:
        return await self._db.fetchval("select odc.show_webhook(p_uid => $1)", who.uid)

    async def set_webhook(
        self, who: Identity, url: str, kinds: Sequence[str], now: datetime
    ) -> str:
        return await self._db.fetchval(
            "select odc.set_webhook(p_actor => $1::jsonb, p_url => $2, p_kinds => $3, "
            "p_now => $4)",
            actor_of(who), url, list(kinds), now,
        )  # fmt: skip

    async def remove_webhook(self, who: Identity, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.remove_webhook(p_actor => $1::jsonb, p_now => $2)", actor_of(who), now
        )

    async def test_webhook(self, who: Identity, now: datetime) -> int | None:
        """The id of the notification; None: the user has reached the limit per hour."""
        return await self._db.fetchval(
            "select odc.test_webhook(p_actor => $1::jsonb, p_now => $2)", actor_of(who), now
        )

    # -- the leader -------------------------------------------------------------------------------

    async def configure(self, term: int, *, mail: bool, per_hour: int, now: datetime) -> None:
        await self._db.execute(
            "select odc.configure_notifications(p_term => $1, p_mail => $2, p_per_hour => $3, "
            "p_now => $4)",
            term, mail, per_hour, now,
        )  # fmt: skip

    async def note_time_limits(self, term: int, now: datetime) -> None:
        await self._db.execute("select odc.note_time_limits(p_term => $1, p_now => $2)", term, now)

    async def has_due(self, channel: Channel, now: datetime) -> bool:
        return await self._db.fetchval(
            "select exists (select from odc.outbox where channel = $1 and next_at <= $2)",
            channel, now,
        )  # fmt: skip

    async def take(
        self, term: int, channel: Channel, limit: int, claim: timedelta, now: datetime
    ) -> list[Notification]:
        """Those that are due, for this daemon alone until claim has passed."""
        rows = await self._db.fetch(
            "select * from odc.take_outbox(p_term => $1, p_channel => $2, p_limit => $3, "
            "p_claim => $4, p_now => $5)",
            term, channel, limit, claim, now,
        )  # fmt: skip
        return [Notification(**{**row, "facts": json.loads(row["facts"])}) for row in rows]

    async def note_sent(self, ids: Sequence[int], now: datetime) -> None:
        await self._db.execute("select odc.note_sent(p_ids => $1, p_now => $2)", list(ids), now)

    async def note_unsent(
        self, term: int, ids: Sequence[int], retry_at: datetime | None, trouble: str | None,
        now: datetime,
    ) -> None:  # fmt: skip
        """retry_at: None: never. trouble: None: they were not tried."""
        await self._db.execute(
            "select odc.note_unsent(p_term => $1, p_ids => $2, p_retry_at => $3, p_trouble => $4, "
            "p_now => $5)",
            term, list(ids), retry_at, trouble, now,
        )  # fmt: skip

    async def tidy(
        self, term: int, give_up_before: datetime, forget_before: datetime, limit: int,
        now: datetime,
    ) -> tuple[list[str], bool]:  # fmt: skip
        """The channels of those given up, and whether there may be more to do."""
        row = await self._db.fetchrow(
            "select given_up, more from odc.tidy_outbox(p_term => $1, p_give_up_before => $2, "
            "p_forget_before => $3, p_limit => $4, p_now => $5)",
            term, give_up_before, forget_before, limit, now,
        )  # fmt: skip
        assert row is not None
        return list(row["given_up"]), row["more"]
