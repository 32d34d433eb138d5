"""Steps share the allocation of their job, and never more than it has."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from odcd.database.pool import connect
from odcd.errors import LeadershipLost
from tests.support.builders.jobs import NOW, Queue, a_cluster
from tests.support.harness.database import Sql
from tests.support.harness.races import until_it_waits

GANG = {"node_count": 2, "gpus_per_node": 4, "gpu_type": "h100", "ntasks_per_node": 1,
        "cpus_per_task": 8}  # fmt: skip
CREATE = "select odc.create_step($1, $2, $3, 'name', 'command', $4::jsonb, $5)"


def running(queue: Queue, **fields: Any) -> int:
    job_id = queue.submit(**{**GANG, **fields})
    assert queue.start() == [job_id]
    for rank in range({**GANG, **fields}["node_count"]):
        tell(queue, job_id, "started", rank)
    return job_id


def tell(queue: Queue, job_id: int, kind: str, rank: int) -> None:
    queue.sql.rows(
        "select * from odc.record_facts(0, array[$1::bigint], array[1], array[$2::integer], "
        "array[$3], array[$4::timestamptz], array[0], array[null::integer], array[null::text], "
        "array[null::text], $4)",
        job_id, rank, kind, queue.now,
    )  # fmt: skip


def create(queue: Queue, job_id: int, key: str = "", term: int = 0, **wants: Any) -> dict[str, Any]:
    key = key or f"key {queue.sql.value('select count(*) from odc.step')}"
    return json.loads(queue.sql.value(CREATE, term, job_id, key, json.dumps(wants), queue.now))


def end(queue: Queue, job_id: int, step: int, state: str = "COMPLETED", code: int = 0) -> None:
    ends = [{"job": job_id, "attempt": 1, "step": step, "state": state, "exit_code": code,
             "statuses": {str(code << 8): "0"}, "ended_at": queue.now.timestamp()}]  # fmt: skip
    queue.sql.rows("select odc.end_steps(0, $1, $2)", json.dumps(ends), queue.now)


def layout(answer: dict[str, Any]) -> list[int]:
    return [node["tasks"] for node in answer["nodes"]]


@pytest.mark.parametrize(
    ("wants", "tasks"),
    [
        ({}, [1, 1]),
        ({"tasks": 1}, [1]),
        ({"tasks": 3}, [2, 1]),
        ({"tasks": 16}, [8, 8]),
        ({"tasks": 2, "nodes": 1}, [2]),
        ({"nodes": 2, "tasks_per_node": 3}, [3, 3]),
        ({"tasks": 4, "cpus_per_task": 4}, [2, 2]),
        ({"tasks": 8, "gpus_per_task": 1}, [4, 4]),
        ({"tasks": 40, "overcommit": True}, [20, 20]),
    ],
)
def test_tasks_are_spread_over_the_nodes(
    queue: Queue, wants: dict[str, Any], tasks: list[int]
) -> None:
    job_id = running(queue)
    answer = create(queue, job_id, **wants)
    assert answer["outcome"] == "created", answer
    assert layout(answer) == tasks


@pytest.mark.parametrize(
    ("wants", "why"),
    [
        ({"tasks": 17}, "processors"),
        ({"tasks": 1, "cpus_per_task": 9}, "processors"),
        ({"tasks": 9, "gpus_per_task": 1}, "gpus"),
        ({"gpus_per_node": 5}, "gpus"),
        ({"nodes": 3}, "nodes"),
        ({"node_list": ["nowhere"]}, "node_list"),
        ({"mem_mib": 2**30}, "memory"),
    ],
)
def test_a_step_that_can_never_fit_is_refused_and_changes_nothing(
    queue: Queue, wants: dict[str, Any], why: str
) -> None:
    job_id = running(queue)
    answer = create(queue, job_id, **wants)
    assert (answer["outcome"], answer["why"]) == ("refused", why)
    assert queue.sql.value("select count(*) from odc.step") == 0


def test_a_step_without_exact_holds_all_cpus_until_it_ends(queue: Queue) -> None:
    job_id = running(queue)
    assert create(queue, job_id, tasks=2)["outcome"] == "created"
    assert create(queue, job_id, tasks=1)["outcome"] == "busy"
    assert create(queue, job_id, tasks=1, exact=True)["outcome"] == "busy"
    assert create(queue, job_id, tasks=1, overlap=True)["outcome"] == "created"
    end(queue, job_id, 0)
    assert create(queue, job_id, tasks=1)["outcome"] == "created"


def test_exact_steps_share_the_cpus_and_gpus_of_their_job(queue: Queue) -> None:
    job_id = running(queue, node_count=1)
    seen: list[int] = []
    for _ in range(4):
        answer = create(queue, job_id, tasks=1, cpus_per_task=2, gpus_per_task=1, exact=True)
        assert answer["outcome"] == "created"
        [node] = answer["nodes"]
        assert node["cpus"] == 2
        seen += node["gpus"]
    assert len(set(seen)) == 4, "two steps got the same GPU"
    assert create(queue, job_id, tasks=1, exact=True)["outcome"] == "busy"
    end(queue, job_id, 2)
    again = create(queue, job_id, tasks=1, gpus_per_task=1, exact=True)
    assert again["nodes"][0]["gpus"] == [seen[2]]


def test_a_step_without_a_request_for_gpus_sees_all_of_the_job(queue: Queue) -> None:
    job_id = running(queue, node_count=1)
    first = create(queue, job_id, tasks=1, exact=True)
    second = create(queue, job_id, tasks=1, exact=True)
    assert len(first["nodes"][0]["gpus"]) == 4
    assert first["nodes"][0]["gpus"] == second["nodes"][0]["gpus"]


def test_a_repeated_request_finds_its_step(queue: Queue) -> None:
    job_id = running(queue)
    first = create(queue, job_id, "same", tasks=2)
    again = create(queue, job_id, "same", tasks=2)
    assert (first["outcome"], again["outcome"]) == ("created", "known")
    assert first["step"] == again["step"] == 0
    end(queue, job_id, 0, "FAILED", 3)
    over = create(queue, job_id, "same", tasks=2)
    assert (over["outcome"], over["state"], over["exit_code"]) == ("known", "FAILED", 3)


def test_no_step_is_created_before_the_job_runs_or_after_it_was_cancelled(queue: Queue) -> None:
    job_id = queue.submit(**GANG)
    assert create(queue, job_id)["why"] == "ended"
    assert queue.start() == [job_id]
    assert create(queue, job_id)["why"] == "starting"
    for rank in range(2):
        tell(queue, job_id, "started", rank)
    assert create(queue, job_id)["outcome"] == "created"
    queue.cancel(job_id)
    assert create(queue, job_id)["why"] == "ended"


def test_steps_end_with_their_job_and_still_get_their_own_exit_code(queue: Queue) -> None:
    job_id = running(queue, node_count=1)
    create(queue, job_id, tasks=1)
    queue.end(job_id)
    [step] = queue.sql.rows("select state::text, exit_code, ended_at from odc.step")
    assert (step["state"], step["exit_code"]) == ("CANCELLED", None)
    assert step["ended_at"] is not None
    end(queue, job_id, 0, "FAILED", 7)
    [step] = queue.sql.rows("select state::text, exit_code from odc.step")
    assert (step["state"], step["exit_code"]) == ("FAILED", 7)
    end(queue, job_id, 0, "COMPLETED", 0)
    assert queue.sql.value("select exit_code from odc.step") == 7, "an end was replaced"


def test_an_old_leader_creates_and_ends_no_step(queue: Queue) -> None:
    job_id = running(queue)
    with pytest.raises(LeadershipLost):
        create(queue, job_id, term=7)
    assert queue.sql.value("select count(*) from odc.step") == 0


def test_lists_name_the_steps_of_running_jobs(queue: Queue) -> None:
    job_id = running(queue)
    create(queue, job_id, tasks=3)
    create(queue, job_id, tasks=1, overlap=True)
    end(queue, job_id, 1)
    rows = queue.sql.rows("select step, state, tasks, node_names from odc.list_steps()")
    assert [(row["step"], row["state"], list(row["tasks"])) for row in rows] == [
        (0, "RUNNING", [2, 1]), (1, "COMPLETED", [1]),
    ]  # fmt: skip
    assert queue.sql.value("select count(*) from odc.list_steps(null, true)") == 1
    assert queue.sql.value("select count(*) from odc.list_steps(array[99])") == 0


def test_two_sessions_never_give_the_same_cpus(database_url: str) -> None:
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1)
        job_id = running(Queue(sql), node_count=1)

    async def race() -> None:
        first, second = await connect(database_url), await connect(database_url)
        watcher = await connect(database_url)
        wants = json.dumps({"tasks": 1, "cpus_per_task": 5, "exact": True})
        transaction = first.transaction()
        await transaction.start()
        one = json.loads(await first.fetchval(CREATE, 0, job_id, "one", wants, NOW))
        waiting = asyncio.create_task(second.fetchval(CREATE, 0, job_id, "two", wants, NOW))
        await until_it_waits(watcher, second.get_server_pid())
        await transaction.commit()
        assert one["outcome"] == "created"
        assert json.loads(await waiting)["outcome"] == "busy"
        for connection in (first, second, watcher):
            await connection.close()

    asyncio.run(race())


def test_a_step_has_no_more_tasks_than_one_user_may_start(queue: Queue) -> None:
    job_id = running(queue)
    for wants in ({"tasks": 10_001}, {"tasks_per_node": 10_000}):
        answer = create(queue, job_id, **wants, overcommit=True)
        assert (answer["outcome"], answer.get("why")) == ("refused", "tasks"), wants
    answer = create(queue, job_id, tasks=10_000, cpus_per_task=1_000_000, exact=True,
                    gpus_per_task=1_000_000, overcommit=True)  # fmt: skip
    assert (answer["outcome"], answer["why"]) == ("refused", "gpus")


def test_a_job_has_a_limited_number_of_steps(queue: Queue) -> None:
    job_id = running(queue)
    assert create(queue, job_id, tasks=1, overlap=True)["step"] == 0
    fill = (
        "insert into odc.step select job_id, attempt, n, n::text, name, command, ranks, "
        "node_names, tasks, cpus, gpu_masks, mem_mib, holds_cpus, holds_gpus, $1::odc.job_state, "
        "started_at from odc.step, generate_series($2::integer, $3::integer) as n where step = 0"
    )
    queue.sql.rows(fill, "RUNNING", 1, 999)
    assert create(queue, job_id, tasks=1, overlap=True)["outcome"] == "busy"
    queue.sql.rows("update odc.step set state = 'COMPLETED' where step = 999")
    assert create(queue, job_id, tasks=1, overlap=True)["step"] == 1000
    queue.sql.rows(fill, "COMPLETED", 1001, 39_999)
    answer = create(queue, job_id, tasks=1, overlap=True)
    assert (answer["outcome"], answer["why"]) == ("refused", "limit")


def test_ends_in_any_order_never_wait_for_one_another(database_url: str) -> None:
    """Before: two reports about the same steps could each hold what the other one waited for."""

    def ends(*jobs: int) -> str:
        return json.dumps([
            {"job": job, "attempt": 1, "step": 0, "state": "FAILED", "exit_code": 1} for job in jobs
        ])  # fmt: skip

    with Sql(database_url) as sql:
        queue = Queue(sql)
        a_cluster(sql, h100=2)
        first, second = (running(queue, node_count=1) for _ in range(2))
        for job_id in (first, second):
            create(queue, job_id, tasks=1)

    async def race() -> None:
        one, two = [await connect(database_url) for _ in range(2)]
        try:
            begun = one.transaction()
            await begun.start()
            await one.execute("select odc.end_steps(0, $1, $2)", ends(first), NOW)
            other = asyncio.create_task(
                two.execute("select odc.end_steps(0, $1, $2)", ends(second, first), NOW)
            )
            await until_it_waits(one, two.get_server_pid())
            await one.execute("select odc.end_steps(0, $1, $2)", ends(second), NOW)
            await begun.commit()
            await other
        finally:
            await one.close()
            await two.close()

    asyncio.run(race())


def test_no_list_reads_the_steps_of_all_times(queue: Queue) -> None:
    """Before: the leader looked for running steps every two seconds, and read all steps ever.

    It did again when PostgreSQL believed that many jobs were running.
    """
    job_id = running(queue)
    create(queue, job_id, tasks=1)
    queue.sql.execute(
        "insert into odc.step select 1000000 + n, attempt, step, key, name, command, ranks, "
        "node_names, tasks, cpus, gpu_masks, mem_mib, holds_cpus, holds_gpus, 'COMPLETED', "
        "started_at from odc.step, generate_series(1, 20000) as n"
    )
    queue.sql.execute("analyze odc.step")
    queue.sql.execute(
        "update pg_class set reltuples = 50000, relpages = 1 where oid = 'odc.running'::regclass"
    )
    for arguments in ("", "null, true", "array[$1::bigint]", "array[$1::bigint], true"):
        args = (job_id,) if "$1" in arguments else ()
        before = rows_read(queue)
        assert queue.sql.value(f"select count(*) from odc.list_steps({arguments})", *args) == 1
        assert rows_read(queue) - before < 100, arguments
    before = rows_read(queue)
    assert create(queue, job_id, "another", tasks=1, overlap=True)["outcome"] == "created"
    assert rows_read(queue) - before < 100


def rows_read(queue: Queue) -> int:
    return queue.sql.value(
        "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables "
        "where relid = 'odc.step'::regclass"
    )


def test_what_steps_used_counts_for_the_job_and_not_for_its_script(queue: Queue) -> None:
    job_id = running(queue)
    create(queue, job_id, tasks=2)
    ends = [{"job": job_id, "attempt": 1, "step": 0, "state": "COMPLETED", "exit_code": 0,
             "statuses": {"0": "0-1"}, "used": [5000, 1000, 2048, 3, 4]}]  # fmt: skip
    queue.sql.rows("select odc.end_steps(0, $1, $2)", json.dumps(ends), queue.now)
    for rank in range(2):
        tell(queue, job_id, "exited", rank)
    assert queue.sql.row("select * from odc.list_steps(array[$1::bigint])", job_id)["used"] == [
        5000, 1000, 2048, 3, 4,
    ]  # fmt: skip
    shown = json.loads(queue.sql.value("select odc._resource_use($1, $2)", job_id, queue.now))
    assert (shown["user_cpu_s"], shown["max_rss_kib"], shown["script"]) == (5.0, 2048, None)
