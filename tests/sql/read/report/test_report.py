"""Schema odc_report: the views that a dashboard may read, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest

from tests.support.builders.dev_servers import Reservations
from tests.support.builders.disks import Disks
from tests.support.builders.jobs import BOB, Queue, a_cluster
from tests.support.harness.boards import Question, filled, questions
from tests.support.harness.database import Sql

HOUR = 3600
DENIED = asyncpg.InsufficientPrivilegeError
VIEWS = {
    "attempt", "dev_server", "disk", "efficiency", "eta_score", "gpu_hours_by_day", "node",
    "plan", "queue",
}  # fmt: skip
PRIVATE = (
    "script", "environment", "env", "args", "key", "token", "secret", "digest", "work_dir", "stdin",
    "stdout", "stderr", "comment", "options", "ask", "uid", "submit_host", "contents", "evidence",
)  # fmt: skip


@contextmanager
def as_reader(sql: Sql) -> Iterator[None]:
    """As a program that has only this role."""
    sql.execute("set local role odc_report")
    try:
        yield
    finally:
        sql.execute("reset role")


def read(sql: Sql, view: str, **where: Any) -> list[dict[str, Any]]:
    with as_reader(sql):
        rows = sql.rows(f"select * from odc_report.{view}")
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def views(sql: Sql) -> set[str]:
    return set(
        sql.values(
            "select c.relname from pg_class as c where c.relnamespace = 'odc_report'::regnamespace"
        )
    )


def test_the_report_role_reads_every_view(sql: Sql) -> None:
    found = views(sql)
    assert found >= VIEWS
    for view in found:
        read(sql, view)


@pytest.mark.parametrize("question", [q for q in questions() if q.sql], ids=str)
def test_queries_of_the_dashboards_are_answered(queue: Queue, question: Question) -> None:
    queue.submit(gpus_per_node=8, node_count=2)
    queue.start()
    queue.submit(BOB, gpus_per_node=8)
    queue.start()
    with as_reader(queue.sql):
        rows = queue.sql.rows(filled(question.text))
    if question.panel in ("Queue", "Next planned starts"):
        assert rows


def test_the_report_role_reads_and_calls_nothing_else(sql: Sql) -> None:
    objects = sql.values(
        """
        select format('select count(*) from %I.%I', n.nspname, c.relname) from pg_class as c
          join pg_namespace as n on n.oid = c.relnamespace
         where n.nspname in ('odc', 'odc_past') and c.relkind in ('r', 'p', 'v', 'm')
        """
    )
    calls = sql.values(
        """
        select distinct format('select odc.%I(%s)', p.proname,
                               (select string_agg('null', ',') from generate_series(1, p.pronargs)))
          from pg_proc as p
         where p.pronamespace = 'odc'::regnamespace and p.prokind = 'f'
           and p.prorettype <> 'trigger'::regtype
        """
    )
    assert len(objects) > 100
    assert len(calls) > 100
    with as_reader(sql):
        for statement in [*objects, *calls]:
            with pytest.raises(DENIED):
                sql.value(statement)


def test_the_report_role_changes_nothing(sql: Sql) -> None:
    with as_reader(sql):
        for statement in (
            "create table odc_report.mine (id integer)",
            "create view odc_report.mine as select 1 as one",
            "delete from odc_report.queue",
            "update odc_report.node set name = 'x'",
            "insert into odc_report.node (name) values ('n')",
            "create schema mine",
        ):
            with pytest.raises(
                (
                    DENIED,
                    asyncpg.ObjectNotInPrerequisiteStateError,
                    asyncpg.FeatureNotSupportedError,
                )
            ):
                sql.execute(statement)


def test_users_without_the_role_read_nothing(sql: Sql) -> None:
    sql.execute("create role odc_stranger nologin")
    sql.execute("set local role odc_stranger")
    with pytest.raises(DENIED):
        sql.value("select count(*) from odc_report.queue")
    sql.execute("reset role")


def test_no_column_is_private(sql: Sql) -> None:
    columns = sql.values(
        """
        select c.relname || '.' || a.attname
          from pg_attribute as a join pg_class as c on c.oid = a.attrelid
         where c.relnamespace = 'odc_report'::regnamespace and a.attnum > 0
        """
    )
    assert len(columns) > 50
    for column in columns:
        words = column.partition(".")[2]
        assert words not in PRIVATE, column
        assert not {"key", "token", "secret", "digest"} & set(words.split("_")), column


def test_lost_rights_of_the_role_are_granted_again(sql: Sql) -> None:
    """After the operator created the role again, or after an install that could not."""
    sql.execute("revoke all on all tables in schema odc_report from odc_report")
    sql.execute("revoke all on schema odc_report from odc_report")
    with as_reader(sql), pytest.raises(DENIED):
        sql.value("select count(*) from odc_report.queue")
    assert sql.value("select odc.grant_reports()")
    assert read(sql, "queue") == []


def test_the_queue_view_has_running_and_pending_jobs(queue: Queue) -> None:
    first = queue.submit(gpus_per_node=8, node_count=2, time_limit_s=HOUR)
    queue.start()
    second = queue.submit(BOB, gpus_per_node=8, node_count=1)
    queue.start()
    [running] = read(queue.sql, "queue", job_id=first)
    assert (running["user"], running["state"], running["gpus"]) == ("alice", "CONFIGURING", 16)
    assert (running["ends_at"] - running["started_at"]).total_seconds() == HOUR
    [waiting] = read(queue.sql, "queue", job_id=second)
    assert (waiting["user"], waiting["state"], waiting["reason"]) == ("bob", "PENDING", "Resources")
    [planned] = read(queue.sql, "plan")
    assert (planned["job_id"], planned["user"], planned["gpus_per_node"]) == (second, "bob", 8)
    assert planned["planned_start_at"] == waiting["planned_start_at"]
    nodes = {row["name"]: row["gpus_used"] for row in read(queue.sql, "node")}
    assert set(nodes.values()) == {8}


def test_gpu_hours_count_on_the_day_of_their_allocation(queue: Queue) -> None:
    job = queue.submit(gpus_per_node=2, time_limit_s=9 * HOUR)
    queue.start()
    queue.move(HOUR)
    queue.end(job)
    [held] = read(queue.sql, "attempt")
    assert (held["user"], held["gpus"], held["gpu_type"], held["live"]) == (
        "alice", 2, "h100", False,
    )  # fmt: skip
    # Three hours before midnight of the day before yesterday, to one hour after.
    with queue.sql.trial():
        queue.sql.execute(
            """
            update odc.attempt set started_at = v.midnight - interval '3 hours',
                                   ended_at = v.midnight + interval '1 hour'
              from (select date_trunc('day', now(), 'UTC') - interval '1 day' as midnight) as v
            """
        )
        days = sorted(read(queue.sql, "gpu_hours_by_day"), key=lambda row: row["day"])
        assert [(float(row["gpu_hours"]), row["jobs"]) for row in days] == [(6.0, 1), (2.0, 1)]
        queue.sql.execute("update odc.attempt set ended_at = ended_at - interval '100 days'")
        assert read(queue.sql, "gpu_hours_by_day") == []


def test_the_efficiency_view_has_the_known_gpu_use(queue: Queue) -> None:
    job = queue.submit(gpus_per_node=2)
    queue.start()
    queue.sql.execute(
        """
        insert into odc.gpu_use (job_id, attempt, gpus, running_at, ended_at, covered_s, busy_gpu_s,
                                 source, stored_at)
        select $1, v.attempt, 2, $2, $2 + interval '1 hour', v.covered_s, v.busy_s, 'nvml',
               v.stored_at
          from (values (1, 1800, 900, $2::timestamptz), (2, 0, 0, $2), (3, 0, 0, null))
               as v (attempt, covered_s, busy_s, stored_at)
        """,
        job, queue.now,
    )  # fmt: skip
    attempts = {row["attempt"]: row for row in read(queue.sql, "efficiency")}
    assert (attempts[1]["gpu_hours"], attempts[1]["busy_ratio"]) == (2, 0.25)
    assert attempts[2]["busy_ratio"] is None, "not seen is not idle"
    assert set(attempts) == {1, 2}, "the third is owed"


def test_dev_servers_and_disks_have_views(queue: Queue) -> None:
    node = {"gpu_type": "h100", "gpus": 8, "cpus": 64, "mem_mib": 64_000, "declared": True}
    a_cluster(queue.sql, more=[{**node, "name": "east", "zone": "east-1a"}])
    reservations, disks = Reservations(queue), Disks(queue)
    disks.create()
    dev_server = reservations.reserve(details={"disk": "main"}, gpu_type="h100", node_list=["east"])
    queue.start()
    [row] = read(queue.sql, "dev_server")
    [disk] = read(queue.sql, "disk")
    assert (row["job_id"], row["disk_id"], row["launched_at"]) == (
        dev_server,
        disk["disk_id"],
        None,
    )
    assert (disk["user"], disk["state"], disk["held_by_job"]) == ("alice", "in-use", dev_server)
    # Only its owner and operators see the name of a disk.
    assert "main" not in str([row, disk])
