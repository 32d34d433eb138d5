"""The metrics of a cluster, each in the form of the catalogue."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odcd.metrics.families import CLUSTER, MEASURES
from odcd.metrics.sample import Cluster
from tests.sql.cluster.measure.figures import measured, of
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue, a_cluster
from tests.support.harness.database import Sql

OPERATOR = '{"user": "root", "uid": 0, "operator": true}'


def test_each_metric_is_returned_by_one_function(sql: Sql) -> None:
    a_cluster(sql, h100=1)
    queue = Queue(sql)
    function_of: dict[str, str] = {}
    for name in MEASURES:
        rows = queue.sql.rows(f"select * from odc.{name}($1)", queue.now)
        Cluster([(row["metric"], row["labels"], row["value"]) for row in rows])
        for row in rows:
            assert function_of.setdefault(row["metric"], name) == name
    # Some have labels without values yet; some are the sampler's own, or have no data.
    silent = {f.name for f in CLUSTER if not function_of.keys() & set(f.samples)}
    assert silent == {
        "odcd_gpu_seconds_total", "odcd_job_preemptions_total", "odcd_limit_used_ratio",
        "odcd_scheduler_jobs_considered", "odcd_scheduler_last_success_timestamp_seconds",
        "odcd_eta_coverage_ratio", "odcd_eta_error_seconds", "odcd_eta_bias_seconds",
        "odcd_eta_width_seconds", "odcd_leader_since_timestamp_seconds",
        "odcd_database_replication_lag_seconds", "odcd_sample_timestamp_seconds",
        "odcd_sample_seconds", "odcd_reservation_idle_seconds",
        "odcd_elastic_nodes", "odcd_elastic_launch_failures",
    }  # fmt: skip


@pytest.mark.parametrize("name", MEASURES)
def test_an_empty_database_is_measured(sql: Sql, name: str) -> None:
    measured(Queue(sql), name)


def test_live_jobs_by_state_with_every_state(queue: Queue) -> None:
    queue.submit(gpus=8, gpu_type="h100")
    queue.submit(array="0-9", gpus=8)
    queue.start()
    found = measured(queue, "measure_queue")
    assert of(found, "odcd_jobs") == {("PENDING", "main"): 9, ("CONFIGURING", "main"): 2}
    assert found["odcd_jobs", "RUNNING", "main"] == found["odcd_jobs", "COMPLETING", "main"] == 0


STEPS = ("job", "gang", "array", "held", "later", "after", "limit", "start", "end", "release")


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=25), seed=st.integers(0, 99))
def test_reasons_are_those_that_users_see(queue: Queue, steps: list[str], seed: int) -> None:
    """The reason of every class of equal jobs, as odc.pending_job shows it for each job."""
    chance, sql = random.Random(seed), queue.sql
    with sql.trial():
        for step in steps:
            pending = sql.values("select job_id from odc.pending order by 1")
            running = sql.values("select job_id from odc.running order by 1")
            who = chance.choice((ALICE, BOB))
            if step == "job":
                queue.submit(who, gpus=chance.choice((0, 1, 8)), time_limit_s=600)
            elif step == "gang":
                queue.submit(who, node_count=2, gpus_per_node=8, gpu_type="h100")
            elif step == "array":
                queue.submit(who, array="0-4%1", gpus=1)
            elif step == "held":
                queue.submit(who, gpus=1, hold=True)
            elif step == "later":
                queue.submit(who, gpus=1, begin_at=queue.now.replace(year=2027))
            elif step == "after" and pending:
                queue.submit(who, gpus=1, dependency=f"afterok:{chance.choice(pending)}")
            elif step == "limit":
                sql.execute(
                    "insert into odc.resource_limit values ('qos', 1, 'user', 'jobs', 1) "
                    "on conflict do nothing"
                )
            elif step == "start":
                queue.start()
            elif step == "end" and running:
                queue.end(chance.choice(running), exit_code=chance.choice((0, 1)))
            elif step == "release" and pending:
                queue.release(chance.choice(pending), who=ROOT)
            queue.move(10)
        seen = sql.rows(
            "select p.reason, sum(coalesce(odc._task_count(q.tasks), 1)) as jobs "
            "from odc.pending_job as p join odc.pending as q on q.job_id = p.id group by 1"
        )
        found = measured(queue, "measure_queue")
        assert of(found, "odcd_jobs_pending") == {row["reason"]: row["jobs"] for row in seen}


def test_limits_are_measured_with_their_use(queue: Queue) -> None:
    queue.sql.execute("insert into odc.resource_limit values ('qos', 1, 'group', 'gpus', 4)")
    queue.sql.execute("insert into odc.resource_limit values ('account', 1, 'group', 'jobs', 0)")
    found = measured(queue, "measure_queue")
    assert found["odcd_jobs_at_limit", "QOSGrpGRES"] == 0
    queue.sql.execute("delete from odc.resource_limit where what = 'jobs'")
    for _ in range(3):
        queue.submit(gpus=3, gpu_type="h100")
    queue.start()
    found = measured(queue, "measure_queue")
    assert of(found, "odcd_jobs_at_limit") == {"QOSGrpGRES": 2}
    queue.sql.execute("insert into odc.resource_limit values ('account', 1, 'group', 'jobs', 0)")
    assert of(measured(queue, "measure_limits"), "odcd_limit_used_ratio") == {
        ("qos", "normal", "gpus"): 0.75, ("account", "default", "jobs"): 1,
    }  # fmt: skip


def test_the_oldest_wait_is_of_a_job_that_may_start(queue: Queue) -> None:
    queue.submit(gpus=1, hold=True)
    queue.move(1000)
    key = ("odcd_job_oldest_wait_seconds", "main")
    assert measured(queue, "measure_queue")[key] == 0
    queue.submit(node_count=2, gpus_per_node=8)
    queue.move(100)
    assert measured(queue, "measure_queue")[key] == 100


def test_every_gpu_is_in_one_state(queue: Queue) -> None:
    sql = queue.sql
    a_cluster(sql, h100=5, l4=1)
    queue.submit(gpus=2, gpu_type="h100", node_list=["h100-1"])
    queue.submit(gpus=2, gpu_type="h100", node_list=["h100-2"])
    queue.start()
    set_state = "select odc.set_node_state($1::jsonb, $2, $3, 'x', $4)"
    sql.execute(set_state, OPERATOR, ["h100-2"], "DRAIN", queue.now)
    sql.execute(set_state, OPERATOR, ["h100-3"], "DOWN", queue.now)
    sql.execute(
        "insert into odc.booking (name, kind, state, state_at, starts_at, duration_s, node_list, "
        "created_by, created_at) values ('b', 'use', 'ACTIVE', $1, $1, 3600, '{h100-4}', 'x', $1)",
        queue.now,
    )
    sql.execute(
        "insert into odc.booking_node select b.id, n.id from odc.booking as b, odc.node as n "
        "where n.name = 'h100-4'"
    )
    found = measured(queue, "measure_nodes")
    h100 = {"allocated": 4, "idle": 6 + 8, "booked": 8, "draining": 6, "down": 8}
    assert of(found, "odcd_gpus") == {
        **{(state, "h100"): gpus for state, gpus in h100.items()}, ("idle", "l4"): 4,
    }  # fmt: skip
    assert found["odcd_gpus", "down", "l4"] == 0
    assert of(found, "odcd_partition_gpus") == {
        ("main", *key): gpus
        for key, gpus in of(found, "odcd_gpus").items()  # type: ignore[misc]
    }
    assert of(found, "odcd_nodes") == {
        ("UP", "h100"): 3, ("DRAIN", "h100"): 1, ("DOWN", "h100"): 1, ("UP", "l4"): 1,
    }  # fmt: skip
    assert found["odcd_gpus_fragmented", "h100"] == 6
    assert found["odcd_gang_nodes_max", "h100"] == 2


def test_gpus_come_free_as_jobs_are_expected_to_end(queue: Queue) -> None:
    queue.submit(gpus=8, gpu_type="h100", time_limit_s=3 * 3600)
    queue.submit(gpus=8, gpu_type="h100", time_limit_s=20 * 3600)
    queue.start()
    found = measured(queue, "measure_forecast")
    # For jobs without similar ones, half of their limit.
    hours = ("1", "2", "8", "16", "24")
    assert [found["odcd_gpus_forecast", "h100", hour] for hour in hours] == [
        0, 8, 8, 16, 16,
    ]  # fmt: skip
    queue.sql.execute("update odc.node set state = 'DRAIN' where name = 'h100-1'")
    assert measured(queue, "measure_forecast")["odcd_gpus_forecast", "h100", "24"] == 8


def test_overdue_ends_are_reported(queue: Queue) -> None:
    queue.submit(gpus=1, time_limit_s=600)
    queue.start()
    queue.move(600)
    assert measured(queue, "measure_reservations")["odcd_expiry_lag_seconds",] == 0
    queue.move(45)
    assert measured(queue, "measure_reservations")["odcd_expiry_lag_seconds",] == 45


def test_job_names_are_escaped_in_labels(queue: Queue) -> None:
    one = queue.submit(gpus=1)
    gang = queue.submit(node_count=2, gpus_per_node=4)
    queue.start()
    queue.sql.execute("update odc.job set user_name = E'a\"\\\\\\n' where id = $1", one)
    text = queue.sql.value("select odc.render_job_info(array[$1::bigint], '{gpu-dev}')", gang)
    lines = text.splitlines()
    assert len(lines) == 3
    assert 'user="a\\"\\\\\\n"} 1.0' in lines[0]
    assert 'namespace="",node=' in lines[0]
    assert 'pod=""' in lines[0]
    assert ['gpus="1"' in lines[0], 'gpus="4"' in lines[2]] == [True, True]
    assert f'namespace="gpu-dev",node="h100-2",partition="main",pod="odc-{gang}-1-1"' in lines[2]
    queue.end(one, gang)
    assert queue.sql.value("select odc.render_job_info('{}', '{}')") == ""


def test_the_oldest_snapshot_is_measured(database_url: str) -> None:
    with Sql(database_url) as sql, Sql(database_url) as reader:

        def age() -> float:
            return sql.value(
                "select value from odc.measure_database(clock_timestamp() + interval '1 hour') "
                "where metric = 'odcd_database_oldest_snapshot_seconds'"
            )

        assert age() == 0
        reader.execute("begin isolation level repeatable read")
        reader.rows("select from odc.job")
        assert age() > 3600
        reader.execute("commit")
        assert age() == 0
