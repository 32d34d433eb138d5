"""Retention deletes old and complete jobs, and nothing that a live job needs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from odcd.database.pool import Database
from odcd.errors import BadRequest, LeadershipLost, OdcError, Unavailable
from odcd.history import retention
from odcd.history.retention import Deleted, Retention
from odcd.history.settings import HistorySettings, read_history
from tests.odcd.history.past import Site
from tests.support.builders.jobs import BOB, NOW
from tests.support.fakes.clock import VirtualClock
from tests.support.harness.database import Sql

DAYS_30 = timedelta(days=30)


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    with Sql(database_url) as sql:
        yield Site(sql)


def delete(site: Site, *, term: int = 0, **settings: object) -> Deleted:
    async def scenario() -> Deleted:
        own = HistorySettings(**{"keep_jobs": DAYS_30, **settings})  # pyright: ignore[reportArgumentType]
        async with Database(site.sql.dsn) as database:
            return await Retention(term, database, VirtualClock(NOW), own).delete_once()

    return asyncio.run(scenario())


def test_old_jobs_are_deleted_with_all_their_rows_and_recent_ones_stay(site: Site) -> None:
    assert {"job", "attempt", "event", "running_past", "pending_past"} <= set(site.rows(site.old))
    recent = site.rows(site.recent)
    texts = site.sql.value("select count(*) from odc.job_text")
    done = delete(site)
    assert site.rows(site.old) == {}
    assert site.rows(site.recent) == recent
    assert site.jobs() == site.recent
    assert (done.jobs, done.exports) == (5, 0)
    assert done.texts == texts - 4, "scripts of the three recent jobs and their environment stay"
    assert delete(site).jobs == 0
    assert site.queue.contradictions() == []


def test_a_live_job_and_what_it_depends_on_are_kept(site: Site) -> None:
    site.queue.now = NOW - timedelta(days=90)
    target, held = site.ran(1)[0], site.queue.submit(gpus=1)
    site.queue.hold(held)
    site.queue.now = NOW
    waiting = site.queue.submit(gpus=1, dependency=f"afterok:{target}")
    site.queue.hold(waiting)
    other = site.queue.submit(BOB, gpus=1, dependency=f"afternotok:{target}")
    delete(site)
    assert {target, held, waiting, other} <= set(site.jobs())
    assert not set(site.old) & set(site.jobs())
    # When nothing needs it any longer, it is deleted.
    site.queue.cancel(waiting)
    site.queue.cancel(other, who=BOB)
    delete(site)
    assert target not in site.jobs()
    assert held in site.jobs()


def test_an_array_is_kept_until_its_last_task_is_old(site: Site) -> None:
    site.queue.now = NOW - timedelta(days=90)
    array = site.queue.submit(gpus=8, array="0-5")
    started = site.queue.start()
    site.queue.end(*started[:2])
    delete(site)
    first = set(site.jobs())
    assert set(started) <= first
    assert site.rows([array])["array_job"] == 1
    site.queue.end(*started[2:])
    site.finish()
    site.queue.now = NOW
    delete(site)
    assert site.jobs() == site.recent
    assert site.rows([array]) == {}


def test_events_without_a_job_are_deleted_by_age(site: Site) -> None:
    old = "select count(*) from odc.event where at < $1"
    before = NOW - DAYS_30
    site.sql.execute(
        "insert into odc.event (at, kind, actor, xid) values ($1, 'node_down', 'odcd', '5'), "
        "($2, 'node_down', 'odcd', '5')",
        before - timedelta(days=1), before + timedelta(days=1),
    )  # fmt: skip
    delete(site)
    assert site.sql.value(old, before) == 0
    assert site.sql.value("select count(*) from odc.event where kind = 'node_down'") == 1


def test_the_past_is_deleted_and_its_new_start_is_recorded(site: Site) -> None:
    before = NOW - timedelta(days=10)
    delete(site, keep_jobs=None, keep_past=timedelta(days=10))
    assert site.jobs() == site.old + site.recent
    assert site.sql.value("select at from odc.past_since") == before
    assert "running_past" not in site.rows(site.old)
    assert "running_past" in site.rows(site.recent)


def test_only_the_leader_deletes(site: Site) -> None:
    with pytest.raises(LeadershipLost):
        delete(site, term=7)
    assert site.jobs() == site.old + site.recent


def test_nothing_is_deleted_when_the_export_cannot_be_written(site: Site, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(OdcError, match="does not exist"):
        delete(site, export_target=str(gone))
    (tmp_path / "file").write_text("")
    assert site.jobs() == site.old + site.recent


def test_a_run_that_is_cut_short_leaves_whole_jobs_and_the_next_one_goes_on(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    one = site.rows([site.old[-1]])

    class Cut(VirtualClock):
        async def sleep(self, seconds: float) -> None:
            raise Unavailable("cut short")

    async def scenario() -> None:
        settings = HistorySettings(keep_jobs=DAYS_30)
        async with Database(site.sql.dsn) as database:
            await Retention(0, database, Cut(NOW), settings).delete_once()

    with pytest.raises(Unavailable, match="cut short"):
        asyncio.run(scenario())
    assert site.jobs() == site.old[2:] + site.recent
    assert site.rows([site.old[-1]]) == one
    assert site.rows(site.old[:2]) == {}
    delete(site)
    assert site.jobs() == site.recent


def test_a_partition_of_old_jobs_alone_is_dropped_whole(site: Site) -> None:
    bound = max(site.old) + 1
    for parent in ("job", "attempt", "prediction"):
        split(site.sql, parent, bound)
    with Sql(site.sql.dsn) as reader:
        reader.begin()
        reader.value("select count(*) from odc.node")
        done = delete(site)
        reader.rollback()
    assert (done.partitions, done.jobs) == (1, 0)
    assert site.sql.value("select to_regclass('odc.job_0')") is None
    assert site.sql.value("select to_regclass('odc.attempt_0')") is None
    assert site.rows(site.old) == {}
    assert site.jobs() == site.recent
    assert site.queue.submit(gpus=1)
    assert site.queue.contradictions() == []


def test_a_partition_whose_jobs_are_restored_during_its_export_stays(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = max(site.old) + 1
    for parent in ("job", "attempt", "prediction"):
        split(site.sql, parent, bound)
    export = retention.export

    def restore() -> None:
        with Sql(site.sql.dsn) as other:
            other.execute("update odc.history_export set restored_until = $1", NOW + DAYS_30)

    async def export_slowly(*args: Any) -> bool:
        done = await export(*args)
        await asyncio.to_thread(restore)
        return done

    monkeypatch.setattr(retention, "export", export_slowly)
    done = delete(site, export_target=str(tmp_path))
    assert (done.exports, done.partitions, done.jobs) == (1, 0, 0)
    assert site.jobs() == site.old + site.recent


def test_a_partition_whose_drop_was_interrupted_is_finished(site: Site) -> None:
    bound = max(site.old) + 1
    for parent in ("job", "attempt", "prediction"):
        split(site.sql, parent, bound)
    site.sql.execute(
        "comment on table odc.attempt_0 is 'odc: exported where that is wanted, and to be dropped'"
    )
    site.sql.execute("alter table odc.attempt detach partition odc.attempt_0 concurrently")
    delete(site)
    assert site.sql.value("select to_regclass('odc.attempt_0')") is None
    assert site.sql.value("select to_regclass('odc.job_0')") is None
    assert site.jobs() == site.recent


def split(sql: Sql, parent: str, bound: int) -> None:
    """Two partitions in place of the first one."""
    name = f"odc.{parent}_0"
    key = "id" if parent == "job" else "job_id"
    sql.execute(f"alter table odc.{parent} detach partition {name}")
    sql.execute(f"create table odc.{parent}_9 (like odc.{parent} including all excluding identity)")
    sql.execute(f"insert into odc.{parent}_9 select * from {name} where {key} >= {bound}")
    sql.execute(f"delete from {name} where {key} >= {bound}")
    sql.execute(
        f"alter table odc.{parent} attach partition {name} for values from (0) to ({bound})"
    )
    sql.execute(
        f"alter table odc.{parent} attach partition odc.{parent}_9 "
        f"for values from ({bound}) to (50000000)"
    )


def test_settings_are_days_and_a_target_needs_them(tmp_path: Path) -> None:
    assert read_history({}) == HistorySettings()
    read = read_history({"ODC_KEEP_JOBS_DAYS": "90", "ODC_HISTORY_TARGET": str(tmp_path)})
    assert (read.keep_jobs, read.export_target) == (timedelta(days=90), str(tmp_path))
    for wrong in (
        {"ODC_KEEP_JOBS_DAYS": "0"},
        {"ODC_KEEP_JOBS_DAYS": "1.5"},
        {"ODC_KEEP_PAST_DAYS": "forever"},
        {"ODC_HISTORY_TARGET": str(tmp_path)},
        {"ODC_KEEP_JOBS_DAYS": "9", "ODC_HISTORY_TARGET": "backups"},
        {"ODC_KEEP_JOBS_DAYS": "9", "ODC_HISTORY_TARGET": "s3://"},
    ):
        with pytest.raises(BadRequest):
            read_history(wrong)
