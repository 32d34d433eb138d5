"""Expected starts as users and operators see them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from tests.support.builders.jobs import Queue

HOUR = 3600


def shown(queue: Queue, job_id: int) -> dict[str, Any]:
    [job] = json.loads(
        queue.sql.value(
            "select odc.show_jobs(p_job_id => $1, p_tasks => null, p_now => $2)", job_id, queue.now
        )
    )
    return job


def refresh(queue: Queue) -> None:
    queue.sql.rows("select * from odc.refresh_eta(0, $1)", queue.now)


def iso(queue: Queue, seconds: float) -> str:
    return f"{queue.now + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def test_a_job_shows_its_expected_start(queue: Queue) -> None:
    runs = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=HOUR)
    queue.start()
    first = queue.submit(gpus_per_node=8, time_limit_s=HOUR)
    second = queue.submit(gpus_per_node=8, time_limit_s=HOUR)
    assert shown(queue, first)["eta"] is None
    queue.start()
    # Before any refresh, only the planned start is known.
    assert shown(queue, first)["eta"] == {
        "p10": None, "p50": iso(queue, HOUR), "p90": None, "exact": True,
    }  # fmt: skip
    refresh(queue)
    eta = shown(queue, first)["eta"]
    assert eta["exact"] is True
    assert iso(queue, 0) <= eta["p10"] < eta["p50"] < eta["p90"] == iso(queue, HOUR)
    other = shown(queue, second)["eta"]
    assert other["exact"] is False
    assert other["p90"] > iso(queue, HOUR)
    assert shown(queue, runs)["eta"] is None


def test_an_old_expectation_is_never_in_the_past_or_beyond_the_planned_start(queue: Queue) -> None:
    queue.submit(node_count=2, gpus_per_node=8, time_limit_s=HOUR)
    queue.start()
    job = queue.submit(gpus_per_node=8, time_limit_s=HOUR)
    queue.start()
    refresh(queue)
    queue.move(2000)
    eta = shown(queue, job)["eta"]
    assert eta["p10"] == eta["p50"] == iso(queue, 0)
    queue.sql.execute("update odc.planned set planned_start_at = $1", queue.now)
    assert shown(queue, job)["eta"]["p90"] == iso(queue, 0)


def test_coverage_and_error_are_published(queue: Queue) -> None:
    def diag() -> dict[str, Any]:
        return json.loads(queue.sql.value("select odc.diagnose($1)", queue.now))["eta"]

    nothing = diag()
    assert (nothing["scored"], nothing["coverage"], nothing["foreseen"]) == (0, None, 0)
    runs = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=HOUR)
    queue.start()
    queue.submit(gpus_per_node=8, time_limit_s=HOUR)
    queue.start()
    refresh(queue)
    assert diag()["foreseen"] == 1
    queue.move(1500)
    queue.end(runs)
    queue.start()
    refresh(queue)
    summary = diag()
    assert (summary["scored"], summary["coverage"], summary["foreseen"]) == (1, 1, 0)
    # Half of the limit of an hour, because there are no similar jobs.
    assert 290 <= summary["bias_s"] <= 310
    assert summary["mean_abs_error_s"] == summary["bias_s"]
    row = queue.sql.row("select * from odc.eta_score")
    assert (row["cause"], row["scored"], row["coverage"]) == ("submit", 1, 1)
    queue.move(8 * 86400)
    assert diag()["scored"] == 0
