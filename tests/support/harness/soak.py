"""Thousands of jobs on a cluster with faults, and the conditions that must be true afterwards.

One seed makes all choices; their timing depends on the machine.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.support.harness.controlplane.watch import Watch
from tests.support.harness.members import Members
from tests.support.harness.phases import Phases
from tests.support.harness.served import Refused, Served, Site
from tests.support.harness.soak_jobs import SoakJob, some_jobs
from tests.support.harness.troubles import Faults

BATCH = 25
CLIENTS = 4
ASK_S = 5.0
STAYING = 20
"""Jobs that never end: at the end their pods are compared with the database."""
QUIET_S = 120.0
REMIND_S = 15.0


@dataclass
class Soak:
    site: Site
    daemons: list[Served]
    faults: Faults
    members: Members
    watch: Watch
    phases: Phases
    jobs: int
    seed: int
    spread_s: float
    """The time over which jobs are submitted, so that there are always some to go wrong."""
    token: str = ""
    accepted: dict[int, SoakJob] = field(default_factory=dict)
    staying: dict[int, SoakJob] = field(default_factory=dict)
    repeated: int = 0
    """Requests without an answer, which were sent again under the same key."""
    took_s: float = 0.0
    _remind_at: float = field(default_factory=lambda: time.monotonic() + REMIND_S)

    # -- the run --------------------------------------------------------------------------------

    def run(self, patience_s: float) -> None:
        self.token = self.site.token("ann", 5001)
        chance = random.Random(f"{self.seed}/jobs")
        stay = [SoakJob(nodes=1 + n % 3, gpus=1 + n % 8, run_s=None, exit_code=0, requeue=True)
                for n in range(STAYING)]  # fmt: skip
        self.staying = self._submit("stay", stay)
        jobs = list(some_jobs(chance, self.jobs))
        begin = time.monotonic()
        with self.faults.happening():
            with self.phases.phase(f"submissions, over {self.spread_s:,.0f} s, with faults"):
                self._submit_all(jobs, begin)
            # The last ones are undisturbed: otherwise all faults would hit those few.
            few = self.jobs // 20
            with self.phases.phase(f"until {few:,} jobs are left, with faults"):
                self._until(lambda: self._left() <= few, "most jobs to end", patience_s)
        with self.phases.phase("the last jobs, without faults"):
            # KWOK does not repeat failed writes; a new one looks at all pods.
            self.faults.kwok.restart()
            self._until(self._none_left, "all jobs to end", 3 * QUIET_S)
        self.took_s = time.monotonic() - begin
        with self.phases.phase("comparison with the database, and the end of what stays"):
            self._settle()

    def _none_left(self) -> bool:
        if self._left() == 0:
            return True
        if time.monotonic() > self._remind_at:
            self._remind_at = time.monotonic() + REMIND_S
            self.faults.remind()
        return False

    def _submit_all(self, jobs: list[SoakJob], begin: float) -> None:
        batches = [jobs[n : n + BATCH] for n in range(0, len(jobs), BATCH)]
        lock = threading.Lock()

        def send(number: int) -> None:
            due = begin + self.spread_s * number / len(batches)
            time.sleep(max(0.0, due - time.monotonic()))
            found = self._submit(f"batch-{number}", batches[number])
            with lock:
                assert not self.accepted.keys() & found.keys(), "an id was given twice"
                self.accepted.update(found)

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(send, range(len(batches))))

    def _submit(self, key: str, jobs: list[SoakJob]) -> dict[int, SoakJob]:
        """Repeat until a daemon answers."""
        body = {"jobs": [one.body for one in jobs]}
        turn = 0
        while True:
            daemon = self.daemons[turn % len(self.daemons)]
            turn += 1
            try:
                answer = daemon.call(
                    "POST", "/v1/jobs/batch", self.token, body,
                    key=f"{self.seed}-{key}", timeout_s=ASK_S,
                )  # fmt: skip
            except (OSError, http.client.HTTPException):
                self.repeated += 1
                time.sleep(0.2)
                continue
            except Refused as refused:
                if refused.status < 500 and refused.status not in (409, 429):
                    raise
                time.sleep(0.2)
                continue
            return dict(zip(answer["ids"], jobs, strict=True))

    def _left(self) -> int:
        with self.site.sql() as sql:
            return sql.value(
                "select count(*) from (select job_id from odc.pending union all "
                "select job_id from odc.running) as j where job_id <> all ($1::bigint[])",
                list(self.staying),
            )

    def _until(self, true: Any, what: str, within_s: float) -> None:
        until = time.monotonic() + within_s
        reported_at = time.monotonic()
        while not true():
            assert self.watch.failed is None, self.watch.failed
            self.faults.check()
            assert time.monotonic() < until, (
                f"waited {within_s:g} s in vain for {what}\n{self.left_over()}{self.log()}"
            )
            if time.monotonic() - reported_at > 15:
                reported_at = time.monotonic()
                print(
                    f"{self._left()} jobs left, {self.members.summary()}, {self.faults.summary()}"
                )
            time.sleep(0.5)

    def left_over(self) -> str:
        """Jobs that have not ended, and their pods."""
        with self.site.sql() as sql:
            rows = sql.rows(
                "select job_id, attempt, state::text, intent::text, exit_cause, reason "
                "from (select job_id, attempt, state, intent, exit_cause, null as reason "
                "from odc.running union all "
                "select job_id, attempt, null, null, null, reason from odc.pending) as j "
                "where job_id <> all ($1::bigint[]) order by 1 limit 20",
                list(self.staying),
            )
        jobs = {row["job_id"] for row in rows}
        pods = [pod for pod in self.members.pods() if pod.key[0] in jobs]
        return (
            "\n".join(str(tuple(one.values())) for one in rows) + "\n" + "\n".join(map(str, pods))
        )

    def log(self) -> str:
        return "".join(f"\n--- {one.log.name}\n{one.tail(15)}" for one in self.daemons)

    def _settle(self) -> None:
        """Remaining jobs must have exactly the pods of the database; then they end, too."""
        self._until(lambda: not self.disagreements(), "pods and allocations to agree", QUIET_S)
        for job in self.staying:
            self._ask("POST", f"/v1/jobs/{job}/cancel", {})
        with self.site.sql() as sql:
            self._until(
                lambda: sql.value("select count(*) from odc.running") == 0, "all to end", QUIET_S
            )
        self._until(lambda: not self.members.pods(), "all pods to go", QUIET_S)

    def _ask(self, method: str, path: str, body: object) -> Any:
        for daemon in self.daemons:
            try:
                return daemon.call(method, path, self.token, body)
            except (OSError, http.client.HTTPException):
                continue
        raise AssertionError(f"no daemon answers {path}{self.log()}")

    # -- what must be true ----------------------------------------------------------------------

    def disagreements(self) -> set[tuple[int, int, int, str]]:
        """Allocations without a live pod, and live pods without an allocation."""
        with self.site.sql() as sql:
            rows = sql.rows(
                "select a.job_id, r.attempt, a.rank, n.name from odc.allocation as a "
                "join odc.running as r on r.job_id = a.job_id "
                "join odc.node as n on n.id = a.node_id where a.state = 'running'"
            )
            unstarted = sql.value("select count(*) from odc.allocation where state = 'starting'")
        if unstarted:
            return {(0, 0, 0, f"{unstarted} allocations are starting")}
        booked = {(r["job_id"], r["attempt"], r["rank"], r["name"]) for r in rows}
        return booked ^ self.members.alive()

    def wrong(self) -> list[str]:
        """All violations; empty when there are none."""
        found = list(self.members.violations)
        with self.site.sql() as sql:
            found += sql.values("select odc.check_books()")
            jobs = {row["id"]: row for row in sql.rows("select * from odc.job")}
            ends = Counter(sql.values("select job_id from odc.event where kind = 'ended'"))
            attempts = sql.rows("select * from odc.attempt order by job_id, attempt")
        expected = self.accepted | self.staying
        found += [
            f"job {job} was created, and no client got its id"
            for job in jobs.keys() - expected.keys()
        ]
        found += [f"job {job} is lost" for job in expected.keys() - jobs.keys()]
        for job in sorted(expected.keys() & jobs.keys()):
            if jobs[job]["state"] is None:
                found.append(f"job {job} has not ended")
            if ends[job] != 1:
                found.append(f"job {job} ended {ends[job]} times")
        excused = {(row["job_id"], row["attempt"]) for row in attempts if self.faults.explain(row)}
        for job, one in sorted(expected.items()):
            row = jobs.get(job)
            if row is None or row["state"] is None:
                continue
            if row["state"] == one.end[0] and one.end[1] in (0, row["exit_code"]):
                continue
            if (job, row["attempt"]) in excused and row["state"] == "NODE_FAIL" and not one.requeue:
                continue
            found.append(
                f"job {job} should have been {one.end}, and was {row['state']} {row['exit_code']} "
                f"signal {row['signal']}: {row['reason']}, {row['end_detail']}"
            )
        for row in attempts:
            if row["requeued"] and (row["job_id"], row["attempt"]) not in excused:
                found.append(
                    f"job {row['job_id']} was requeued, and nothing had happened to its pods: "
                    f"attempt {row['attempt']} on {row['node_names']}, {row['state']}, "
                    f"{row['reason']}, {row['started_at']:%T} to {row['ended_at']:%T}"
                )
        return found

    def summary(self) -> str:
        with self.site.sql() as sql:
            ends = sql.rows(
                "select state, count(*) as jobs from odc.job group by state order by count(*) desc"
            )
            requeued = sql.value("select count(*) from odc.attempt where requeued")
            terms = sql.value("select term from odc.term")
        ended_as = ", ".join(f"{row['jobs']:,} {row['state']}" for row in ends)
        gangs = sum(one.nodes > 1 for one in self.accepted.values())
        return (
            f"- jobs: {len(self.accepted):,}, of them {gangs:,} gangs, and {STAYING} that never "
            "end; "
            f"ended as {ended_as}; {requeued:,} attempts requeued\n"
            f"- pods: {self.members.summary()}\n"
            f"- faults: {self.faults.summary()}; {terms} terms of leadership; {self.repeated} "
            f"requests without an answer, sent again\n"
            f"- took {self.took_s:,.0f} s; {self.members.rate():.1f} pods started per second\n"
            f"{self.phases}"
        )
