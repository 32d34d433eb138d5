"""Builds of container images."""

from __future__ import annotations

from datetime import datetime

from odcd.database.pool import Database
from odcd.records.build import Build
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class BuildStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def put(
        self, who: Identity, digest: str, target: str, dockerfile: str, context: bytes,
        now: datetime, *, rebuild: bool,
    ) -> str:  # fmt: skip
        """Return the build of a context, as JSON. rebuild: build it even if its image exists.
        Raises LimitExceeded."""
        return await self._db.fetchval(
            "select odc.put_build(p_actor => $1::jsonb, p_digest => $2, p_target => $3, "
            "p_dockerfile => $4, p_context => $5, p_anew => $6, p_now => $7)",
            actor_of(who), digest, target, dockerfile, context, rebuild, now,
        )  # fmt: skip

    async def get(self, who: Identity, digest: str, target: str) -> str:
        """Return the build as JSON. Raises UnknownBuild."""
        return await self._db.fetchval(
            "select odc.show_build(p_actor => $1::jsonb, p_digest => $2, p_target => $3)",
            actor_of(who), digest, target,
        )  # fmt: skip

    async def get_log(self, who: Identity, digest: str, target: str) -> str:
        """Raises UnknownBuild."""
        return await self._db.fetchval(
            "select odc.read_build_log(p_actor => $1::jsonb, p_digest => $2, p_target => $3)",
            actor_of(who), digest, target,
        )  # fmt: skip

    async def take(self, term: int, limit: int, now: datetime) -> list[Build]:
        """The builds that should run now; all others must not run. Raises LeadershipLost."""
        rows = await self._db.fetch(
            "select id, attempt, digest, target, dockerfile, uid, made, started_at "
            "from odc.take_builds(p_term => $1, p_most => $2, p_now => $3)",
            term, limit, now,
        )  # fmt: skip
        return [Build(**dict(row)) for row in rows]

    async def get_context(self, build_id: int) -> bytes | None:
        """Return the build context, or None if it is no longer kept."""
        return await self._db.fetchval(
            "select odc.read_build_context(p_build_id => $1)", build_id
        )  # fmt: skip

    async def record_progress(
        self, term: int, build: Build, now: datetime, *, made: bool, step: str | None,
        log: str | None,
    ) -> None:  # fmt: skip
        """Record the build's progress. Raises LeadershipLost."""
        await self._db.fetchval(
            "select odc.note_build(p_term => $1, p_build_id => $2, p_attempt => $3, "
            "p_made => $4, p_step => $5, p_log => $6, p_now => $7)",
            term, build.id, build.attempt, made, step, log, now,
        )  # fmt: skip

    async def end(
        self, term: int, build: Build, now: datetime, *, image: str | None, error: str | None,
        lost: bool, log: str | None,
    ) -> bool:  # fmt: skip
        """Record the end of a build. Return whether the jobs that waited for it can continue. lost:
        the result is unknown. Raises LeadershipLost."""
        return await self._db.fetchval(
            "select odc.end_build(p_term => $1, p_build_id => $2, p_attempt => $3, "
            "p_image => $4, p_error => $5, p_lost => $6, p_log => $7, p_now => $8)",
            term, build.id, build.attempt, image, error, lost, log, now,
        )  # fmt: skip
