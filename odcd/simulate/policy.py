"""The ordering and protection of jobs, as set by the options of `odcd simulate`."""

from __future__ import annotations

from dataclasses import dataclass

from odcd.database.session import Session
from odcd.errors import BadRequest

ALL = 1_000_000
"""Plan depth: every blocked job is protected."""
BACKFILL = ("order", "fifo", "sjbf", "safbf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """None: the value of the named policy; without a name, of a fresh install's policy."""

    name: str | None = None
    plan_depth: int | None = None
    backfill: str | None = None
    max_wait_s: int | None = None
    """0: no cap."""


async def set_policy(session: Session, policy: Policy) -> str:
    """Set the default partition's policy, in the replay's own database; return its name."""
    name = policy.name or await session.fetchval(
        "select policy from odc.partition where is_default"
    )
    known = [row[0] for row in await session.fetch("select name from odc.policy order by name")]
    if name not in known:
        raise BadRequest(f'policy "{name}" does not exist', f"Policies: {', '.join(known)}.")
    await session.execute(
        "update odc.policy set plan_depth = coalesce($2, plan_depth), "
        "backfill = coalesce($3, backfill), "
        "max_wait_s = case when $4::integer is null then max_wait_s else nullif($4, 0) end "
        "where name = $1",
        name, policy.plan_depth, policy.backfill, policy.max_wait_s,
    )  # fmt: skip
    # The trace limits a job's run time, not the partition.
    await session.execute(
        "update odc.partition set policy = $1, max_time_limit_s = null where is_default", name
    )
    return name
