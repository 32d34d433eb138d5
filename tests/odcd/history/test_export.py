"""Ended jobs are exported to files and restored, completely and any number of times, or not at
all."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from odcd.errors import BadRequest, OdcError, SchemaTooNew, WrongState
from odcd.history.export import Selection, export
from odcd.history.manifest import Manifest
from odcd.history.restore import restore
from odcd.history.targets import Folder, Target, open_target
from tests.odcd.history.past import Site
from tests.odcd.history.test_retention import delete
from tests.support.builders.jobs import NOW
from tests.support.fakes.clock import VirtualClock
from tests.support.harness.database import Sql


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    with Sql(database_url) as sql:
        yield Site(sql)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "history"
    path.mkdir()
    return path


def write(site: Site, folder: Path, **fields: Any) -> Manifest:
    done = asyncio.run(export(site.sql.dsn, Folder(folder), Selection(**fields), VirtualClock(NOW)))
    assert done is not None
    return done


def read(site: Site, folder: Path, name: str) -> int:
    return asyncio.run(restore(site.sql.dsn, Folder(folder), name, VirtualClock(NOW)))[1]


def contents(site: Site) -> dict[str, list[str]]:
    """The answers of commands about ended jobs."""
    tables = ("job", "attempt", "prediction", "gpu_use", "array_job", "step")
    found = {t: sorted(site.sql.values(f"select t::text from odc.{t} as t")) for t in tables}
    found["event"] = site.sql.values(
        "select (e.id, e.at, e.kind, e.actor, e.job_id, e.detail)::text from odc.event as e "
        "where e.job_id is not null order by e.id"
    )
    found["script"] = sorted(
        site.sql.values(
            "select t.content from odc.job as j "
            "join odc.job_text as t on t.digest = j.script_digest"
        )
    )
    return found


STEPS = """
    insert into odc.step (job_id, attempt, step, key, name, command, ranks, node_names, tasks,
                          cpus, gpu_masks, holds_cpus, holds_gpus, state, started_at, ended_at,
                          exit_code, statuses)
    select id, 1, 0, 'key', 'a''b', E'x\\ty', '{0,1}', '{n1,n2}', '{2,1}', '{4,2}', '{3,1}',
           true, true, 'FAILED', $1, $1, 3, '{"768": "0-1"}' from odc.job
"""


def test_deleted_jobs_can_be_restored_from_their_export(site: Site, folder: Path) -> None:
    site.sql.execute(STEPS, NOW)
    before = contents(site)
    shown = site.sql.value("select odc.show_jobs($1, null, $2)", site.old[0], NOW)
    done = delete(site, export_target=str(folder))
    assert (done.jobs, done.exports) == (5, 1)
    assert site.jobs() == site.recent
    assert site.sql.values("select job_id from odc.step order by job_id") == site.recent
    [name] = [path.name for path in folder.iterdir() if path.name.startswith("jobs-")]
    assert read(site, folder, name) > 0
    assert contents(site) == before
    assert site.queue.contradictions() == []
    assert site.sql.value("select odc.show_jobs($1, null, $2)", site.old[0], NOW) == shown
    # Again: nothing was missing. And retention leaves them for a while.
    assert read(site, folder, name) == 0
    delete(site)
    assert contents(site) == before
    site.sql.execute("update odc.history_export set restored_until = $1", NOW)
    delete(site)
    assert site.jobs() == site.recent


def test_restored_events_are_not_sent_as_new_events(site: Site, folder: Path) -> None:
    delete(site, export_target=str(folder))
    last = site.sql.value("select odc.last_event()")
    [name] = [path.name for path in folder.iterdir() if path.name.startswith("jobs-")]
    read(site, folder, name)
    assert site.sql.value("select odc.last_event()") == last
    assert (
        site.sql.value(
            "select count(*) from odc.event as e, odc.tally_event as t "
            "where (e.xid, e.id) > (t.xid, t.event_id) and e.job_id = any ($1)",
            site.old,
        )
        == 0
    )


def test_jobs_of_a_dropped_partition_come_back_into_one_of_their_own(
    site: Site, folder: Path
) -> None:
    written = write(site, folder, before=NOW - timedelta(days=30))
    before = contents(site)
    sql = site.sql
    low, high = min(site.old), max(site.old) + 1
    for parent, key in (("job", "id"), ("attempt", "job_id"), ("prediction", "job_id")):
        sql.execute(f"alter table odc.{parent} detach partition odc.{parent}_0")
        sql.execute(f"delete from odc.{parent}_0 where {key} < $1", high)
        sql.execute(
            f"alter table odc.{parent} attach partition odc.{parent}_0 "
            f"for values from ({high}) to (50000000)"
        )
    sql.execute("delete from odc.event where job_id = any ($1)", site.old)
    read(site, folder, written.name)
    assert contents(site) == before
    assert sql.value("select tableoid::regclass::text from odc.job where id = $1", low) == (
        f"job_{low}_{high}"
    )


def test_an_export_is_of_ended_jobs_alone_and_deletes_nothing(site: Site, folder: Path) -> None:
    waiting = site.queue.submit(gpus=1)
    before = contents(site)
    written = write(site, folder)
    assert written.rows == len(site.old + site.recent)
    assert (written.low, written.high) == (site.old[0], site.recent[-1] + 1)
    packed = folder / written.name / "job.copy.gz"
    ids = [
        line.split("\t")[0] for line in gzip.decompress(packed.read_bytes()).decode().splitlines()
    ]
    assert str(waiting) not in ids
    assert contents(site) == before
    assert asyncio.run(
        export(site.sql.dsn, Folder(folder), Selection(low=10**9), VirtualClock(NOW))
    ) is None  # fmt: skip


def test_no_export_has_keys_of_dev_servers(site: Site, folder: Path) -> None:
    assert not {"box_key", "box_jupyter", "api_key"} & set(write(site, folder).tables)


def test_a_damaged_export_is_refused_and_changes_nothing(site: Site, folder: Path) -> None:
    written = write(site, folder, before=NOW - timedelta(days=30))
    delete(site)
    left = contents(site)
    file = folder / written.name / "event.copy.gz"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(OdcError, match="digest does not match"):
        read(site, folder, written.name)
    file.unlink()
    with pytest.raises(OdcError, match=r"lacks event\.copy\.gz"):
        read(site, folder, written.name)
    assert contents(site) == left
    file.write_bytes(whole)
    assert read(site, folder, written.name) > 0


def test_an_export_without_a_manifest_was_cut_short(site: Site, folder: Path) -> None:
    written = write(site, folder)
    manifest = folder / written.name / "manifest.json"
    text = manifest.read_text()
    manifest.unlink()
    with pytest.raises(OdcError, match="cut short"):
        read(site, folder, written.name)
    manifest.write_text(text[: len(text) // 2])
    with pytest.raises(BadRequest, match="is not the manifest of an export"):
        read(site, folder, written.name)
    for name in ("../history", "jobs", ""):
        with pytest.raises(BadRequest, match="not the name"):
            read(site, folder, name)


@pytest.mark.parametrize(
    ("changed", "error"),
    [({"schema_version": 9999}, SchemaTooNew), ({"server": "another"}, WrongState),
     ({"format": 2}, OdcError)],
)  # fmt: skip
def test_an_export_of_another_odc_is_refused(
    site: Site, folder: Path, changed: dict[str, Any], error: type[OdcError]
) -> None:
    written = write(site, folder)
    manifest = folder / written.name / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changed))
    left = contents(site)
    with pytest.raises(error):
        read(site, folder, written.name)
    assert contents(site) == left


class Failing(Folder):
    """Fails at one file, or stores different content than it was given."""

    def __init__(self, path: Path, at: str, *, corrupts: bool = False) -> None:
        super().__init__(path)
        self._at = at
        self._corrupts = corrupts

    async def put(self, name: str, file: Path) -> None:
        if name.endswith(self._at):
            if not self._corrupts:
                raise OdcError("no space is left")
            await asyncio.to_thread(_shorten, file)
        await super().put(name, file)


def _shorten(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-4])


@pytest.mark.parametrize("at", ["job.copy.gz", "event.copy.gz", "manifest.json"])
@pytest.mark.parametrize("corrupts", [False, True])
def test_jobs_are_deleted_only_after_their_export_was_read_back(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch, at: str, corrupts: bool
) -> None:
    monkeypatch.setattr(
        "odcd.history.targets.Folder", lambda path: Failing(path, at, corrupts=corrupts)
    )
    with pytest.raises(OdcError):
        delete(site, export_target=str(folder))
    assert site.jobs() == site.old + site.recent
    monkeypatch.undo()
    assert delete(site, export_target=str(folder)).jobs == 5


def test_a_folder_that_is_absent_and_a_relative_one_are_refused(tmp_path: Path) -> None:
    async def opened(text: str) -> Target:
        async with open_target(text) as target:
            return target

    for text in (str(tmp_path / "absent"), "history", "s3://X"):
        with pytest.raises(BadRequest):
            asyncio.run(opened(text))
