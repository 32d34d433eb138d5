"""Clients that submit while parts of odc are killed, and what must be true afterwards.

One seed makes all choices; what they meet is up to the machine.
"""

from __future__ import annotations

import http.client
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from odcd.home.lock import holder
from tests.support.harness.daemon import Odc, gone, kill, wait

CLUSTER = ("--node", "n[1-3]=h100:4x16")
REST_S = 150.0
"""The longest until everything that was accepted has ended, after the last kill."""
LINES = 20
SCRIPT = f"""#!/bin/sh
echo "$ODC_JOB_ID $ODC_ATTEMPT $ODC_RANK" >> runs
i=0
while [ $i -lt {LINES} ]; do echo "line $i of $ODC_JOB_ID"; i=$((i+1)); done
sleep "$1"
echo "end $ODC_JOB_ID"
exit "$2"
"""


@dataclass(slots=True)
class Accepted:
    """A job that odc reported as accepted, and its expected outcome."""

    tasks: int = 1
    ranks: int = 1
    exit_code: int = 0
    requeue: bool = True


@dataclass
class Storm:
    odc: Odc
    seed: int
    jobs: int
    """The number of requests of each client."""
    clients: int = 3
    shims: bool = False
    """Also kill the shims that watch single jobs: their exits are lost, which nothing can
    recover."""
    accepted: dict[int, Accepted] = field(default_factory=dict)
    killed: Counter[str] = field(default_factory=Counter)
    lost_answers: int = 0

    def run(self) -> None:
        over = threading.Event()
        with ThreadPoolExecutor(self.clients + 2) as pool:
            operator = pool.submit(self._operate, over)
            prometheus = pool.submit(self._scrape, over)
            clients = [pool.submit(self._submit, number) for number in range(self.clients)]
            try:
                self._kill_parts(lambda: operator.done() or all(c.done() for c in clients))
            finally:
                over.set()
                for future in (operator, prometheus, *clients):
                    future.result()
        self._come_to_rest()

    # -- what goes wrong ----------------------------------------------------------------------

    def _kill_parts(self, done: Callable[[], bool]) -> None:
        chance = random.Random(f"{self.seed}/kills")
        parts: dict[str, Callable[[], object]] = {
            "daemon": lambda: kill(holder(self.odc.home / "odcd.lock")),
            "runner": lambda: kill(self.odc.runner_pid),
            "postgres": lambda: kill(self.odc.postmaster_pid),
        }
        if self.shims:
            parts["shim"] = lambda: [kill(p) for p in self.odc.shim_pids() if chance.random() < 0.3]
        while not done():
            self._let_it_work(chance, done)
            for part in chance.sample(sorted(parts), chance.choice([1, 1, 1, 2])):
                if parts[part]():
                    self.killed[part] += 1

    def _let_it_work(self, chance: random.Random, done: Callable[[], bool]) -> None:
        """Until it accepted some more jobs, because a machine may be slow. Sometimes not at all."""
        time.sleep(chance.uniform(0, 0.5))
        if chance.random() < 0.2:
            return
        target = len(self.accepted) + chance.randint(1, 8)
        while len(self.accepted) < target and not done():
            time.sleep(0.02)

    def _operate(self, over: threading.Event) -> None:
        """Restart the daemon whenever it has exited."""
        refused = 0
        while not over.wait(0.2):
            if holder(self.odc.home / "odcd.lock") is not None:
                continue
            done = self.odc.odcd("up", "--detach", *CLUSTER, check=False)
            # It may be killed, or its database, while it starts.
            refused = refused + 1 if done.returncode else 0
            assert refused < 10, done.stderr + self.odc.log()

    def _scrape(self, over: threading.Event) -> None:
        """Its counters continue between the kills."""
        while not over.wait(0.3):
            with suppress(OSError, http.client.HTTPException):
                self.counters()

    def counters(self) -> Counter[str]:
        """Of the cluster, summed over their labels. Raises OSError, HTTPException."""
        with self.odc.asking("GET", "/metrics") as connection:
            text = connection.getresponse().read().decode()
        found: Counter[str] = Counter()
        for name, value in re.findall(r"^(odcd_job\w+_total)(?:{.*})? (\S+)$", text, re.M):
            found[name] += int(float(value))
        return found

    # -- clients ------------------------------------------------------------------------------

    def _submit(self, number: int) -> None:
        chance = random.Random(f"{self.seed}/client {number}")
        for count in range(self.jobs):
            time.sleep(chance.uniform(0, 0.1))
            if number == 0 and count % 8 == 0:
                self._submit_by_command(chance)
                continue
            path, body, expected = self._a_request(chance)
            key = f"{self.seed}-{number}-{count}"
            ids = self._send(chance, path, body, key)
            if chance.random() < 0.1:
                again = self._send(chance, path, body, key)
                assert again == ids, f"one key, two answers: {ids}, {again}"
            assert len(ids) == len(expected)
            assert not self.accepted.keys() & set(ids), f"given twice: {ids}"
            self.accepted.update(zip(ids, expected, strict=True))

    def _a_request(self, chance: random.Random) -> tuple[str, dict[str, Any], list[Accepted]]:
        kind = chance.choice(["job", "job", "job", "array", "gang", "batch"])
        expected = Accepted(
            exit_code=chance.choice([0, 0, 0, 7]),
            requeue=chance.random() < 0.6,
            ranks=2 if kind == "gang" else 1,
            tasks=4 if kind == "array" else 1,
        )
        job: dict[str, Any] = {
            "script": SCRIPT,
            "work_dir": str(self.odc.work),
            "args": [f"{chance.uniform(0, 0.8):.2f}", str(expected.exit_code)],
            "stdout": "out/%j.%t",
            "gpus_per_node": chance.choice([1, 1, 2]),
            "node_count": expected.ranks,
            "launch": "all",
            "requeue": expected.requeue,
            "time_limit_s": 600,
        }
        if kind == "array":
            job["array"] = chance.choice(["0-3", "1-7:2%2"])
        if kind == "batch":
            return "/v1/jobs/batch", {"jobs": [job] * 5}, [expected] * 5
        return "/v1/jobs", job, [expected]

    def _send(self, chance: random.Random, path: str, body: dict[str, Any], key: str) -> list[int]:
        """As a careful client: the same request under one key until an answer arrives."""
        deadline = time.monotonic() + 120
        while True:
            assert time.monotonic() < deadline, f"no answer for {key}{self.odc.log()}"
            try:
                if chance.random() < 0.05:
                    with self.odc.asking("POST", path, body, key=key):
                        self.lost_answers += 1
                status, answer = self.odc.request("POST", path, body, key=key)
            except (OSError, http.client.HTTPException):
                self.lost_answers += 1
                time.sleep(0.1)
                continue
            if status == 201:
                return answer.get("ids") or [answer["id"]]
            assert status == 503, answer
            assert answer["hint"], answer
            time.sleep(0.1)

    def _submit_by_command(self, chance: random.Random) -> None:
        argv = ["submit", "--parsable", "-o", "out/%j.%t", "--gpus-per-node", "1", "-"]
        (self.odc.work / "job.sh").write_text(SCRIPT)
        argv[-1:] = ["job.sh", f"{chance.uniform(0, 0.5):.2f}", "0"]
        for _ in range(100):
            done = self.odc.odcctl(*argv, check=False)
            if done.returncode == 0:
                self.accepted[int(done.stdout)] = Accepted()
                return
            # The daemon was not reached at all; every other failure is a defect.
            assert done.returncode == 3, done.stderr
            time.sleep(0.2)
        raise AssertionError("the daemon was never reached")

    # -- afterwards -----------------------------------------------------------------------------

    def _come_to_rest(self) -> None:
        live: object = "unknown"
        deadline = time.monotonic() + REST_S
        while time.monotonic() < deadline:
            if holder(self.odc.home / "odcd.lock") is None:
                self.odc.up(*CLUSTER)
            try:
                status, answer = self.odc.request("GET", "/v1/jobs")
            except (OSError, http.client.HTTPException):
                status, answer = 0, {}
            if status == 200:
                live = answer["jobs"]
                if not live:
                    return
                self._hurry(live)
            time.sleep(0.2)
        raise AssertionError(f"{self.describe()}: not at rest: {live}{self.odc.log()}")

    def _hurry(self, jobs: list[dict[str, Any]]) -> None:
        """A start that the runner's death cut short is tried again after half a minute, or now."""
        for job in jobs:
            if job["reason"] == "JobLaunchFailure":
                self.odc.request("PATCH", f"/v1/jobs/{job['id']}", {"begin_at": None})

    def describe(self) -> str:
        return f"seed {self.seed}, killed {dict(self.killed)}, {len(self.accepted)} accepted"

    def check(self) -> None:
        """Raises AssertionError for the first promise that was broken."""
        description = self.describe()
        assert self.odc.rows("select odc.check_books() as wrong") == [], description
        jobs = self.odc.rows(
            "select id, coalesce(array_job_id, id) as top, array_job_id, state::text, exit_code, "
            "signal, attempt, node_names, end_detail from odc.job where state is not null "
            "and (array_tasks is null) order by id"
        )
        tasks = Counter(job["top"] for job in jobs)
        assert tasks == {i: a.tasks for i, a in self.accepted.items()}, description
        runs = self._runs()
        for job in jobs:
            expected = self.accepted[job["top"]]
            ran = {key: n for key, n in runs.items() if key[0] == job["id"]}
            here = f"{description}: {dict(job)}: {ran}"
            assert all(count == 1 for count in ran.values()), here
            if not expected.requeue:
                assert len({attempt for _, attempt, _ in ran}) <= 1, here
            if job["state"] == "NODE_FAIL":
                assert self.killed["runner"] or self.killed["shim"], here
                continue
            assert job["state"] == ("FAILED" if expected.exit_code else "COMPLETED"), here
            assert job["exit_code"] == expected.exit_code, here
            for rank in range(expected.ranks):
                assert (job["id"], job["attempt"], rank) in ran, here
                # Of a gang that fails, who is not done when the first member fails is ended.
                cut = expected.ranks > 1 and expected.exit_code != 0
                self._check_output(job["id"], rank, here, may_be_cut=cut)
        doubled = set(runs) - {
            (row["job_id"], row["attempt"], rank)
            for row in self.odc.rows("select job_id, attempt from odc.attempt")
            for rank in range(2)
        }
        assert doubled == set(), f"{description}: ran without an attempt"
        self._check_counters(description)

    def _check_counters(self, description: str) -> None:
        """Each thing is counted once, whichever process was killed during the count."""
        [row] = self.odc.rows(
            "select count(*) as attempts, count(*) filter (where requeued) as requeued "
            "from odc.attempt"
        )
        jobs = sum(accepted.tasks for accepted in self.accepted.values())
        expected = {
            "odcd_jobs_submitted_total": jobs, "odcd_jobs_finished_total": jobs,
            "odcd_jobs_started_total": row["attempts"], "odcd_job_requeues_total": row["requeued"],
        }  # fmt: skip

        def counted() -> bool:
            with suppress(OSError, http.client.HTTPException):
                counters = self.counters()
                return {name: counters[name] for name in expected} == expected
            return False

        wait(counted, lambda: f"{description}: {self.counters()} instead of {expected}")

    def _runs(self) -> Counter[tuple[int, int, int]]:
        lines = (self.odc.work / "runs").read_text().splitlines()
        return Counter((int(j), int(a), int(r)) for j, a, r in map(str.split, lines))

    def _check_output(self, job_id: int, rank: int, here: str, *, may_be_cut: bool) -> None:
        lines = (self.odc.work / "out" / f"{job_id}.{rank}").read_text().splitlines()
        whole = [*(f"line {number} of {job_id}" for number in range(LINES)), f"end {job_id}"]
        assert lines == (whole[: len(lines)] if may_be_cut else whole), here


def weather(odc: Odc, storm: Storm) -> None:
    (odc.work / "out").mkdir(exist_ok=True)
    odc.up(*CLUSTER)
    storm.run()
    storm.check()
    pid = odc.pid
    kill(pid)
    wait(lambda: gone(pid), lambda: "the daemon outlives kill -9")
