"""Two daemons on one database and one runner, and the place where a stopped one does most harm."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.harness.daemon import Odc, new_odc, wait
from tests.support.harness.database import Sql

NODES = ("--node", "n[1-2]=h100:8x64")
LEASE_S = 2.0
# The leader calls this every 5 s; reading so many rows takes it a while.
READ_MANY = """
    create or replace function odc.unstarted_jobs(p_term bigint, p_before timestamptz)
    returns table (job_id bigint) language plpgsql volatile as $$
    begin
        perform odc._hold_term(p_term);
        return query select 0::bigint from generate_series(1, 500000) where p_before is not null;
    end $$
"""
STUCK = """
    select exists (select from pg_stat_activity
                    where datname = current_database() and wait_event = 'ClientWrite'
                      and query like '%unstarted_jobs%')
"""
TRIES_S = 120


@dataclass
class Pair:
    """Two daemons on one machine, each with its home; the runner's folder is the same."""

    first: Odc
    second: Odc
    processes: dict[int, Odc]
    sql: Sql

    @property
    def term(self) -> int:
        return self.sql.value("select term from odc.term")

    @property
    def leader(self) -> int | None:
        holder = self.sql.value("select holder from odc.term")
        pid = int(holder.rpartition(":")[2]) if holder else None
        return pid if pid in self.processes else None

    def wait_for_leader(self) -> int:
        return wait(lambda: self.leader, lambda: self.log())

    def log(self) -> str:
        return "".join(
            odc.home.with_name(f"{odc.home.name}.log").read_text()[-3000:]
            for odc in (self.first, self.second)
        )

    def submit(self, odc: Odc, sleep_s: float = 0.0) -> int:
        script = f'#!/bin/sh\necho "$ODC_JOB_ID $ODC_ATTEMPT" >> runs\nsleep {sleep_s:.2f}\n'
        body = {"script": script, "work_dir": str(odc.work), "gpus": 1, "requeue": False}
        status, answer = odc.request("POST", "/v1/jobs", body)
        assert status == 201, answer
        return answer["id"]

    def check(self, jobs: list[int]) -> None:
        """All of them ran once, and the books balance."""
        wait(
            lambda: self.sql.value(
                "select not exists (select from odc.running) "
                "and not exists (select from odc.pending)"
            ),
            self.log,
        )
        ended = self.sql.rows("select id, state::text, attempt from odc.job order by id")
        assert [tuple(row.values()) for row in ended] == [(i, "COMPLETED", 1) for i in sorted(jobs)]
        runs = Counter((self.first.work / "runs").read_text().splitlines())
        assert runs == Counter(f"{job} 1" for job in jobs)
        assert self.sql.rows("select * from odc.check_books()") == []


@contextmanager
def pair(database_url: str, lease_s: float = LEASE_S) -> Iterator[Pair]:
    with new_odc() as first, ExitStack() as stack:
        second = Odc(first.home.with_name("second"), first.work)
        second.home.mkdir()
        (second.home / "odcd.lock").touch()
        (second.home / "runner").symlink_to(first.home / "runner")
        processes: dict[int, Odc] = {}
        for odc in (first, second):
            odc.environment |= {"ODC_LEASE_S": str(lease_s), "ODC_SWEEP_S": "1"}
            process = stack.enter_context(odc.serving("serve", "--dsn", database_url, *NODES))
            processes[process.pid] = odc
        sql = stack.enter_context(Sql(database_url))
        yield Pair(first, second, processes, sql)


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def stop_in_the_worst_place(pair: Pair, leader: int) -> float:
    """Stop the leader while one of its backends holds the term and waits for it to read the answer;
    returns the time. READ_MANY must be installed."""
    deadline = time.monotonic() + TRIES_S
    while time.monotonic() < deadline:
        wait(lambda: pair.sql.value(STUCK), pair.log)
        os.kill(leader, signal.SIGSTOP)
        since = time.monotonic()
        wait(lambda: stopped(leader), lambda: "the leader does not stop")
        # Data in transit arrives; after that the backend waits forever, or has finished.
        time.sleep(0.2)
        if pair.sql.value(STUCK):
            return since
        os.kill(leader, signal.SIGCONT)
    raise AssertionError("the leader was never caught while it read")
