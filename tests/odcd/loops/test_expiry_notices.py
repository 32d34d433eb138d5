"""Expiry notices: each is delivered, whichever component was unavailable; an undeliverable one is
recorded."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.errors import RunnerDown, WrongState
from odcd.executor.base import DevServers
from odcd.loops.expiry_notices import ExpiryNotices, file_name, notice_of
from odcd.records.dev_server import ExpiryNotice
from odcd.records.dispatch import Notice
from odcd.stores.dev_servers import DevServerStore
from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import NOW, Queue, a_cluster
from tests.support.harness.database import Sql


class NoticeExecutor:
    """An executor that records its notices, or fails."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.notices: list[tuple[int, int, Notice]] = []

    async def notify(self, job_id: int, attempt: int, notice: Notice) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.notices.append((job_id, attempt, notice))


@pytest.fixture
def dev_server(database_url: str) -> int:
    """A reservation that became active half an hour ago and ends in a little less than 30
    minutes."""
    now = SystemClock().now()
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1, now=now)
        queue = Queue(sql)
        queue.now = now - timedelta(minutes=31)
        return Reservations(queue).active(hours=1)


def deliver(url: str, executor: NoticeExecutor, times: int = 1) -> list[float]:
    async def work() -> list[float]:
        async with Database(url, size=1) as database:
            warner = ExpiryNotices(
                0,
                DevServerStore(database),
                cast(DevServers, executor),
                SystemClock(),
                timedelta(seconds=30),
            )
            return [await warner.run_once() for _ in range(times)]

    return asyncio.run(work())


def history(url: str, job_id: int) -> list[dict[str, Any]]:
    with Sql(url) as sql:
        return sql.rows(
            "select detail from odc.event where job_id = $1 and kind = 'warned'", job_id
        )


def test_a_warning_is_delivered_once(database_url: str, dev_server: int) -> None:
    executor = NoticeExecutor()
    deliver(database_url, executor, times=3)
    [(job_id, attempt, notice)] = executor.notices
    assert (job_id, attempt, notice.name) == (
        dev_server,
        1,
        f"WARN_EXPIRES_IN_30MIN_{dev_server}.txt",
    )
    assert len(history(database_url, dev_server)) == 1


def test_an_undelivered_notice_is_retried_soon(database_url: str, dev_server: int) -> None:
    executor = NoticeExecutor(RunnerDown("away"))
    waits = deliver(database_url, executor, times=2)
    assert waits[0] <= 5
    assert len(executor.notices) == 1


def test_a_permanently_undeliverable_notice_is_recorded(database_url: str, dev_server: int) -> None:
    executor = NoticeExecutor(WrongState("it has no home"))
    deliver(database_url, executor, times=2)
    assert executor.notices == []
    [row] = history(database_url, dev_server)
    assert "it has no home" in str(row["detail"])


def a_warning(minutes: int | None, *, extensible: bool = True) -> ExpiryNotice:
    return ExpiryNotice(
        job_id=7, attempt=1, name="$(rm -rf /)", minutes=minutes,
        expires_at=NOW, extensible=extensible,
    )  # fmt: skip


def test_notices_have_fixed_file_names_and_the_last_two_are_shown_on_terminals() -> None:
    """EXP-02, EXP-03: 15 and 5 are shown on the terminals, 30 is a file only."""
    notices = {minutes: notice_of(a_warning(minutes)) for minutes in (30, 15, 5)}
    assert {n.name for n in notices.values()} == {file_name(m) for m in (30, 15, 5)}
    assert [minutes for minutes, notice in notices.items() if notice.wall] == [15, 5]
    assert "odcctl extend 7" in notices[5].text
    assert "odcctl extend" not in notice_of(a_warning(5, extensible=False)).text


def test_an_extension_removes_the_notice_files() -> None:
    notice = notice_of(a_warning(None))
    assert (notice.name, sorted(notice.remove)) == (None, sorted(map(file_name, (30, 15, 5))))
    assert notice.wall is not None


def test_the_last_notice_tells_connected_users_about_the_grace_period() -> None:
    """EXP-10, EXP-17."""
    notice = notice_of(a_warning(0))
    assert notice.name is None
    assert "are stopped at 00:02:00 UTC" in (notice.wall or "")
    assert "odcctl extend 7" in (notice.wall or "")


def test_reservations_that_share_a_home_have_files_of_their_own() -> None:
    """Before: of two that ended together, one's file replaced the other's, and its extension
    removed it."""
    shared = [
        notice_of(replace(a_warning(5), job_id=job_id, shared_home=True)) for job_id in (7, 8)
    ]
    assert {notice.name for notice in shared} == {
        "WARN_EXPIRES_IN_5MIN_7.txt", "WARN_EXPIRES_IN_5MIN_8.txt",
    }  # fmt: skip
    put_off = notice_of(replace(a_warning(None), shared_home=True))
    assert set(put_off.remove) == {f"WARN_EXPIRES_IN_{level}MIN_7.txt" for level in (30, 15, 5)}
