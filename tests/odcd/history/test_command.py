"""odcd history, as an operator types it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odcd.__main__ import DONE, REFUSED, USAGE, main
from tests.odcd.history.past import Site
from tests.odcd.history.test_export import contents
from tests.odcd.history.test_retention import delete
from tests.support.harness.database import Sql


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    with Sql(database_url) as sql:
        yield Site(sql)


def test_jobs_are_exported_listed_and_restored(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, dsn = str(tmp_path), site.sql.dsn
    before = contents(site)
    assert main(["history", "export", folder, "--before", "2025-12-31", "--dsn", dsn]) == DONE
    name, _, summary = capsys.readouterr().out.strip().partition(": ")
    assert summary.startswith(f"5 jobs, ids {site.old[0]}-{site.old[-1]}, ")
    (tmp_path / "jobs-8-9-20260101T000000000000Z").mkdir()
    assert main(["history", "list", folder]) == DONE
    listed = capsys.readouterr().out.splitlines()
    assert listed == [
        f"{name}: {summary}",
        "jobs-8-9-20260101T000000000000Z: incomplete, not usable",
    ]
    delete(site)
    assert main(["history", "restore", folder, name, "--dsn", dsn]) == DONE
    assert "missing rows were restored" in capsys.readouterr().out
    assert contents(site) == before


def test_an_export_without_matching_jobs_writes_nothing(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["history", "export", str(tmp_path), "--ids", "900-999", "--dsn", site.sql.dsn]
    assert main(argv) == DONE
    assert "nothing was written" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["export", "/no/such/folder"], USAGE, "does not exist"),
        (["export", "{folder}", "--ids", "9-1"], USAGE, "is not a range"),
        (["export", "{folder}", "--before", "soon"], USAGE, "is not a date"),
        (["export", "s3://X"], USAGE, "is not a bucket"),
        (["restore", "{folder}", "x"], USAGE, "not the name of an export"),
        (["restore", "{folder}", "jobs-1-2-20260101T0Z"], REFUSED, "cut short"),
        (
            ["restore", "{folder}", "jobs-1-2-20260101T0Z", "--keep-days", "0"],
            USAGE,
            "from 1 to 3650",
        ),
    ],
)
def test_a_wrong_command_is_refused_with_its_reason(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    more: list[str], code: int, message: str,
) -> None:  # fmt: skip
    argv = [word.replace("{folder}", str(tmp_path)) for word in more]
    assert main(["history", *argv, "--dsn", site.sql.dsn]) == code
    assert message in capsys.readouterr().err
