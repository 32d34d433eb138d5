"""odcd purge deletes the history of an age once, and keeps what live jobs and fair share need."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from odcd.__main__ import DONE, USAGE, main
from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.history.purge import count, purge
from odcd.history.settings import HistorySettings
from tests.odcd.history.past import Site
from tests.support.builders.jobs import NOW
from tests.support.fakes.clock import VirtualClock
from tests.support.harness.database import Sql

AGE = timedelta(days=30)


@pytest.fixture
def site(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("ODC_CONFIG", "none")
    with Sql(database_url) as sql:
        yield Site(sql)


def test_a_purge_deletes_what_the_dry_run_counts_and_keeps_usage_and_live_jobs(site: Site) -> None:
    site.queue.now = NOW - timedelta(days=90)
    target = site.ran(1)[0]
    held = site.queue.submit(gpus=1)
    site.queue.hold(held)
    site.queue.now = NOW
    site.queue.hold(site.queue.submit(gpus=1, dependency=f"afterok:{target}"))
    live = {held, target}
    usage = "select to_jsonb(u) from odc.usage as u order by 1"
    used = site.sql.values(usage)
    assert used
    jobs = site.jobs()

    expected = asyncio.run(count(site.sql.dsn, NOW - AGE, NOW))
    assert (expected.jobs, expected.kept) == (len(site.old), 1)
    assert site.jobs() == jobs, "a dry run deletes nothing"

    done = asyncio.run(purge(site.sql.dsn, AGE, HistorySettings(), VirtualClock(NOW)))
    assert (done.jobs, done.events) == (expected.jobs, expected.events)
    assert live <= set(site.jobs())
    assert not set(site.old) & set(site.jobs())
    assert site.sql.values(usage) == used
    again = asyncio.run(count(site.sql.dsn, NOW - AGE, NOW))
    assert (again.jobs, again.kept) == (0, 1)
    assert site.queue.contradictions() == []


def test_a_purge_continues_under_the_next_term(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = Database.fetchval, list[str]()

    async def fetchval(self: Database, query: str, *args: object) -> object:
        value = await real(self, query, *args)
        if query == "select term from odc.term" and not calls:
            calls.append(query)
            await real(self, "update odc.term set term = term + 1 returning term")
        return value

    monkeypatch.setattr(Database, "fetchval", fetchval)
    done = asyncio.run(purge(site.sql.dsn, AGE, HistorySettings(), VirtualClock(NOW)))
    assert calls
    assert done.jobs == len(site.old)
    assert site.jobs() == site.recent


def test_the_command_counts_exports_and_deletes(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    days = (SystemClock().now() - NOW).days + 50
    argv = ["purge", "--older-than", f"{days}d", "--dsn", site.sql.dsn]
    assert main([*argv, "--dry-run"]) == DONE
    assert "would delete 5 jobs with their rows" in capsys.readouterr().out
    assert site.jobs() == site.old + site.recent
    assert main([*argv, "--export", str(tmp_path)]) == DONE
    printed = capsys.readouterr().out
    assert "deleted 5 jobs with their rows" in printed
    assert "exports were written" in printed
    assert site.jobs() == site.recent
    assert main(["history", "list", str(tmp_path)]) == DONE
    assert "5 jobs" in capsys.readouterr().out


@pytest.mark.parametrize("age", ["180", "soon", "0d", "1h", "40000d"])
def test_an_invalid_age_is_refused(capsys: pytest.CaptureFixture[str], age: str) -> None:
    assert main(["purge", "--older-than", age]) == USAGE
    assert "takes an age from 1d to 36500d" in capsys.readouterr().err


def test_an_invalid_target_deletes_nothing(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["purge", "--older-than", "1d", "--dsn", site.sql.dsn, "--export", "here"]
    assert main(argv) == USAGE
    assert "neither an absolute folder nor a bucket" in capsys.readouterr().err
    assert site.jobs() == site.old + site.recent


@pytest.mark.parametrize("target", ["/nowhere/history", "/proc"])
def test_a_dry_run_refuses_a_folder_that_an_export_could_not_use(
    site: Site, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    """Before: it passed, and the purge failed."""
    argv = ["purge", "--older-than", "1d", "--dsn", site.sql.dsn, "--dry-run", "--export", target]
    assert main(argv) != DONE
    assert target in capsys.readouterr().err
