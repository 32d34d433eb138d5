"""The cluster as a whole."""

from __future__ import annotations

from datetime import datetime

from odcd.database.pool import Database


class ClusterStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def get_server_id(self) -> str:
        """The id of this odc installation; it lasts as long as the database."""
        return await self._db.fetchval("select id::text from odc.server")

    async def count(self, now: datetime) -> str:
        """How much of the cluster is in use, as JSON."""
        return await self._db.fetchval("select odc.count_cluster(p_now => $1)", now)

    async def diagnose(self, now: datetime) -> str:
        """The data of `odcctl diag`: counts by state, the last pass, the term."""
        return await self._db.fetchval("select odc.diagnose(p_now => $1)", now)
