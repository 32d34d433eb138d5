"""What a waiting job could do to start now: free GPUs that are kept, and a shorter time limit."""

from __future__ import annotations

from tests.sql.limits.booking.desk import Desk
from tests.sql.read.query.cluster import Cluster
from tests.support.harness.database import Sql

HOUR = 3600


def _kept_for_a_gang(sql: Sql, **fields: object) -> tuple[Cluster, int, int]:
    """n1 is used for 80 minutes, and then a gang gets n1 and n2. Another job wants n2."""
    cluster = Cluster(sql, nodes=2)
    cluster.submit(gpus=8, time_limit_s=80 * 60)
    cluster.plan()
    gang = cluster.submit(node_count=2, gpus_per_node=8, gpus=None, time_limit_s=HOUR)
    cluster.plan()
    waits = cluster.submit(**{"gpus": 8, "time_limit_s": 4 * HOUR, **fields})
    cluster.plan()
    return cluster, gang, waits


def test_free_gpus_that_are_kept_for_a_planned_job_are_named(sql: Sql) -> None:
    cluster, gang, waits = _kept_for_a_gang(sql)
    [kept] = cluster.explain(waits)["kept"]
    assert kept == {
        "text": f"8 free GPUs of n2 are kept for job {gang}, which is planned for "
        "2026-01-01T01:20:00Z",
        "job_id": gang, "nodes": "n2", "gpus": 8, "until": "2026-01-01T01:20:00Z",
    }  # fmt: skip
    assert cluster.explain(gang)["kept"] == []


def test_the_largest_limit_that_would_start_now_is_found(sql: Sql) -> None:
    cluster, _, waits = _kept_for_a_gang(sql)
    found = cluster.explain(waits)["starts_now"]
    assert found == {
        "time_limit_s": 80 * 60, "node_names": ["n2"],
        "text": "a time limit of 1:20:00 or less would start now on n2",
    }  # fmt: skip
    longer, exact = (
        cluster.submit(gpus=8, time_limit_s=81 * 60),
        cluster.submit(gpus=8, time_limit_s=found["time_limit_s"]),
    )
    assert cluster.plan() == [exact]
    assert cluster.job(longer)["state"] == "PENDING"


def test_a_job_that_the_next_pass_starts_needs_no_shorter_limit(sql: Sql) -> None:
    cluster, _, _ = _kept_for_a_gang(sql)
    starts = cluster.submit(gpus=8, time_limit_s=HOUR)
    assert cluster.explain(starts)["starts_now"] is None


def test_no_limit_helps_a_job_that_does_not_fit(sql: Sql) -> None:
    cluster, gang, _ = _kept_for_a_gang(sql)
    large = cluster.submit(node_count=2, gpus_per_node=8, gpus=None, time_limit_s=HOUR)
    cluster.plan()
    assert cluster.explain(large)["starts_now"] is None
    assert cluster.explain(gang)["starts_now"] is None


def test_a_limit_that_ends_before_a_booking_is_found(sql: Sql) -> None:
    cluster = Cluster(sql)
    Desk(cluster).create(
        "driver", kind="maintenance", node_list=["n1"],
        starts_at="2026-01-01T03:00:00Z", ends_at="2026-01-01T05:00:00Z",
    )  # fmt: skip
    waits = cluster.submit(gpus=1, time_limit_s=8 * HOUR)
    cluster.plan()
    found = cluster.explain(waits)["starts_now"]
    assert (found["time_limit_s"], found["node_names"]) == (3 * HOUR, ["n1"])


def test_the_number_of_outcomes_behind_an_interval_is_told(sql: Sql) -> None:
    cluster, _, waits = _kept_for_a_gang(sql)
    assert cluster.explain(waits)["eta_scored"] == 0
    sql.execute(
        "insert into odc.eta_class (class, ratios, sorted, last_at) "
        "values (0, '{1}', '{1,2,3}', $1)",
        cluster.now,
    )
    assert cluster.explain(waits)["eta_scored"] == 3
