"""The planned starts now and then, and the event that moved each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from odcd.errors import BadRequest, UnknownPass
from tests.support.builders.jobs import ROOT, Queue, a_cluster
from tests.support.harness.database import Sql


@pytest.fixture
def lived(database_url: str) -> Iterator[Queue]:
    """Two 8-GPU nodes, first come, first served; every change is committed."""
    with Sql(database_url) as sql:
        a_cluster(sql, h100=2)
        sql.execute("update odc.partition set policy = 'fifo'")
        yield Queue(sql)


def plan(queue: Queue, as_of: datetime | None = None) -> list[tuple[int, str | None, list[str]]]:
    jobs = json.loads(
        queue.sql.value("select odc.list_plan($1)", queue.now)
        if as_of is None
        else queue.sql.value("select odc.past_plan($1, $2)", as_of, queue.now)
    )
    return [(job["id"], job["planned_start_at"], job["node_names"]) for job in jobs["jobs"]]


def diff(
    queue: Queue, first: int | datetime, last: int | datetime | None = None
) -> list[dict[str, Any]]:
    ends: list[object] = []
    for end in (first, last or queue.now):
        ends += [None, end] if isinstance(end, datetime) else [end, None]
    moves = json.loads(queue.sql.value("select odc.diff_plans($1, $2, $3, $4)", *ends))
    return moves["jobs"]


def last_pass(queue: Queue) -> int:
    return queue.sql.value("select max(id) from odc.pass")


def busy(queue: Queue) -> tuple[list[int], int]:
    """Two nodes in use for 10 and 20 minutes, and a gang that waits for both until 00:20."""
    running = [queue.submit(gpus=8, time_limit_s=limit_s) for limit_s in (600, 1200)]
    queue.start()
    gang = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=3600)
    queue.start()
    return running, gang


def test_the_plan_lists_planned_jobs_with_times_and_nodes(lived: Queue) -> None:
    _, gang = busy(lived)
    before = [(gang, "2026-01-01T00:20:00Z", ["h100-1", "h100-2"])]
    assert plan(lived) == before
    then = lived.now
    lived.move(60)
    lived.hold(gang)
    lived.start()
    assert plan(lived) == []
    assert plan(lived, then) == before


def test_a_job_with_no_end_in_sight_has_no_planned_start(lived: Queue) -> None:
    waiting = lived.submit(gpus=8, node_list=["h100-1"])
    lived.sql.execute(
        "select odc.set_node_state($1::jsonb, '{h100-1}', 'DRAIN', 'new driver', $2)",
        json.dumps({"user": "root", "uid": 0, "operator": True}), lived.now,
    )  # fmt: skip
    lived.start()
    assert plan(lived) == [(waiting, None, [])]


def test_a_move_to_earlier_names_the_job_that_ended(lived: Queue) -> None:
    (_, long), gang = busy(lived)
    then = lived.now
    lived.move(60)
    lived.end(long)
    lived.start()
    [moved] = diff(lived, then)
    assert (moved["id"], moved["change"]) == (gang, "earlier")
    assert (moved["from"], moved["to"]) == ("2026-01-01T00:20:00Z", "2026-01-01T00:10:00Z")
    [move] = moved["moves"]
    assert (move["cause"], move["job_id"]) == ("ended", long)
    assert move["text"] == f"job {long} ended (COMPLETED)"
    kind = lived.sql.value("select kind from odc.event where id = $1", move["event_id"])
    assert kind == "ended"


def test_a_move_to_later_names_what_moved_it(lived: Queue) -> None:
    (short, _), gang = busy(lived)
    first = last_pass(lived)
    lived.move(60)
    lived.update(short, changes={"time_limit_s": 7200}, who=ROOT)
    lived.start()
    [moved] = diff(lived, first, last_pass(lived))
    assert (moved["id"], moved["change"]) == (gang, "later")
    assert moved["to"] == "2026-01-01T02:00:00Z"
    [move] = moved["moves"]
    assert (move["cause"], move["text"]) == ("updated", f"job {short} was updated by root")


def test_starts_and_new_planned_starts_are_listed(lived: Queue) -> None:
    running, gang = busy(lived)
    first = last_pass(lived)
    lived.move(60)
    late = lived.submit(node_count=2, gpus_per_node=8, time_limit_s=60)
    for job in running:
        lived.end(job)
    lived.start()
    moves = {moved["id"]: moved for moved in diff(lived, first)}
    assert (moves[gang]["change"], moves[gang]["to"]) == ("started", None)
    assert moves[gang]["moves"][-1]["text"] == "it started"
    assert (moves[late]["change"], moves[late]["from"]) == ("new", None)
    assert moves[late]["moves"][-1]["text"] == "it was submitted by alice"


def test_a_cancelled_job_is_gone(lived: Queue) -> None:
    _, gang = busy(lived)
    first = last_pass(lived)
    lived.move(60)
    lived.submit(gpus=8, time_limit_s=60)
    lived.cancel(gang)
    lived.start()
    moved = next(m for m in diff(lived, first) if m["id"] == gang)
    assert (moved["change"], moved["to"]) == ("gone", None)
    assert moved["moves"][-1]["text"] == "it ended (CANCELLED) by alice"


def test_an_unchanged_plan_has_no_moves_and_bad_spans_are_refused(lived: Queue) -> None:
    busy(lived)
    last = last_pass(lived)
    assert diff(lived, last, last) == []
    with pytest.raises(BadRequest, match="is newer than pass"):
        diff(lived, last, last - 1)
    with pytest.raises(UnknownPass, match="does not exist"):
        diff(lived, last + 1)
    with pytest.raises(UnknownPass, match="no pass from before"):
        diff(lived, datetime.fromisoformat("2020-01-01T00:00:00Z"))
