"""Two daemons on one database and one runner: one leads, and one that led changes nothing more."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.daemon import Odc, new_odc, wait
from tests.support.database import Sql

pytestmark = pytest.mark.long

NODES = ("--node", "n[1-2]=h100:8x64")
LEASE_S = 2.0


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


def overthrow(pair: Pair, chance: random.Random, for_s: float) -> list[int]:
    """Stop the leader amid its work, for longer than its lease; the jobs submitted meanwhile."""
    leader = pair.wait_for_leader()
    other = next(odc for pid, odc in pair.processes.items() if pid != leader)
    term = pair.term
    jobs = [pair.submit(other, chance.uniform(0, 0.3)) for _ in range(chance.randint(3, 15))]
    subprocess.run(["kill", "-STOP", str(leader)], check=True)
    since = time.monotonic()
    wait(lambda: stopped(leader), lambda: "the leader does not stop")
    jobs += [pair.submit(other, chance.uniform(0, 0.3)) for _ in range(10)]
    wait(lambda: pair.term == term + 1, pair.log)
    jobs.append(pair.submit(other))
    # Only time makes a leader's sleep long; the other leads meanwhile.
    time.sleep(max(0.0, for_s - (time.monotonic() - since)))
    subprocess.run(["kill", "-CONT", str(leader)], check=True)
    jobs.append(pair.submit(pair.processes[leader]))
    assert pair.term == term + 1
    return jobs


def test_a_leader_that_was_stopped_changes_nothing_when_it_goes_on(database_url: str) -> None:
    chance = random.Random(2)
    with pair(database_url) as both:
        both.wait_for_leader()
        assert both.term == 1
        jobs = overthrow(both, chance, LEASE_S + 1)
        both.check(jobs)
        assert both.term == 2
        assert "leader.lost" in both.log() or "leader.database_down" in both.log()


@pytest.mark.long
def test_a_leader_stopped_for_a_minute_changes_nothing(database_url: str) -> None:
    with pair(database_url, lease_s=10) as both:
        jobs = overthrow(both, random.Random(60), for_s=60)
        both.check(jobs)
        assert both.term == 2


@pytest.mark.long
def test_leaders_stopped_again_and_again_start_no_job_twice(database_url: str) -> None:
    chance = random.Random(20)
    with pair(database_url) as both:
        jobs = [job for _ in range(20) for job in overthrow(both, chance, chance.uniform(2, 4))]
        both.check(jobs)


def test_a_killed_leader_is_followed_at_once(database_url: str) -> None:
    """Its connection is gone, so nobody waits for its lease."""
    with pair(database_url, lease_s=3600) as both:
        leader = both.wait_for_leader()
        other = next(odc for pid, odc in both.processes.items() if pid != leader)
        jobs = [both.submit(other, 0.2) for _ in range(5)]
        subprocess.run(["kill", "-KILL", str(leader)], check=True)
        jobs.append(both.submit(other))
        both.check(jobs)
        assert both.term == 2


def test_a_daemon_on_another_machine_is_refused(database_url: str) -> None:
    with new_odc() as odc, new_odc() as other, Sql(database_url) as sql:
        with odc.serving("serve", "--dsn", database_url, *NODES):
            sql.execute("update odc.local_host set machine_id = 'other', host_name = 'gpu-07'")
            refused = other.odcd("serve", "--dsn", database_url, *NODES, check=False)
            assert refused.returncode == 1
            assert 'belongs to the local executor on host "gpu-07"' in refused.stderr
            assert 'Stop odcd on "gpu-07" first' in refused.stderr
        # Nobody leads and nothing runs there any more.
        with other.serving("serve", "--dsn", database_url, *NODES):
            assert other.wait_for(other.submit("--wrap", "true"), "COMPLETED")["exit_code"] == 0
