"""The queue page by page, in the order of starts, under any policy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders.jobs import BOB, Queue

POLICIES = ["fifo", "sjf", "multifactor"]
WAITS = ((9, 1), (2, 5), (7, 0), (1, 3), (5, 0), (3, 0), (8, 0))
"""Hours and nice values of the pending jobs, in the order of submission."""


def page(queue: Queue, limit: int, **arguments: Any) -> dict[str, Any]:
    row = queue.sql.row(
        "select * from odc.list_queue($1::jsonb, $2, $3, $4, $5, $6)",
        json.dumps(arguments.get("filters", {})), arguments.get("place"), arguments.get("after"),
        limit, ["id", "state"], queue.now,
    )  # fmt: skip
    row["ids"] = [job["id"] for job in json.loads(row["jobs"])]
    return row


def pages(queue: Queue, limit: int, **filters: Any) -> tuple[list[int], list[int | None]]:
    """The jobs of all pages, and their positions."""
    ids: list[int] = []
    places: list[int | None] = []
    place = after = None
    while True:
        answer = page(queue, limit, place=place, after=after, filters=filters)
        ids += answer["ids"]
        places += answer["places"] or []
        place, after = answer["next_place"], answer["next"]
        assert None in (place, after)
        if place is None and after is None:
            return ids, places
        assert len(answer["ids"]) == limit


def a_queue(queue: Queue, policy: str) -> tuple[list[int], list[int]]:
    """Running and pending jobs."""
    queue.sql.execute("update odc.partition set policy = $1", policy)
    runs = [queue.submit(gpus_per_node=8, time_limit_s=3600) for _ in range(2)]
    assert queue.start() == runs
    waits: list[int] = []
    for hours, nice in WAITS:
        waits.append(queue.submit(gpus_per_node=8, time_limit_s=hours * 3600, nice=nice))
        queue.move(60)
    assert queue.start() == []
    queue.sql.rows("select * from odc.refresh_eta(0, $1)", queue.now)
    return runs, waits


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_jobs_are_ordered_by_position_over_all_pages(queue: Queue, policy: str, limit: int) -> None:
    runs, waits = a_queue(queue, policy)
    held = [queue.submit(gpus_per_node=8, hold=True, nice=nice) for nice in (5, 0, 5)]
    late = queue.submit(gpus_per_node=8, nice=9)
    ids, places = pages(queue, limit)
    assert ids[:2] == runs
    assert sorted(ids[2:9]) == waits
    assert places[:9] == [None, None, 1, 2, 3, 4, 5, 6, 7]
    assert ids[9:] == [held[1], held[0], held[2], late]
    assert places[9:] == [None] * 4
    if policy == "sjf":
        hours = dict(zip(waits, (h for h, _ in WAITS), strict=True))
        assert [hours[job] for job in ids[2:9]] == [3, 5, 7, 8, 9, 1, 2]


def test_filters_narrow_every_part(queue: Queue) -> None:
    _, waits = a_queue(queue, "sjf")
    other = queue.submit(BOB, gpus_per_node=8, time_limit_s=60)
    queue.sql.rows("select * from odc.refresh_eta(0, $1)", queue.now)
    held = queue.submit(BOB, gpus_per_node=8, hold=True)
    assert pages(queue, 1, user=[BOB.user]) == ([other, held], [1, None])
    assert len(pages(queue, 2, state=["PENDING"])[0]) == len(waits) + 2
    assert pages(queue, 2, state=["RUNNING", "CONFIGURING"])[1] == [None, None]
    assert pages(queue, 2, text="nothing of that name") == ([], [])


def test_jobs_that_lack_something_have_no_position(queue: Queue) -> None:
    _, waits = a_queue(queue, "fifo")
    queue.sql.execute("update odc.eta set place = 1000001 where job_id = $1", waits[0])
    ids, places = pages(queue, 4)
    assert (ids[-1], places[-1]) == (waits[0], None)
    assert queue.sql.rows("select * from odc.list_places($1)", waits[:1]) == []


def test_a_job_that_starts_between_two_pages_loses_no_other(queue: Queue) -> None:
    runs, waits = a_queue(queue, "fifo")
    first = page(queue, 4)
    queue.end(runs[0])
    [started] = queue.start()
    assert started in first["ids"]
    rest = page(queue, 100, place=first["next_place"])
    assert sorted([*first["ids"], *rest["ids"]]) == sorted([*runs, *waits])
