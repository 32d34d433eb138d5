"""A queue to a file and back: complete, as of one moment, or not at all."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import threading
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from odcd.clock import SystemClock
from odcd.database import schema
from odcd.database.backup import MANIFEST, Summary, restore_backup, write_backup
from odcd.errors import BadRequest, OdcError, SchemaTooNew, UnknownPass, WrongState
from odcd.home.postgres import EmbeddedPostgres
from tests.support.harness.database import MAJOR, Sql, admit_root, make_home, remove_home
from tests.support.harness.events import read_events

pytestmark = pytest.mark.long

# Rows in every kind of table, with what text formats stumble over: tabs, backslashes, nulls.
MORNING = r"""
insert into odc.node (name, gpu_type, gpus, cpus, mem_mib, state_at, features)
values ('n1', 'h100', 8, 64, 1000, '2030-01-01Z', '{a,"b c"}');
insert into odc.job_text values ('d1', E'#!/bin/sh\necho "tab:\there \\n é"\n'), ('d2', '{}');
insert into odc.shape (partition_ids, node_count, gpus_per_node, gpu_type, cpus_per_node,
                       mem_per_node_mib, exclusive)
values ('{1}', 1, 2, 'h100', 4, 100, false);
insert into odc.job (id, name, user_name, uid, gid, account_id, qos_id, partition_ids, shape_id,
                     submitted_at, time_limit_s, requeue, work_dir, umask, script_digest,
                     environment_digest, options, args)
select nextval('odc.job_id_seq'), format(E'job\t%s', n), 'alice', 1000, 1000, 1, 1, '{1}', 1,
       '2030-01-01Z', 60, n % 2 = 0, '/tmp', 18, 'd1', 'd2', '{"a": [1, null, "x\ny"]}', '{"a b",c}'
  from generate_series(1, 20) as n;
insert into odc.pending (job_id, shape_id, uid, account_id, qos_id, nice, queued_at, time_limit_s)
select id, 1, 1000, 1, 1, 0, '2030-01-01Z', 60 from odc.job where id <= 10;
insert into odc.running (job_id, attempt, state, shape_id, partition_id, uid, account_id, qos_id,
                         nice, queued_at, started_at, time_limit_s, ends_at, node_count,
                         live_members)
values (11, 1, 'RUNNING', 1, 1, 1000, 1, 1, 0, '2030-01-01Z', '2030-01-01Z', 60, 'infinity', 1, 1);
insert into odc.allocation (job_id, rank, node_id, gpu_mask, gpus, cpus, mem_mib, ends_at)
values (11, 0, 1, 3, 2, 4, 100, 'infinity');
select odc._repair_use();
insert into odc.attempt (job_id, attempt, state, started_at, ended_at, node_names, requeued)
values (12, 1, 'NODE_FAIL', '2030-01-01Z', '2030-01-01Z', '{n1}', true);
insert into odc.event (at, kind, actor, job_id) values ('2030-01-01Z', 'submitted', 'alice', 1);
"""


@pytest.fixture
def queue(database_url: str) -> str:
    """A database with 20 jobs, of which 10 wait and one runs."""
    with Sql(database_url) as sql:
        sql.execute(MORNING)
    return database_url


def backup(dsn: str) -> io.BytesIO:
    file = io.BytesIO()
    asyncio.run(write_backup(dsn, file, SystemClock()))
    file.seek(0)
    return file


def restore(dsn: str, file: io.BytesIO, *, replace: bool = False, term: int = 0) -> Summary:
    source = schema.read_source(schema.sql_folder())
    return asyncio.run(restore_backup(dsn, file, source, SystemClock(), replace=replace, term=term))


def contents(dsn: str) -> dict[str, list[dict[str, object]]]:
    """Every table's rows, except for the values that a restore must change."""
    changed = {"migration", "install", "term", "local_host"}
    with Sql(dsn) as sql:
        tables = sql.values(
            "select relname from pg_class where relnamespace = 'odc'::regnamespace "
            "and relkind in ('r', 'p') and not relispartition order by 1"
        )
        rows = {name: sql.rows(f"select * from odc.{name}") for name in set(tables) - changed}
    rows["event"] = [r for r in rows["event"] if r["kind"] != "restored"]
    rows["server"] = [{"id": r["id"]} for r in rows["server"]]
    # Transaction numbers belong to another server.
    xids = ("xid", "born_xid", "past_xid", "snapshot")
    rows = {
        name: [{key: value for key, value in row.items() if key not in xids} for row in found]
        for name, found in rows.items()
    }
    rows["allocation"] = [
        {**r, "state": "running" if r["state"] == "starting" else r["state"]}
        for r in rows["allocation"]
    ]
    return {name: sorted(found, key=str) for name, found in rows.items()}


def manifest_of(file: io.BytesIO) -> dict[str, object]:
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read(MANIFEST))


def with_manifest(file: io.BytesIO, **changes: object) -> io.BytesIO:
    changed = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == MANIFEST:
                data = json.dumps({**json.loads(data), **changes}).encode()
            new.writestr(name, data)
    return changed


@pytest.mark.long
def test_a_restored_queue_is_the_one_backed_up(queue: str, empty_database_url: str) -> None:
    done = restore(empty_database_url, backup(queue))
    assert (done.jobs, done.pending, done.running) == (20, 10, 1)
    assert contents(empty_database_url) == contents(queue)


@pytest.mark.long
def test_a_backup_does_not_depend_on_the_version_of_postgresql(queue: str) -> None:
    """Made on the version of this run, and restored on the other one; pg_restore refuses that."""
    home = make_home()
    try:
        postgres = EmbeddedPostgres(home, 16 if MAJOR == 18 else 18, durable=False)
        dsn = postgres.start()
        admit_root(postgres)
        assert restore(dsn, backup(queue)).jobs == 20
        assert contents(dsn) == contents(queue)
    finally:
        remove_home(home)


@pytest.mark.long
def test_passes_from_before_the_restore_cannot_be_replayed(
    queue: str, empty_database_url: str
) -> None:
    with Sql(queue) as sql:
        pass_id = sql.value(
            "insert into odc.pass (term, at, looked, started, took_ms, snapshot) "
            "values (1, '2030-01-01Z', 1, 0, 0, pg_current_snapshot()) returning id"
        )
    restore(empty_database_url, backup(queue))
    with Sql(empty_database_url) as sql, pytest.raises(UnknownPass, match="restored"):
        sql.value("select odc.replay_pass($1)", pass_id)


def test_a_backup_is_a_consistent_snapshot(queue: str) -> None:
    class Interrupted(io.BytesIO):
        """All pending jobs are gone once the first table is being written."""

        interruptions = 0

        def write(self, data: Any) -> int:
            if not self.interruptions:
                self.interruptions += 1
                other = threading.Thread(target=empty_the_queue)
                other.start()
                other.join()
            return super().write(data)

    def empty_the_queue() -> None:
        with Sql(queue) as sql:
            sql.execute("delete from odc.pending")

    file = Interrupted()
    assert asyncio.run(write_backup(queue, file, SystemClock())).pending == 10
    assert file.interruptions == 1


@pytest.mark.long
def test_job_ids_go_on_above_everything_seen(queue: str, empty_database_url: str) -> None:
    file = backup(queue)
    restore(empty_database_url, file)
    with Sql(empty_database_url) as sql:
        assert sql.value("select nextval('odc.job_id_seq')") == 21
        sql.execute("select setval('odc.job_id_seq', 500)")
    file.seek(0)
    restore(empty_database_url, file, replace=True)
    with Sql(empty_database_url) as sql:
        assert sql.value("select nextval('odc.job_id_seq')") == 501
        kept = sql.value("insert into odc.pass (term, at, looked, started, took_ms) "
                         "values (1, '2030-01-01Z', 0, 0, 0) returning id")  # fmt: skip
        assert kept == 1


@pytest.mark.long
def test_the_term_rises_above_every_term_obeyed(queue: str, empty_database_url: str) -> None:
    with Sql(queue) as sql:
        sql.execute("update odc.term set term = 7, holder = 'old', backend_pid = 1")
    file = backup(queue)
    restore(empty_database_url, file, term=40)
    with Sql(empty_database_url) as sql:
        assert sql.row("select term, holder, backend_pid from odc.term") == {
            "term": 41,
            "holder": None,
            "backend_pid": None,
        }
        sql.execute("update odc.term set term = 90")
    file.seek(0)
    restore(empty_database_url, file, replace=True)
    with Sql(empty_database_url) as sql:
        assert sql.value("select term from odc.term") == 91


@pytest.mark.long
def test_a_restored_queue_may_be_led_by_another_machine(
    queue: str, empty_database_url: str
) -> None:
    with Sql(queue) as sql:
        sql.execute("insert into odc.local_host (machine_id, host_name) values ('m', 'h')")
    restore(empty_database_url, backup(queue))
    with Sql(empty_database_url) as sql:
        sql.execute("select odc.check_host('another', 'host')")


@pytest.mark.long
def test_members_that_were_starting_are_not_started_after_a_restore(
    queue: str, empty_database_url: str
) -> None:
    with Sql(queue) as sql:
        sql.execute("update odc.allocation set state = 'starting'")
    restore(empty_database_url, backup(queue))
    with Sql(empty_database_url) as sql:
        term = sql.value("select term from odc.term")
        live = sql.rows("select started from odc.live_members($1)", term)
        assert live != []
        assert all(member["started"] for member in live)


@pytest.mark.long
def test_a_queue_that_is_not_empty_is_replaced_only_when_asked(queue: str) -> None:
    file = backup(queue)
    before = contents(queue)
    with pytest.raises(WrongState, match="not empty: 20 jobs"):
        restore(queue, file)
    assert contents(queue) == before
    with Sql(queue) as sql:
        sql.execute("delete from odc.pending")
    file.seek(0)
    restore(queue, file, replace=True)
    assert contents(queue) == before


def test_a_restore_is_refused_while_a_daemon_uses_the_database(queue: str) -> None:
    file = backup(queue)
    with Sql(queue) as daemon:
        daemon.execute("set application_name = 'odcd-leader'")
        with pytest.raises(WrongState, match="daemon is using"):
            restore(queue, file, replace=True)


@pytest.mark.parametrize("cut", [100, 1000, 4000])
def test_a_file_cut_short_restores_nothing(queue: str, cut: int) -> None:
    whole = backup(queue).getvalue()
    before = contents(queue)
    with pytest.raises(BadRequest, match="not a complete backup"):
        restore(queue, io.BytesIO(whole[:-cut]), replace=True)
    assert contents(queue) == before


def test_a_damaged_table_restores_nothing(queue: str) -> None:
    before = contents(queue)
    damaged = bytearray(backup(queue).getvalue())
    with zipfile.ZipFile(io.BytesIO(bytes(damaged))) as archive:
        member = archive.getinfo("job.copy")
    damaged[member.header_offset + 60] ^= 0xFF
    with pytest.raises(OdcError):
        restore(queue, io.BytesIO(bytes(damaged)), replace=True)
    assert contents(queue) == before


def test_a_backup_of_a_newer_version_is_refused(queue: str, empty_database_url: str) -> None:
    file = with_manifest(backup(queue), schema_version=99)
    with pytest.raises(SchemaTooNew, match="version 99"):
        restore(empty_database_url, file)


def test_an_older_backup_is_brought_to_this_version(
    queue: str, empty_database_url: str, tmp_path: Path
) -> None:
    """The later migrations run on its rows, as they would have in place."""
    file = backup(queue)
    target = tmp_path / "sql"
    shutil.copytree(schema.sql_folder(), target)
    newest = schema.read_source(target).version + 1
    (target / "migrations" / f"{newest:04}_more.sql").write_text(
        "alter table job add column title text; update job set title = upper(user_name);"
    )
    source = schema.read_source(target)
    asyncio.run(restore_backup(empty_database_url, file, source, SystemClock(), replace=False))
    with Sql(empty_database_url) as sql:
        assert sql.value("select count(*) from odc.job where title = 'ALICE'") == 20
        assert sql.value("select max(version) from odc.migration") == newest


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"tables": {}},
        {"partitions": [{"name": "x; drop schema odc", "parent": "job", "bound": "DEFAULT"}]},
        {"partitions": [{"name": "x", "parent": "job", "bound": "DEFAULT; drop schema odc"}]},
        {"sequences": {"job_id_seq": "1); drop schema odc"}},
    ],
)
def test_a_foreign_manifest_is_refused(
    queue: str, empty_database_url: str, changes: dict[str, object]
) -> None:
    with pytest.raises(BadRequest):
        restore(empty_database_url, with_manifest(backup(queue), **changes))


def test_events_of_a_restored_queue_are_visible_at_once(
    queue: str, empty_database_url: str
) -> None:
    """Transaction numbers of the old server would hide them until the new one got as far."""
    with Sql(queue) as sql:
        sql.execute("update odc.event set xid = (xid::text::bigint + 1000000000)::text::xid8")
    restore(empty_database_url, backup(queue))
    with Sql(empty_database_url) as sql:
        kinds = [event["kind"] for event in read_events(sql)]
    assert kinds == ["submitted", "restored"]


def test_a_restore_returns_the_time_of_the_backup(queue: str, empty_database_url: str) -> None:
    began = datetime.now(UTC)
    done = restore(empty_database_url, backup(queue))
    assert timedelta() <= done.made_at - began < timedelta(minutes=1)


def test_a_restored_queue_is_not_mistaken_for_a_recovered_database(
    queue: str, empty_database_url: str
) -> None:
    """odcd restore has raised the term and the sequences itself."""
    with Sql(queue) as sql:
        sql.execute("update odc.server set system_id = 1, timeline = 7")
    restore(empty_database_url, backup(queue))
    with Sql(empty_database_url) as sql:
        term = sql.value("select term from odc.term")
        taken = sql.value("select odc.take_term($1, 0, 'odcd-1', 'host', '2030-01-02Z')", term)
        assert taken == term + 1
