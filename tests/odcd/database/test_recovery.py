"""A database that was recovered by PostgreSQL's own means: no id and no term is used twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from odcd.clock import SystemClock
from odcd.database import schema
from odcd.home.account import Account, service_account
from odcd.home.postgres_files import usable_install
from tests.support.harness.database import MAJOR, Sql, make_home, remove_home

pytestmark = pytest.mark.long

NOW = datetime(2030, 1, 1, tzinfo=UTC)
WAIT_S = 60


class Server:
    """A separate PostgreSQL that accepts every user over its socket."""

    def __init__(self, folder: Path, programs: Path, owner: Account, port: int) -> None:
        self.data = folder / f"data-{port}"
        self._folder = folder
        self._programs = programs
        self._owner = owner
        self._port = port
        self.dsn = f"postgresql://odc@/odc?host={folder}&port={port}"

    def do(self, program: str, *argv: str | Path) -> None:
        done = subprocess.run(
            [self._programs / program, *argv],
            cwd="/", capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            **self._owner.child(),  # type: ignore[call-overload]
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def start(self) -> None:
        options = f"-p {self._port} -k {self._folder} -c listen_addresses= -c fsync=off"
        log = self._folder / f"log-{self._port}"
        self.do("pg_ctl", "-D", self.data, "-w", "-s", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self.do("pg_ctl", "-D", self.data, "-w", "-s", "-m", "immediate", "stop")

    def copy(self, to: Server, *argv: str) -> None:
        self.do(
            "pg_basebackup", "-h", self._folder, "-p", str(self._port), "-U", "odc", "-D", to.data,
            "-c", "fast", "-X", "stream", *argv,
        )  # fmt: skip


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """A primary with the schema and a leader, and a place for a copy of it."""
    home = make_home()
    owner = service_account()
    if os.geteuid() == 0:
        os.chown(home, owner.uid, owner.gid)
    programs = usable_install(home, MAJOR, owner) / "bin"
    first, second = (Server(home, programs, owner, port) for port in (5432, 5433))
    try:
        first.do("initdb", "-D", first.data, "-U", "odc", "-A", "trust", "-E", "UTF8", "-N")
        first.start()
        first.do("createdb", "-h", home, "-U", "odc", "odc")
        asyncio.run(schema.install(first.dsn, SystemClock()))
        yield first, second
    finally:
        for server in (second, first):
            server.stop()
        remove_home(home)


def lead(sql: Sql, now: datetime) -> int:
    """Take the term as a daemon does, and sweep once; returns the term."""
    term = sql.value(
        "select odc.take_term(t.term, t.beat, 'odcd-1', 'host', $1) from odc.term as t", now
    )
    sql.execute("select odc.sweep($1, $2)", term, now)
    return term


def start_job(sql: Sql) -> int:
    """A job with a member that is about to start; its id."""
    sql.execute(
        """
        insert into odc.node (name, gpu_type, gpus, cpus, mem_mib, state_at)
        values ('n1', 'h100', 8, 64, 1000, '2030-01-01Z');
        insert into odc.job_text values ('d1', 'true');
        insert into odc.shape (partition_ids, node_count, gpus_per_node, gpu_type, cpus_per_node,
                               mem_per_node_mib, exclusive)
        values ('{1}', 1, 2, 'h100', 4, 100, false);
        insert into odc.job (id, name, user_name, uid, gid, account_id, qos_id, partition_ids,
                             shape_id, submitted_at, time_limit_s, requeue, work_dir, umask,
                             script_digest, environment_digest, options, args)
        select nextval('odc.job_id_seq'), 'j', 'alice', 1000, 1000, 1, 1, '{1}', 1, '2030-01-01Z',
               86400, false, '/tmp', 18, 'd1', 'd1', '{}', '{}';
        insert into odc.running (job_id, attempt, state, shape_id, partition_id, uid, account_id,
                                 qos_id, nice, queued_at, started_at, time_limit_s, ends_at,
                                 node_count, live_members)
        select id, 1, 'CONFIGURING', 1, 1, 1000, 1, 1, 0, '2030-01-01Z', '2030-01-01Z', 86400,
               'infinity', 1, 1 from odc.job;
        insert into odc.allocation (job_id, rank, node_id, gpu_mask, gpus, cpus, mem_mib, ends_at)
        select id, 0, 1, 3, 2, 4, 100, 'infinity' from odc.job;
        """
    )
    return sql.value("select max(id) from odc.job")


def member_state(sql: Sql) -> str:
    return sql.value("select state::text from odc.allocation")


def recoveries(sql: Sql) -> list[dict[str, Any]]:
    return sql.rows("select at, actor, detail from odc.event where kind = 'recovered'")


def until_primary(dsn: str) -> None:
    deadline = time.monotonic() + WAIT_S
    with Sql(dsn) as sql:
        while sql.value("select pg_is_in_recovery()"):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_ids_and_terms_do_not_recur_after_a_recovery_to_a_point_in_time(
    servers: tuple[Server, Server],
) -> None:
    first, second = servers
    with Sql(first.dsn) as sql:
        lead(sql, NOW)
        start_job(sql)
        first.copy(second)
        # Changes after the backup: hundreds of jobs, leaders, events.
        lost_id = max(sql.values("select nextval('odc.job_id_seq') from generate_series(1, 500)"))
        sql.execute(
            "insert into odc.event (at, kind, actor) select $1, 'submitted', 'alice' "
            "from generate_series(1, 500)", NOW,
        )  # fmt: skip
        lost_event = sql.value("select max(id) from odc.event")
        for minute in range(1, 6):
            lost_term = lead(sql, NOW + timedelta(minutes=minute))
    first.stop()
    (second.data / "recovery.signal").touch()
    with (second.data / "postgresql.auto.conf").open("a") as conf:
        conf.write(
            "restore_command = 'false'\nrecovery_target = 'immediate'\n"
            "recovery_target_action = 'promote'\n"
        )
    second.start()
    until_primary(second.dsn)
    later = NOW + timedelta(hours=1)
    with Sql(second.dsn) as sql:
        assert lead(sql, later) > lost_term
        assert sql.value("select nextval('odc.job_id_seq')") > lost_id
        found = recoveries(sql)
        assert [(row["at"], row["actor"]) for row in found] == [(later, "odcd-1")]
        assert sql.value("select max(id) from odc.event") > lost_event
        assert member_state(sql) == "running", "it may have run, so it must not start again"
        # The partitions created in advance take the next job.
        sql.execute("update odc.job set id = nextval('odc.job_id_seq')")


def test_a_failover_skips_a_few_ids_once_and_starts_the_starting_job(
    servers: tuple[Server, Server],
) -> None:
    first, second = servers
    with Sql(first.dsn) as sql:
        term = lead(sql, NOW)
        job_id = start_job(sql)
        first.copy(second, "-R")
        second.start()
        position = sql.value("select pg_current_wal_flush_lsn()::text")
    with Sql(second.dsn) as standby:
        deadline = time.monotonic() + WAIT_S
        while not standby.value("select pg_last_wal_replay_lsn() >= $1::text::pg_lsn", position):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    first.stop()
    second.do("pg_ctl", "-D", second.data, "-w", "-s", "promote")
    until_primary(second.dsn)
    with Sql(second.dsn) as sql:
        skipped = lead(sql, NOW + timedelta(seconds=30)) - term - 1
        assert 1000 <= skipped <= 5000
        assert job_id < sql.value("select nextval('odc.job_id_seq')") < job_id + skipped + 40
        assert member_state(sql) == "starting"
        assert len(recoveries(sql)) == 1
        # Neither a restart nor another leader is a recovery.
        second.stop()
    second.start()
    with Sql(second.dsn) as sql:
        assert lead(sql, NOW + timedelta(minutes=1)) == term + 1 + skipped + 1
        assert len(recoveries(sql)) == 1


def test_a_copy_in_another_postgresql_is_a_recovery(database_url: str) -> None:
    """As pg_dump makes one: the transactions of its events are numbered by another server."""
    with Sql(database_url) as sql:
        lead(sql, NOW)
        sql.execute("insert into odc.local_host (machine_id, host_name) values ('m', 'h')")
        sql.execute(
            "insert into odc.event (at, kind, actor) values ('2030-01-01Z', 'submitted', 'alice')"
        )
        sql.execute("update odc.event set xid = '9000000000' where kind = 'submitted'")
        sql.execute(
            "insert into odc.pass (term, at, looked, started, took_ms, snapshot) "
            "values (1, '2030-01-01Z', 1, 0, 0, pg_current_snapshot())"
        )
        sql.execute("update odc.server set system_id = system_id + 1")
        lead(sql, NOW + timedelta(hours=1))
        assert sql.value("select snapshot from odc.pass") is None, "nothing to replay it with"
        assert len(recoveries(sql)) == 1
        assert sql.value("select count(*) from odc.local_host") == 0
        assert sql.values("select xid::text from odc.event where kind = 'submitted'") == ["0"]


@pytest.mark.parametrize(
    ("away", "skipped"),
    [
        (timedelta(), 1000),
        (timedelta(seconds=30), 4000),
        (timedelta(hours=1), 361_000),
        (timedelta(days=30), 4_000_000),
        (timedelta(hours=-1), 1000),
        (None, 4_000_000),
    ],
)
def test_more_ids_are_skipped_after_a_longer_time_without_a_leader(
    database_url: str, away: timedelta | None, skipped: int
) -> None:
    """A leader whose clock is behind skips the fewest ids; one about which nothing is known, the
    most."""
    with Sql(database_url) as sql:
        term = lead(sql, NOW)
        sql.execute("update odc.server set timeline = timeline + 1")
        if away is None:
            sql.execute("update odc.server set led_at = null")
        assert lead(sql, NOW + (away or timedelta())) == term + 1 + skipped
        assert recoveries(sql)[0]["detail"] != "{}"


def test_a_takeover_that_is_rolled_back_skips_no_further_ids(database_url: str) -> None:
    """Sequences keep the changes of a rolled back transaction: attempts must not add up."""
    with Sql(database_url) as sql:
        lead(sql, NOW)
        before = sql.value("select max(id) from odc.event")
        sql.execute("update odc.server set timeline = timeline + 1, led_at = null")
        for _ in range(5):
            sql.begin()
            lead(sql, NOW)
            sql.rollback()
        lead(sql, NOW)
        assert sql.value("select max(id) from odc.event") < before + 4_000_100


def test_a_leader_of_the_same_postgresql_skips_nothing(sql: Sql) -> None:
    first = lead(sql, NOW)
    assert lead(sql, NOW + timedelta(days=1)) == first + 1
    assert recoveries(sql) == []
