"""Running dev servers, for the leader's loops and its executor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from odcd.database.pool import Database
from odcd.records.dev_server import (
    Activity,
    DevServerKeys,
    DueCheck,
    ExpiryNotice,
    IdleNotice,
    JupyterRequest,
    NodeNotice,
)


class DevServerStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def put_keys(
        self, term: int, job_id: int, made: DevServerKeys, now: datetime
    ) -> DevServerKeys | None:
        """Store the keys of a dev server unless it has some, and return the stored ones. None: it
        has ended. Raises LeadershipLost."""
        row = await self._db.fetchrow(
            "select host_key, host_public, gang_key, gang_public, jupyter_token "
            "from odc.keep_box_key(p_term => $1, p_job_id => $2, p_host_key => $3, "
            "p_host_public => $4, p_gang_key => $5, p_gang_public => $6, p_jupyter_token => $7, "
            "p_now => $8)",
            term, job_id, made.host_key, made.host_public, made.gang_key, made.gang_public,
            made.jupyter_token, now,
        )  # fmt: skip
        return DevServerKeys(**dict(row)) if row else None

    async def set_port(
        self, term: int, job_id: int, attempt: int, port: int, addresses: Sequence[str]
    ) -> None:
        """Record a node port by which the dev server can also be reached. Raises LeadershipLost."""
        await self._db.fetchval(
            "select odc.note_box_port(p_term => $1, p_job_id => $2, p_attempt => $3, "
            "p_port => $4, p_addresses => $5) is null",
            term, job_id, attempt, port, list(addresses),
        )  # fmt: skip

    async def list_due_jupyters(self, term: int) -> list[JupyterRequest]:
        """Raises LeadershipLost."""
        rows = await self._db.fetch(
            'select job_id, attempt, wanted as "on" from odc.due_jupyters(p_term => $1)', term
        )
        return [JupyterRequest(**dict(row)) for row in rows]

    async def record_jupyter(
        self, term: int, request: JupyterRequest, error: str | None, now: datetime
    ) -> None:
        """error: why the change failed. Raises LeadershipLost."""
        await self._db.fetchval(
            "select odc.note_jupyter(p_term => $1, p_job_id => $2, p_attempt => $3, "
            "p_running => $4, p_error => $5, p_now => $6) is null",
            term, request.job_id, request.attempt, request.on, error, now,
        )  # fmt: skip

    async def list_due_looks(self, term: int) -> list[DueCheck]:
        """Raises LeadershipLost."""
        rows = await self._db.fetch("select job_id, attempt from odc.due_looks(p_term => $1)", term)
        return [DueCheck(**dict(row)) for row in rows]

    async def record_look(
        self, term: int, check: DueCheck, activity: Activity, every: timedelta, now: datetime
    ) -> IdleNotice | None:
        """Record a check, and return the notice to send to the user, if any. Raises
        LeadershipLost."""
        row = await self._db.fetchrow(
            "select idle_s, release_at from odc.note_look(p_term => $1, p_job_id => $2, "
            "p_attempt => $3, p_sessions => $4, p_gpu_percent => $5, p_cpu_s => $6, "
            "p_every => $7, p_now => $8)",
            term, check.job_id, check.attempt, activity.sessions, activity.gpu_percent,
            activity.cpu_s, every, now,
        )  # fmt: skip
        return IdleNotice(**dict(row)) if row else None

    async def record_idle_notice(
        self, term: int, check: DueCheck, notice: IdleNotice, now: datetime
    ) -> None:
        """Raises LeadershipLost."""
        await self._db.fetchval(
            "select odc.note_idle_told(p_term => $1, p_job_id => $2, p_attempt => $3, "
            "p_idle_s => $4, p_release_at => $5, p_now => $6) is null",
            term, check.job_id, check.attempt, notice.idle_s, notice.release_at, now,
        )  # fmt: skip

    async def list_expiry_notices(self, term: int, now: datetime) -> list[ExpiryNotice]:
        """The notices due to users of dev servers now; each is due until
        record_expiry_notice() records it."""
        rows = await self._db.fetch(
            "select job_id, attempt, name, minutes, expires_at, extensible, shared_home "
            "from odc.take_warnings(p_term => $1, p_now => $2)",
            term, now,
        )  # fmt: skip
        return [ExpiryNotice(**dict(row)) for row in rows]

    async def list_node_notices(self, term: int, now: datetime) -> list[NodeNotice]:
        """The notices about nodes that are due; each is due until record_node_notice() records
        it."""
        rows = await self._db.fetch(
            "select job_id, attempt, name, text, until_at, expires_at, shared_home "
            "from odc.take_node_notices(p_term => $1, p_now => $2)",
            term, now,
        )  # fmt: skip
        return [NodeNotice(**dict(row)) for row in rows]

    async def record_node_notice(
        self, term: int, notice: NodeNotice, trouble: str | None, now: datetime
    ) -> None:
        """trouble: why it was not delivered."""
        await self._db.fetchval(
            "select odc.note_node_notice(p_term => $1, p_job_id => $2, p_text => $3, "
            "p_trouble => $4, p_now => $5) is null",
            term, notice.job_id, notice.text, trouble, now,
        )  # fmt: skip

    async def record_expiry_notice(
        self, term: int, warning: ExpiryNotice, trouble: str | None, now: datetime
    ) -> None:  # fmt: skip
        """trouble: the part that was not delivered, and why."""
        await self._db.fetchval(
            "select odc.note_warned(p_term => $1, p_job_id => $2, p_expires_at => $3, "
            "p_minutes => $4, p_trouble => $5, p_now => $6)",
            term, warning.job_id, warning.expires_at, warning.minutes, trouble, now,
        )  # fmt: skip

    async def get_next_notice_time(self, now: datetime) -> datetime | None:
        return await self._db.fetchval("select odc.next_warning(p_now => $1)", now)
