"""Conditions that must be true after all faults are over. Each check returns the violations."""

from __future__ import annotations

import http.client
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from itertools import pairwise

from tests.support.harness.daemon import Odc
from tests.support.harness.database import Sql
from tests.support.harness.nemesis.clients import Submission
from tests.support.harness.nemesis.ledger import Ledger
from tests.support.harness.nemesis.pair import GPUS, Pair

SLACK_S = 0.05
"""/proc/uptime counts hundredths, and a job reads it before it writes."""
PENDING_CANCEL = {"cancelled", "cancelled,ended"}

WRITES = """
    select n, what, term, job_id, attempt, node_id, mask, host(client) as client,
           pg_xact_commit_timestamp(xid::xid) as committed
      from nemesis.write order by committed, n
"""
TERMS = """
    select (detail ->> 'term')::bigint as term, actor as holder,
           pg_xact_commit_timestamp(xid::xid) as committed
      from odc.event where kind = 'leader' order by committed
"""
JOBS = """
    select j.id, coalesce(j.array_job_id, j.id) as top, j.name, j.state::text, j.array_tasks,
           j.exit_code, j.attempt, j.node_names
      from odc.job as j order by j.id
"""

COUNTED_S = 60.0


def check_leaders(sql: Sql, pair: Pair) -> list[str]:
    """Everything that only a leader may write was written by the holder of the term at its
    commit."""
    found: list[str] = []
    terms = sql.rows(TERMS)
    for one, next_ in pairwise(terms):
        if next_["term"] != one["term"] + 1:
            found.append(f"term {one['term']} was followed by {next_['term']}")
    at = -1
    for write in sql.rows(WRITES):
        if write["what"] == "end":
            continue  # a client's cancel ends pending jobs too
        while at + 1 < len(terms) and terms[at + 1]["committed"] <= write["committed"]:
            at += 1
        owner = pair.of_holder(terms[at]["holder"]) if at >= 0 else None
        if owner is None or owner.link.address != write["client"]:
            found.append(f"{_of(write)} was written by {write['client']} when "
                         f"{terms[at] if at >= 0 else None} led")  # fmt: skip
        if write["what"] == "pass" and write["term"] != terms[at]["term"]:
            found.append(f"a pass of term {write['term']} was committed in {terms[at]}")
    return found


def check_allocations(sql: Sql) -> list[str]:
    """In the order of commits no GPU is allocated twice, and each is released."""
    found: list[str] = []
    taken: dict[int, dict[int, int]] = defaultdict(dict)
    for write in sql.rows(WRITES):
        for gpu in range(GPUS):
            if not (write["mask"] or 0) & 1 << gpu:
                continue
            node, job_id = taken[write["node_id"]], write["job_id"]
            if write["what"] == "allocate":
                if gpu in node:
                    found.append(f"GPU {gpu} of node {write['node_id']} was allocated to job "
                                 f"{job_id} while job {node[gpu]} had it")  # fmt: skip
                node[gpu] = job_id
            elif node.pop(gpu, None) != job_id:
                found.append(f"{_of(write)} gave back GPU {gpu}, which it did not have")
    found += [f"node {node} still has {left}" for node, left in taken.items() if left]
    return found


def check_books(sql: Sql) -> list[str]:
    return sql.values("select * from odc.check_books()")


def check_counters(sql: Sql, submissions: Iterable[Submission], pair: Pair) -> list[str]:
    """Counters for Prometheus count everything once, even if daemons were killed meanwhile."""
    tasks = sum(one.tasks for one in submissions if one.id is not None)
    [attempts] = sql.values("select count(*) from odc.attempt")
    expected = {
        "odcd_jobs_submitted_total": tasks, "odcd_jobs_finished_total": tasks,
        "odcd_jobs_started_total": attempts, "odcd_job_requeues_total": 0,
    }  # fmt: skip
    found: list[dict[str, int]] = []
    deadline = time.monotonic() + COUNTED_S
    while time.monotonic() < deadline:
        # Only the leader has them.
        found = [counters(daemon.odc, expected) for daemon in pair.daemons]
        if expected in found:
            return []
        time.sleep(0.5)
    return [f"the counters are {found} instead of {expected}"]


def counters(odc: Odc, names: Iterable[str]) -> dict[str, int]:
    """Of the cluster, summed over their labels."""
    text = ""
    with suppress(OSError, http.client.HTTPException), odc.asking("GET", "/metrics") as connection:
        text = connection.getresponse().read().decode()
    counted: Counter[str] = Counter()
    for name, value in re.findall(r"^(odcd_job\w+_total)(?:{.*})? (\S+)$", text, re.M):
        counted[name] += int(float(value))
    return {name: counted[name] for name in names}


def check_accepted(sql: Sql, submissions: Iterable[Submission], ledger: Ledger) -> list[str]:
    """Each accepted request created its jobs once, and each of them ended once, as expected."""
    found: list[str] = []
    ends = Counter(w["job_id"] for w in sql.rows(WRITES) if w["what"] == "end")
    by_name: dict[str, list[dict[str, object]]] = defaultdict(list)
    for job in sql.rows(JOBS):
        by_name[job["name"]].append(job)
    for one in submissions:
        jobs = by_name.pop(one.name, [])
        if one.id is None:
            found.append(f"{one.name} was never answered and made {len(jobs)} jobs")
            continue
        if {job["top"] for job in jobs} != {one.id}:
            found.append(f"{one.name} is {one.id}, and made {[job['id'] for job in jobs]}")
        tasks = sum(_task_count(job) for job in jobs)
        if tasks != one.tasks:
            found.append(f"{one.name} has {tasks} tasks instead of {one.tasks}: {jobs}")
        for job in jobs:
            found += _check_job(job, one, ends[job["id"]], ledger)
    found += [f"no client submitted {name}: {jobs}" for name, jobs in by_name.items()]
    return found


def _task_count(job: dict[str, object]) -> int:
    """An element or a job is one. A range of tasks cancelled before their start is many. The row of
    an array whose tasks all became elements is none."""
    text = job["array_tasks"]
    if text is None:
        return 1
    count = 0
    for part in filter(None, str(text).partition("%")[0].split(",")):
        span, _, step = part.partition(":")
        low, _, high = span.partition("-")
        count += len(range(int(low), int(high or low) + 1, int(step or 1)))
    return count


def _check_job(job: dict[str, object], one: Submission, ends: int, ledger: Ledger) -> list[str]:
    here = f"job {job['id']} ({one.name}, {job['state']})"
    found: list[str] = []
    if ends != 1:
        found.append(f"{here} ended {ends} times")
    state = "FAILED" if one.exit_code else "COMPLETED"
    if job["state"] != state and not (one.cancelled and job["state"] == "CANCELLED"):
        found.append(f"{here} should have {state}")
    if job["state"] == state and job["exit_code"] != one.exit_code:
        found.append(f"{here} has exit code {job['exit_code']} instead of {one.exit_code}")
    runs = [run for run in ledger.runs.values() if run.key[0] == job["id"]]
    # No runner is killed, so nothing that was started is ever lost.
    if job["state"] != "CANCELLED":
        ranks = sorted(run.key[2] for run in runs)
        # Of a gang of which one member failed, others may not have begun.
        if ranks != list(range(one.ranks)) and not (one.exit_code and one.ranks > 1):
            found.append(f"{here} ran ranks {ranks} of {one.ranks}")
    if {run.key[1] for run in runs} - {1}:
        found.append(f"{here} ran more than one attempt: {sorted(run.key for run in runs)}")
    if one.cancelled in PENDING_CANCEL:
        late = [run.start for run in runs if run.start > one.cancelled_at + SLACK_S]
        if late:
            found.append(f"{here} was cancelled at {one.cancelled_at} and started at {late}")
    return found


def check_runs(sql: Sql, submissions: Iterable[Submission], ledger: Ledger) -> list[str]:
    """The jobs that ran are those that ran according to the database: the attempts, their nodes,
    the order of jobs."""
    found: list[str] = []
    attempts = {(row["job_id"], row["attempt"]): row for row in sql.rows(
        "select job_id, attempt, state::text, node_names from odc.attempt"
    )}  # fmt: skip
    for run in ledger.runs.values():
        attempt = attempts.get(run.key[:2])
        if attempt is None:
            found.append(f"{run} ran without an attempt")
        elif attempt["node_names"][run.key[2]] != run.node:
            found.append(f"{run} ran elsewhere than {attempt['node_names']}")
    tops = {row["id"]: row["top"] for row in sql.rows(JOBS)}
    ended: dict[int, float] = defaultdict(float)
    began: dict[int, float] = {}
    for run in ledger.runs.values():
        top = tops.get(run.key[0], run.key[0])
        ended[top] = max(ended[top], run.end or 0.0)
        began[top] = min(began.get(top, run.start), run.start)
    for one in submissions:
        for before in one.after:
            if one.id in began and began[one.id] + SLACK_S < ended[before]:
                found.append(f"job {one.id} began at {began[one.id]}, before the end of job "
                             f"{before} at {ended[before]}")  # fmt: skip
    return found


def check_times(sql: Sql) -> list[str]:
    """Commit times are PostgreSQL's; they order the record, so they must be there."""
    missing: list[datetime | None] = sql.values(
        "select n from nemesis.write where pg_xact_commit_timestamp(xid::xid) is null"
    )
    return [f"write {n} has no commit time" for n in missing]


def _of(write: dict[str, object]) -> str:
    return f"{write['what']} {write['n']} of job {write['job_id']}"
