"""Elastic groups: steps of the leader's loop, and the list of groups."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from odcd.database.pool import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingNode:
    """sent: AWS may have been asked to end it."""

    instance_id: str
    node: str
    group_name: str
    sent: bool


class ElasticStore:
    """The methods of the loop raise LeadershipLost."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(self, now: datetime) -> str:
        return await self._db.fetchval("select odc.list_groups(p_now => $1)", now)

    async def see(
        self, term: int, groups: Sequence[Mapping[str, object]],
        nodes: Sequence[Mapping[str, object]], now: datetime,
    ) -> dict[str, str]:  # fmt: skip
        """Return the groups that are ignored, and why."""
        rows = await self._db.fetch(
            "select group_name, problem from odc.see_groups(p_term => $1, p_groups => $2::jsonb, "
            "p_nodes => $3::jsonb, p_now => $4)",
            term, json.dumps([dict(one) for one in groups]),
            json.dumps([dict(one) for one in nodes]), now,
        )  # fmt: skip
        return {row["group_name"]: row["problem"] for row in rows}

    async def grow(self, term: int, now: datetime) -> dict[str, int]:
        """Return the groups that are to grow, and their sizes."""
        rows = await self._db.fetch(
            "select group_name, wanted from odc.grow_groups(p_term => $1, p_now => $2)", term, now
        )
        return {row["group_name"]: row["wanted"] for row in rows}

    async def take_sizes(self, term: int) -> dict[str, int]:
        """The sizes that AWS is to be asked for."""
        rows = await self._db.fetch(
            "select group_name, wanted from odc.take_sizes(p_term => $1)", term
        )
        return {row["group_name"]: row["wanted"] for row in rows}

    async def record_size(
        self, term: int, group: str, size: int, failure: str | None, now: datetime
    ) -> None:
        await self._db.execute(
            "select odc.note_size(p_term => $1, p_group => $2, p_size => $3, p_failure => $4, "
            "p_now => $5)",
            term, group, size, failure, now,
        )  # fmt: skip

    async def shrink(self, term: int, now: datetime) -> list[str]:
        """Drain nodes that were empty for long; return their names."""
        rows = await self._db.fetch(
            "select * from odc.shrink_groups(p_term => $1, p_now => $2)", term, now
        )
        return [row[0] for row in rows]

    async def list_leaving(self, term: int, now: datetime) -> list[LeavingNode]:
        rows = await self._db.fetch(
            "select instance_id, node, group_name, sent "
            "from odc.leaving_nodes(p_term => $1, p_now => $2)",
            term, now,
        )  # fmt: skip
        return [LeavingNode(**row) for row in rows]

    async def confirm_removal(self, term: int, instance_id: str, now: datetime) -> bool:
        """Whether the instance may be ended."""
        return await self._db.fetchval(
            "select odc.confirm_removal(p_term => $1, p_instance_id => $2, p_now => $3)",
            term, instance_id, now,
        )  # fmt: skip

    async def record_removal(
        self, term: int, instance_id: str, kept: str | None, now: datetime
    ) -> None:
        """kept: why its node stays; None: AWS ends it."""
        await self._db.execute(
            "select odc.note_removal(p_term => $1, p_instance_id => $2, p_kept => $3, "
            "p_now => $4)",
            term, instance_id, kept, now,
        )  # fmt: skip
