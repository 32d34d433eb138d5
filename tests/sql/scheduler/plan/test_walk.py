"""Parts of a walk over the queue: the job at hand, more rows, a job that does not fit."""

from __future__ import annotations

import json
from typing import Any

from tests.sql.scheduler.plan.world import NOW, Node, Pending, Shape, World, add_functions, build
from tests.support.harness.database import Sql

UNLIMITED_S = 2_147_483_647
SHAPES = {
    "shape_ids": [3, -1_000_001], "depths": [1, 1_000_000], "leasts": [2, 1], "mosts": [4, 1],
    "gpus": [8, 1], "switches": [1, None], "waits_s": [100, None], "alt_from": [1, 2],
    "alt_to": [1, 2], "group_from": [1, 3], "group_to": [2, 3], "use_from": [1, 1, 4],
    "use_to": [0, 3, 4],
}  # fmt: skip


def describe(sql: Sql, class_: int, shape: int, limit_s: int, waited_s: int) -> dict[str, Any]:
    return sql.row(
        "select (odc._describe_job(s, 7, $2, $3, $4, $5)).* "
        "from jsonb_populate_record(null::odc.shape_lists, $1::jsonb) as s",
        json.dumps(SHAPES), class_, shape, limit_s, waited_s,
    )  # fmt: skip


def test_a_job_is_described_by_its_class_and_shape(sql: Sql) -> None:
    job = describe(sql, 2, 1, 3600, 0)
    assert (job["job_id"], job["class"], job["shape"]) == (7, 2, 1)
    assert (job["limit_s"], job["limit_us"]) == (3600, 3_600_000_000)
    assert (job["least"], job["most"], job["gpus"]) == (2, 4, 8)
    assert (job["groups_from"], job["groups_to"]) == (1, 2)
    assert (job["use_from"], job["use_to"]) == (1, 3)
    assert not job["claims_nodes"]


def test_a_job_without_a_time_limit_ends_far_away(sql: Sql) -> None:
    job = describe(sql, 3, 2, UNLIMITED_S, 0)
    assert job["limit_us"] == 4 * 10**18
    assert job["claims_nodes"]
    assert (job["blocks_most"], job["lapse"], job["slot"]) == (None, None, 2)


def test_a_wish_for_few_blocks_lapses(sql: Sql) -> None:
    """Until then the job is refused apart from those of its shape that wish for nothing."""
    wishing = describe(sql, 1, 1, 60, 40)
    assert (wishing["blocks_most"], wishing["lapse"], wishing["slot"]) == (1, 60_000_000, 3)
    lapsed = describe(sql, 1, 1, 60, 100)
    assert (lapsed["blocks_most"], lapsed["lapse"], lapsed["slot"]) == (None, 0, 1)


def test_more_rows_of_a_class_become_a_run_of_the_queue(sql: Sql) -> None:
    add_functions(sql)
    shape = Shape(nodes=1, gpus=1, cpus=1, mem=1)
    first, second, third = build(
        sql, World([Node("n1", "a100", 8, 80, 80)], [], [Pending(shape, 60) for _ in range(3)])
    )
    facts = sql.row("select shape_id, qos_id, account_id from odc.pending where job_id = $1", first)
    facts |= {"class": 5, "limit_s": 60, "uid": 1001, "nice": 0, "tier": 1, "ordering": "fifo",
              "depth": 1}  # fmt: skip
    query = (
        "select r.* from jsonb_populate_record(null::odc.class_facts, $1::jsonb) as c "
        "cross join lateral odc._read_rows($2, false, c, $3, 2, null, false, 0, $4, $5, "
        "(select array_agg(queued_at order by job_id) from odc.pending where job_id = any ($5)), "
        "'{1}', '{0}', '{0}') as r"
    )
    read = sql.row(query, json.dumps(facts), NOW, 1, [1, 1], [first])
    assert read["p_job_ids"] == [first, second, third]
    assert read["classes"] == [5, 5]
    # The run at hand, then the new one: rows 2 to 3.
    assert read["p_queue"] == [1, 1, 2, 3]
    assert read["read_count"] == 32
    none = sql.row(query, json.dumps(facts), NOW, 1, [1, 1], [third])
    assert (none["p_job_ids"], none["p_queue"], none["read_count"]) == ([third], [1, 1], None)


def verdict(sql: Sql, **given: str) -> dict[str, Any]:
    """Of _protect_job, with these SQL expressions as arguments; the others are null."""
    names = sql.values(
        "select unnest(proargnames[:pronargs]) from pg_proc "
        "where proname = '_protect_job' and pronamespace = 'odc'::regnamespace"
    )
    assert set(given) <= set(names)
    arguments = ", ".join(f"{name} => {given.get(name, 'null')}" for name in names)
    return sql.row(f"select * from odc._protect_job({arguments})")


JOB = 'jsonb_populate_record(null::odc.candidate, \'{"job_id": 7, "depth": 1, "limit_us": 60}\')'
REFUSED = {
    "p_job": JOB, "p_lacking": "'{}'", "p_tight": "'{}'", "p_wait": "true", "p_full": "true",
    "p_preempts": "false", "p_tries": "3", "p_nowhere": "90",
}  # fmt: skip


def test_behind_a_full_group_a_job_is_refused_and_not_searched_for(sql: Sql) -> None:
    refused = verdict(sql, **REFUSED, p_behind="5")
    assert refused["refusal"] == "Priority"
    assert (refused["entry"], refused["reported"], refused["lacks"]) == (None, None, None)
    assert (refused["preempts"], refused["tries"], refused["nowhere"]) == (False, 3, 90)
    assert verdict(sql, **REFUSED)["refusal"] == "Resources"


def test_a_shape_without_a_start_in_sight_is_not_searched_for_again(sql: Sql) -> None:
    refused = verdict(sql, **{**REFUSED, "p_full": "false", "p_nowhere": "60"})
    assert (refused["refusal"], refused["entry"]) == ("Resources", None)


def test_a_job_that_lacks_a_limit_and_may_not_wait_closes_its_class(sql: Sql) -> None:
    lacking = {"p_full": "false", "p_lacking": "'{4,2}'", "p_tight": "'{2,4}'", "p_wait": "false"}
    refused = verdict(sql, **REFUSED | lacking)
    assert (refused["lacks"], refused["refusal"], refused["entry"]) == (4, None, None)
