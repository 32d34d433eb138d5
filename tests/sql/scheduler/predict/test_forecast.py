"""The simulated queue: predictions for pending jobs, stored, and scored when they start."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from odcd.records.job import Identity
from tests.sql.limits.booking.desk import Desk
from tests.support.builders.jobs import ALICE, BOB, NOW, Queue, a_cluster
from tests.support.harness.database import Sql

HOUR = 3600
EVE = Identity(user="eve", uid=1003, gid=100, operator=False)


def seconds(queue: Queue, moment: Any) -> float:
    return (moment - queue.now).total_seconds()


def forecast(queue: Queue) -> dict[int, dict[str, Any]]:
    rows = queue.sql.rows("select * from odc.forecast($1)", queue.now)
    return {row["job_id"]: row for row in rows}


def waits(queue: Queue) -> dict[int, float | None]:
    """The result of the plan, without corrections."""
    row = queue.sql.row("select * from odc._forecast_starts($1, 1000, null)", queue.now)
    return dict(zip(row["job_ids"] or [], row["waits_s"] or [], strict=True))


def refresh(queue: Queue) -> dict[str, int]:
    return queue.sql.row("select * from odc.refresh_eta(0, $1)", queue.now)


def near(seconds: float | None, expected: float) -> bool:
    """Steps are 1/128 of the distance."""
    return seconds is not None and abs(seconds - expected) <= 1 + expected / 100


def teach(queue: Queue, seconds: int, **fields: Any) -> None:
    """Run two such jobs for this time."""
    for _ in range(2):
        job = queue.submit(**fields)
        assert queue.start() == [job]
        queue.move(seconds)
        queue.end(job)
    queue.sql.execute("select odc._fold_run_times()")


def test_an_empty_queue_has_no_predictions(queue: Queue) -> None:
    assert forecast(queue) == {}
    queue.submit()
    queue.start()
    assert forecast(queue) == {}
    assert refresh(queue) == {"foreseen": 0, "kept": 0, "scored": 0}


def test_a_predicted_wait_follows_the_run_times_of_similar_jobs(queue: Queue) -> None:
    whole: dict[str, Any] = {"node_count": 2, "gpus_per_node": 8, "time_limit_s": 10 * HOUR}
    teach(queue, 600, **whole)
    runs = queue.submit(**whole)
    assert queue.start() == [runs]
    first, second = queue.submit(**whole), queue.submit(**whole)
    queue.start()
    assert near(waits(queue)[first], 600)
    assert near(waits(queue)[second], 1200)
    queue.move(400)
    assert near(waits(queue)[first], 200)
    # It has run longer than the jobs before it: half of its remaining limit.
    queue.move(300)
    assert near(waits(queue)[first], (36_000 - 700) / 2)


def test_one_node_is_enough_for_a_part_of_a_node_but_not_for_a_gang(queue: Queue) -> None:
    teach(queue, 500, gpus_per_node=6, time_limit_s=HOUR)
    teach(queue, 2000, gpus_per_node=7, time_limit_s=HOUR)
    long = queue.submit(gpus_per_node=7, time_limit_s=HOUR)
    short = queue.submit(gpus_per_node=6, time_limit_s=HOUR)
    assert queue.start() == [long, short]
    part = queue.submit(gpus_per_node=4, time_limit_s=HOUR)
    gang = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=HOUR, who=BOB)
    queue.start()
    expected = waits(queue)
    assert near(expected[part], 500)
    assert (expected[gang] or 0) >= 2000


def test_a_job_behind_a_protected_one_starts_first_only_if_its_limit_lets_it(
    queue: Queue,
) -> None:
    runs = queue.submit(gpus_per_node=8, time_limit_s=HOUR)
    assert queue.start() == [runs]
    gang = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=HOUR)
    queue.start()
    other = queue.submit(gpus_per_node=8, time_limit_s=2 * HOUR)
    little = queue.submit(gpus_per_node=8, time_limit_s=HOUR // 4)
    assert queue.start() == [little]
    expected = waits(queue)
    # Half of its limit, because there are no similar jobs.
    assert near(expected[gang], HOUR / 2)
    assert (expected[other] or 0) > HOUR / 2


def test_short_jobs_are_backfilled_first_where_the_policy_says_so(queue: Queue) -> None:
    sql = queue.sql
    sql.execute("insert into odc.policy (name, ordering, backfill) values ('f', 'fifo', 'sjbf')")
    sql.execute("update odc.partition set policy = 'f'")
    teach(queue, 3000, gpus_per_node=8, time_limit_s=3 * HOUR)
    teach(queue, 1500, gpus_per_node=8, time_limit_s=HOUR // 2)
    long = queue.submit(gpus_per_node=8, time_limit_s=3 * HOUR)
    short = queue.submit(gpus_per_node=8, time_limit_s=HOUR // 2)
    assert queue.start() == [long, short]
    gang = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=HOUR)
    middle = queue.submit(gpus_per_node=8, time_limit_s=HOUR)
    little = queue.submit(gpus_per_node=8, time_limit_s=HOUR // 2)
    queue.start()
    expected = waits(queue)
    assert near(expected[little], 1500)
    assert near(expected[gang], 3000)
    assert (expected[middle] or 0) > 3000
    sql.execute("update odc.partition set policy = 'fifo'")
    expected = waits(queue)
    assert near(expected[middle], 1500)
    assert (expected[little] or 0) >= 3000


def test_no_expected_start_is_null(queue: Queue) -> None:
    queue.sql.execute("update odc.node_free set up = false")
    job = queue.submit()
    queue.start()
    prediction = forecast(queue)[job]
    assert (prediction["p10"], prediction["p50"], prediction["p90"], prediction["exact"]) == (
        None,
        None,
        None,
        False,
    )
    assert refresh(queue) == {"foreseen": 1, "kept": 0, "scored": 0}


def test_a_job_over_a_limit_is_expected_when_the_limit_allows_it(queue: Queue) -> None:
    queue.sql.execute(
        "insert into odc.resource_limit (scope, scope_id, per, what, value) "
        "values ('qos', 1, 'user', 'jobs', 1)"
    )
    runs = queue.submit(gpus_per_node=8, time_limit_s=HOUR)
    bobs = queue.submit(gpus_per_node=8, time_limit_s=HOUR, who=BOB)
    assert queue.start() == [runs, bobs]
    over = queue.submit(gpus_per_node=1, time_limit_s=HOUR)
    free = queue.submit(gpus_per_node=8, time_limit_s=HOUR, who=EVE)
    queue.start()
    expected = forecast(queue)
    assert set(expected) == {over, free}
    assert expected[over]["exact"]


def test_booked_nodes_do_not_count(queue: Queue) -> None:
    """One of the two nodes is; its free part is too small for any job."""
    at = queue.now + timedelta(seconds=1)
    Desk(queue).create(kind="maintenance", node_list=["h100-2"], starts_at=at, duration_s=10 * HOUR)
    queue.move(2)
    runs = queue.submit(gpus_per_node=8, time_limit_s=HOUR)
    assert queue.start() == [runs]
    job = queue.submit(gpus_per_node=8, time_limit_s=HOUR)
    assert queue.start() == []
    assert near(waits(queue)[job], HOUR / 2)


def test_a_job_that_names_nodes_waits_for_them(queue: Queue) -> None:
    """Jobs without similar ones are expected to use half of their time limit."""
    long = queue.submit(gpus=8, time_limit_s=5 * HOUR, node_list=["h100-1"])
    short = queue.submit(gpus=8, time_limit_s=HOUR)
    assert queue.start() == [long, short]
    wants = queue.submit(gpus=8, time_limit_s=60, node_list=["h100-1"])
    shuns = queue.submit(gpus=1, time_limit_s=60, exclude_nodes=["h100-2"])
    anywhere = queue.submit(gpus=1, time_limit_s=60)
    gang = queue.submit(node_count=2, gpus_per_node=8, node_list=["h100-1", "h100-2"])
    away = queue.submit(gpus=1, node_list=["h100-2"], time_limit_s=60)
    queue.start()
    expected = waits(queue)
    assert near(expected[anywhere], HOUR / 2)
    assert near(expected[away], HOUR / 2)
    assert near(expected[wants], 2.5 * HOUR)
    assert near(expected[shuns], 2.5 * HOUR + 30)
    assert near(expected[gang], 2.5 * HOUR + 60)
    queue.sql.execute(
        "update odc.node_free as f set up = false from odc.node as n "
        "where n.id = f.node_id and n.name = 'h100-2'"
    )
    assert waits(queue)[away] is None


def test_a_protected_job_is_exact_and_never_beyond_its_planned_start(queue: Queue) -> None:
    queue.submit(node_count=2, gpus_per_node=8, time_limit_s=HOUR)
    queue.start()
    first = queue.submit(gpus_per_node=8, time_limit_s=HOUR)
    second = queue.submit(gpus_per_node=8, time_limit_s=HOUR)
    queue.start()
    predictions = forecast(queue)
    assert (predictions[first]["exact"], predictions[second]["exact"]) == (True, False)
    assert seconds(queue, predictions[first]["p90"]) == HOUR
    assert seconds(queue, predictions[second]["p90"]) > HOUR


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_forecasts_are_ordered_in_the_future_repeatable_and_change_nothing(
    queue: Queue, seed: int
) -> None:
    chance = random.Random(seed)
    sql = queue.sql
    a_cluster(sql, h100=4, l4=2, cpu_x86=2)
    for _ in range(25):
        for _ in range(chance.randint(0, 4)):
            gpus = chance.choice([0, 1, 2, 4, 8])
            queue.submit(
                who=chance.choice([ALICE, BOB]), gpus_per_node=gpus,
                node_count=chance.choice([1, 1, 2, 3]) if gpus in (0, 8) else 1,
                time_limit_s=chance.choice([600, HOUR, 5 * HOUR]),
            )  # fmt: skip
        queue.start()
        queue.move(chance.randint(1, 900))
        running = sql.values("select job_id from odc.running order by job_id")
        over = chance.sample(running, min(len(running), chance.randint(0, 2)))
        if over:
            queue.end(*over)
        if chance.random() < 0.5:
            refresh(queue)
        predictions = forecast(queue)
        ready = sql.values("select job_id from odc.pending where ready order by job_id")
        assert sorted(predictions) == ready
        for row in predictions.values():
            if row["p50"] is not None:
                assert queue.now <= row["p10"] <= row["p50"] <= row["p90"]
        assert forecast(queue) == predictions
        for job in predictions:
            alone = sql.row("select * from odc.forecast_job($1, $2)", job, queue.now)
            assert set(alone) == {"p10", "p50", "p90", "exact"}


@pytest.mark.parametrize("seed", range(4))
def test_a_forecast_never_allocates_more_than_exists(queue: Queue, seed: int) -> None:
    """There are no similar jobs, so each is expected to run for half of its limit."""
    chance = random.Random(seed)
    sql = queue.sql
    a_cluster(sql, h100=3)
    for _ in range(40):
        gpus = chance.choice([1, 2, 3, 4, 8, 8])
        queue.submit(
            gpus_per_node=gpus, node_count=chance.randint(1, 3) if gpus == 8 else 1,
            time_limit_s=chance.choice([600, HOUR, 5 * HOUR]), who=chance.choice([ALICE, BOB]),
        )  # fmt: skip
    running = queue.start()
    expected = waits(queue)
    assert len(expected) + len(running) == 40
    size = {
        row["id"]: (row["gpus"], row["time_limit_s"] / 2)
        for row in sql.rows(
            "select j.id, s.node_count * s.gpus_per_node as gpus, j.time_limit_s from odc.job as j "
            "join odc.shape as s on s.id = j.shape_id"
        )
    }
    spans = [(0.0, size[job][1], size[job][0]) for job in running]
    for job, wait in expected.items():
        assert wait is not None
        spans.append((wait, wait + size[job][1], size[job][0]))
    for start, _, _ in spans:
        # An end counts at the middle of its step.
        late = start * (1 + 1 / 64) + 2
        assert sum(gpus for at, end, gpus in spans if at <= start and end > late) <= 24
    # It keeps nothing free forever: all jobs end within the sum of their run times.
    assert max(end for _, end, _ in spans) <= sum(size[job][1] for job in size)


def test_the_prediction_at_submit_is_scored_at_the_start(queue: Queue) -> None:
    sql = queue.sql
    whole: dict[str, Any] = {"node_count": 2, "gpus_per_node": 8, "time_limit_s": HOUR}
    first = queue.submit(**whole)
    assert queue.start() == [first]
    second = queue.submit(**whole)
    queue.start()
    [prediction] = sql.rows("select * from odc.predict_jobs($1, $2)", [second], queue.now)
    assert seconds(queue, prediction["p10"]) < 1800
    queue.move(1500)
    queue.end(first)
    assert queue.start() == [second]
    assert refresh(queue) == {"foreseen": 0, "kept": 0, "scored": 1}
    kept = sql.row("select * from odc.prediction")
    assert (kept["cause"], kept["open"], kept["started_at"]) == ("submit", False, queue.now)
    day = sql.row("select * from odc.eta_day")
    assert (day["scored"], day["inside"]) == (1, 1)
    assert abs(day["error_s"] - seconds(queue, kept["p50"])) <= 1
    ratio = round((1500 + 300) * 1000 / (kept["plan_s"] + 300))
    classes = sql.rows("select class, ratios from odc.eta_class order by class")
    assert [row["ratios"] for row in classes] == [[ratio], [ratio]]
    assert classes[0]["class"] == 0
    # Only once.
    assert refresh(queue) == {"foreseen": 0, "kept": 0, "scored": 0}


def test_the_prediction_of_a_cancelled_job_is_closed_without_a_score(queue: Queue) -> None:
    first = queue.submit(node_count=2, gpus_per_node=8)
    assert queue.start() == [first]
    second = queue.submit(gpus_per_node=8)
    queue.start()
    assert refresh(queue) == {"foreseen": 1, "kept": 1, "scored": 0}
    queue.cancel(second)
    assert refresh(queue) == {"foreseen": 0, "kept": 0, "scored": 0}
    kept = queue.sql.row("select open, started_at from odc.prediction")
    assert kept == {"open": False, "started_at": None}


def test_the_first_task_that_starts_scores_an_array(queue: Queue) -> None:
    first = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=HOUR)
    assert queue.start() == [first]
    array = queue.submit(gpus_per_node=8, time_limit_s=HOUR, array="0-4")
    queue.start()
    assert refresh(queue)["kept"] == 1
    queue.move(100)
    assert refresh(queue)["scored"] == 0
    queue.move(100)
    queue.end(first)
    started_at = queue.now
    assert len(queue.start()) == 2
    queue.move(60)
    assert refresh(queue)["scored"] == 1
    kept = queue.sql.rows("select job_id, started_at from odc.prediction where not open")
    assert kept == [{"job_id": array, "started_at": started_at}]


def test_a_prediction_is_stored_again_when_it_moves_or_becomes_exact(queue: Queue) -> None:
    sql = queue.sql
    causes = "select cause from odc.prediction where job_id = $1 order by id"
    whole: dict[str, Any] = {"node_count": 2, "gpus_per_node": 8}
    first = queue.submit(**whole, time_limit_s=HOUR)
    assert queue.start() == [first]
    second, third = queue.submit(**whole, time_limit_s=HOUR), queue.submit(**whole)
    queue.start()
    assert refresh(queue)["kept"] == 2
    assert refresh(queue)["kept"] == 0
    queue.move(1700)
    queue.end(first)
    assert queue.start() == [second]
    assert refresh(queue)["kept"] == 1
    assert sql.values(causes, second) == ["submit"]
    assert sql.values(causes, third) == ["submit", "exact"]
    # The job it waits for never ends.
    queue.move(3400)
    assert refresh(queue)["kept"] == 1
    assert sql.values(causes, third) == ["submit", "exact", "moved"]


def test_old_predictions_are_deleted_and_their_sums_kept(queue: Queue) -> None:
    sql = queue.sql
    first = queue.submit(node_count=2, gpus_per_node=8)
    queue.start()
    second = queue.submit(gpus_per_node=8)
    queue.start()
    refresh(queue)
    queue.move(60)
    queue.end(first)
    assert queue.start() == [second]
    refresh(queue)
    queue.move(89 * 86400)
    assert sql.value("select odc.tidy_predictions(0, $1)", queue.now) == 0
    queue.move(2 * 86400)
    assert sql.value("select odc.tidy_predictions(0, $1)", queue.now) == 1
    assert sql.value("select sum(scored) from odc.eta_day") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("run_times", "off"),
    [((600, 1500, 2400, 3300, 4200, 5100, 6000), 0.05), ((60, 300, 20_000), 0.08)],
    ids=["even", "heavy-tailed"],
)
def test_the_interval_converges_to_four_hits_out_of_five(
    sql: Sql, run_times: tuple[int, ...], off: float
) -> None:
    """One node, jobs one after another, random run times."""
    a_cluster(sql, h100=1)
    queue = Queue(sql)
    chance = random.Random(11)
    predicted: dict[int, dict[str, Any]] = {}
    ends: dict[int, Any] = {}
    inside: list[bool] = []
    submit_at = NOW
    while len(inside) < 700:
        queue.now = min([submit_at, *ends.values()])
        over = [job for job, at in ends.items() if at <= queue.now]
        if over:
            queue.end(*over)
            for job in over:
                del ends[job]
        new: list[int] = []
        if submit_at <= queue.now:
            new = [queue.submit(gpus_per_node=8, time_limit_s=10 * HOUR)]
            backlog = sql.value("select count(*) from odc.pending")
            submit_at += timedelta(seconds=chance.randint(1, 3600) * (1 if backlog < 6 else 4))
        for job in queue.start():
            ends[job] = queue.now + timedelta(seconds=chance.choice(run_times))
            if job in predicted:
                row = predicted.pop(job)
                inside.append(row["p10"] <= queue.now <= row["p90"])
            elif job in new:
                new.remove(job)
        if new:
            for row in sql.rows("select * from odc.predict_jobs($1, $2)", new, queue.now):
                predicted[row["job_id"]] = row
    late = inside[200:]
    assert abs(sum(late) / len(late) - 0.8) <= off
