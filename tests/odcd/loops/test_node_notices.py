"""Notices about nodes: what they say, and that each is delivered once."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import cast

import pytest

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.errors import RunnerDown
from odcd.executor.base import DevServers
from odcd.loops.node_notices import NodeNotices, file_name, left, notice_of
from odcd.records.dev_server import NodeNotice
from odcd.stores.dev_servers import DevServerStore
from tests.odcd.loops.test_expiry_notices import NoticeExecutor
from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import NOW, ROOT, Queue, a_cluster
from tests.support.harness.database import Sql


def due(text: str | None, until_s: float | None = None) -> NodeNotice:
    until_at = None if until_s is None else NOW + timedelta(seconds=until_s)
    return NodeNotice(
        job_id=7, attempt=1, name="box", text=text, until_at=until_at,
        expires_at=NOW + timedelta(hours=3),
    )  # fmt: skip


def test_a_notice_names_the_reason_and_the_time_left() -> None:
    drained = notice_of(due("n1 is drained: new kernel"), NOW)
    assert drained.name == "WARN_NODE.txt"
    assert "n1 is drained: new kernel" in drained.text
    assert "in 3 hours" in drained.text
    assert drained.wall == drained.text
    spot = notice_of(due("n1 is drained: spot", 100), NOW)
    assert "Time left until the node may be gone: 100 seconds" in spot.text
    assert "odcctl cancel 7" in spot.text


def test_a_node_that_is_available_again_takes_its_file_away() -> None:
    notice = notice_of(due(None), NOW)
    assert (notice.name, list(notice.remove)) == (None, [file_name()])
    assert notice.wall is not None


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-5, "0 seconds"), (1, "1 second"), (119, "119 seconds"), (150, "2 minutes"),
     (7_300, "2 hours"), (200_000, "2 days")],
)  # fmt: skip
def test_time_left_in_words(seconds: int, expected: str) -> None:
    assert left(timedelta(seconds=seconds)) == expected


def test_a_notice_is_delivered_once_and_retried_when_it_is_not(database_url: str) -> None:
    now = SystemClock().now()
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1, now=now)
        queue = Queue(sql)
        queue.now = now
        dev_server = Reservations(queue).active(hours=1)
        actor = json.dumps({"user": ROOT.user, "uid": ROOT.uid, "operator": True})
        sql.value(
            "select odc.set_node_state($1::jsonb, '{h100-1}', 'DRAIN', 'fan', $2)", actor, now
        )
    executor = NoticeExecutor(RunnerDown("away"))

    async def work() -> list[float | None]:
        async with Database(database_url, size=1) as database:
            loop = NodeNotices(
                0, DevServerStore(database), cast(DevServers, executor), SystemClock(),
                timedelta(seconds=30),
            )  # fmt: skip
            return [await loop.run_once() for _ in range(3)]

    assert asyncio.run(work()) == [5.0, None, None]
    [(job_id, attempt, notice)] = executor.notices
    assert (job_id, attempt) == (dev_server, 1)
    assert "h100-1 is drained: fan" in notice.text
    assert notice.name == file_name(dev_server), "its home is shared with the user's other ones"
