"""Idle reservations: an executor's observations are stored and users are notified; a failed
observation counts as no use."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.errors import RunnerDown, WrongState
from odcd.executor.base import DevServers
from odcd.executor.kubernetes.looks import read_look
from odcd.loops.idle_monitor import IdleMonitor, notice_of
from odcd.records.dev_server import Activity, DueCheck, IdleNotice
from odcd.records.dispatch import Notice
from odcd.stores.dev_servers import DevServerStore
from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import Queue, a_cluster
from tests.support.harness.database import Sql


class Seen:
    """An executor whose dev servers are unused, or that cannot observe them."""

    def __init__(self, *, undelivered: bool = False, blind: tuple[int, ...] = ()) -> None:
        self.undelivered = undelivered
        self.blind = blind
        self.notices: list[Notice] = []

    async def look(self, job_id: int, attempt: int) -> Activity:
        if job_id in self.blind:
            raise RunnerDown("away")
        return Activity(sessions=0, gpu_percent=0, cpu_s=1.0)

    async def notify(self, job_id: int, attempt: int, notice: Notice) -> None:
        if self.undelivered:
            raise WrongState("nothing listens")
        self.notices.append(notice)


@pytest.fixture
def job_ids(database_url: str) -> tuple[int, int]:
    """Two dev servers that have been idle for long, observed a minute ago."""
    now = SystemClock().now()
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1, now=now)
        queue = Queue(sql)
        queue.now = now - timedelta(hours=3)
        made = Reservations(queue)
        both = made.active(), made.active()
        sql.rows("update odc.qos set idle_warn_s = 3600, idle_release_s = 7200")
        for job_id in both:
            sql.rows(
                "insert into odc.box_look values ($1, 1, $2, $3, 1, $4)",
                job_id, now - timedelta(minutes=1), now + timedelta(minutes=9),
                now - timedelta(hours=2),
            )  # fmt: skip
        return both


def look(url: str, executor: Seen) -> list[tuple[int, bool]]:
    """One round; returns the jobs whose users were notified."""

    async def work() -> list[tuple[int, bool]]:
        async with Database(url, size=2) as database:
            idles = IdleMonitor(
                0,
                DevServerStore(database),
                cast(DevServers, executor),
                SystemClock(),
                timedelta(minutes=5),
            )
            await idles.run_once()
            rows = await database.fetch("select * from odc.box_look order by job_id")
            return [(row["job_id"], row["told_at"] is not None) for row in rows]

    return asyncio.run(work())


def test_the_user_of_an_idle_dev_server_gets_a_notice(
    database_url: str, job_ids: tuple[int, int]
) -> None:
    executor = Seen(blind=(job_ids[1],))
    assert look(database_url, executor) == [(job_ids[0], True), (job_ids[1], False)]
    [notice] = executor.notices
    assert notice.name == f"IDLE_{job_ids[0]}.txt"
    assert re.search(r"has been idle for 2:0\d:\d\d", notice.text)
    assert "it ends at" in notice.text


def test_an_undelivered_notice_is_not_recorded(database_url: str, job_ids: tuple[int, int]) -> None:
    assert look(database_url, Seen(undelivered=True)) == [(job_ids[0], False), (job_ids[1], False)]


def test_an_outdated_notice_is_removed() -> None:
    wish = DueCheck(job_id=7, attempt=1)
    assert notice_of(wish, IdleNotice(idle_s=None, release_at=None)) == Notice(
        remove=["IDLE_7.txt"]
    )
    stays = notice_of(wish, IdleNotice(idle_s=3600, release_at=None))
    assert "ended" not in stays.text
    ends = notice_of(wish, IdleNotice(idle_s=3600, release_at=datetime(2026, 1, 1, tzinfo=UTC)))
    assert "at 2026-01-01 00:00 UTC" in ends.text


@pytest.mark.parametrize(
    ("output", "seen"),
    [
        (b"connections=2 gpu=97 cpu_us=1500000\n", Activity(sessions=2, gpu_percent=97, cpu_s=1.5)),
        # It has none, or cannot report it: the database knows which, and uses other sources.
        (b"connections=0 gpu=none cpu_us=0\n", Activity(sessions=0, gpu_percent=None, cpu_s=0)),
        (b"connections=0 gpu=unknown cpu_us=0\n", Activity(sessions=0, gpu_percent=None, cpu_s=0)),
        (b"connections=0 gpu=0 cpu_us=unknown\n", None),
        (b"", None),
        (b"connections=0 gpu=0 cpu_us=1\nmore\n", None),
    ],
)
def test_unknown_usage_is_not_guessed(output: bytes, seen: Activity | None) -> None:
    if seen is not None:
        assert read_look(output) == seen
        return
    with pytest.raises(WrongState, match="usage is unknown"):
        read_look(output)
