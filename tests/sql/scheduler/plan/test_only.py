"""A plan for some of the pending jobs is the plan that they would have alone."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.scheduler.plan.test_decide import QUICK
from tests.sql.scheduler.plan.world import NOW, World, add_functions, build, worlds
from tests.support.harness.database import Sql

LATER = NOW + timedelta(seconds=30)


def decided(sql: Sql, only: list[int] | None, without: list[int] | None = None) -> dict[str, Any]:
    """Through JSON: behind a job without a time limit, planned starts exceed Python's last year."""
    plan = json.loads(
        sql.value(
            "select to_jsonb(d)::text from odc.decide($1, p_chunk => $4, p_only => $2, "
            "p_without => $3) as d",
            LATER, only, without, 1 if without else 2,
        )
    )  # fmt: skip
    # The shapes of jobs that are left out are still read.
    prefixes = {"start", "alloc", "head"} if without else {*(key.split("_")[0] for key in plan)}
    return {key: value for key, value in plan.items() if key.split("_")[0] in prefixes}


@pytest.mark.long
@given(
    world=worlds(),
    policy=st.sampled_from(["fifo", "multifactor", "wfp3", "odc"]),
    depth=st.sampled_from([1, 2, 5]),
    some=st.sets(st.integers(0, 11)),
)
@settings(QUICK, max_examples=40)
def test_a_plan_for_some_jobs_is_their_plan_alone(
    sql: Sql, world: World, policy: str, depth: int, some: set[int]
) -> None:
    try:
        add_functions(sql)
        ids = build(sql, world)
        sql.execute("update odc.partition set policy = $1", policy)
        sql.execute("update odc.policy set plan_depth = $2 where name = $1", policy, depth)
        # Jobs planned now may not slip later.
        sql.row("select started from odc.plan_pass(0, $1)", NOW)
        waiting = sql.values("select job_id from odc.pending where ready order by job_id desc")
        assert decided(sql, waiting) == decided(sql, None)
        chosen = [job_id for at, job_id in enumerate(ids) if at in some and job_id in waiting]
        plan = decided(sql, chosen)
        left = decided(sql, None, [job_id for job_id in waiting if job_id not in chosen])
        assert left == {key: plan[key] for key in left}
        sql.execute("delete from odc.pending where job_id <> all ($1)", chosen)
        assert plan == decided(sql, None)
    finally:
        # Hypothesis calls a test many times with one fixture.
        sql.rollback()
        sql.begin()
