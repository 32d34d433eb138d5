"""The rules of preemption, checked pass by pass from outside, by reading the hot tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.support.harness.audit import Use, audit
from tests.support.harness.database import Sql

MARGIN = timedelta(minutes=2)
SECOND = timedelta(seconds=1)

Rows = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class Moment:
    """The hot tables before a pass."""

    now: datetime
    event_id: int
    running: Rows
    pending: Rows
    planned: Rows


@dataclass(frozen=True)
class Claim:
    due: datetime
    nodes: frozenset[int]
    troubles: int
    """Number of changes to the cluster or to jobs before it was taken."""


@dataclass
class Preemptions:
    sql: Sql
    troubles: int = 0
    """How often something changed on which a plan depends: nodes, bookings, limits, jobs,
    policies."""
    claims: dict[int, Claim] = field(default_factory=dict[int, Claim])
    dropped: bool = False
    """The last pass dropped a claim."""
    seen: set[int] = field(default_factory=set[int])

    def look(self, now: datetime) -> Moment:
        return Moment(
            now,
            self.sql.value("select coalesce(max(id), 0) from odc.event"),
            self._by_job("odc.running"),
            self._by_job("odc.pending"),
            self._by_job("odc.planned"),
        )

    def _by_job(self, table: str) -> Rows:
        return {row["job_id"]: row for row in self.sql.rows(f"select * from {table}")}

    def check(self, before: Moment, started: list[int], quiet: bool) -> None:
        """quiet: since the last pass, only time passed and jobs were submitted or ended."""
        after = self.look(before.now)
        self._starts(before, started)
        self._victims(before, after)
        # A job that loses its claim waits like others, and others may lose their protection to it.
        quiet, self.dropped = quiet and not self.dropped, False
        self._claims(before, after, started)
        self._slips(before, after, started, quiet)

    # -- the preemptor starts on what was freed for it -------------------------------------------

    def _starts(self, before: Moment, started: list[int]) -> None:
        for job in started:
            claim = before.pending.get(job, {}).get("claim_nodes")
            if claim is not None and self.claims[job].troubles == self.troubles:
                held = self.sql.values("select node_id from odc.allocation where job_id = $1", job)
                assert set(held) == set(claim), f"{job} starts on {held}, and claimed {claim}"

    def _claims(self, before: Moment, after: Moment, started: list[int]) -> None:
        now = before.now
        for job, claim in self.claims.copy().items():
            waits = after.pending.get(job)
            if waits is None or waits["claim_nodes"] is None:
                del self.claims[job]
                gone = job not in started and waits is not None and waits["ready"]
                self.dropped |= waits is not None
                assert not gone or self._excused(claim, now), f"{job} lost its claim: {claim}"
            elif waits["ready"]:
                assert claim.due >= now or self._excused(claim, now), f"{job} waits: {claim}"
                at = after.planned.get(job, {}).get("planned_start_at")
                late = at is None or at > max(claim.due, now + SECOND)
                assert not late or self._excused(claim, now), f"{job} is planned at {at}: {claim}"
        for job, waits in after.pending.items():
            if waits["claim_nodes"] is not None and job not in self.claims:
                due = waits["claim_ends_at"] - MARGIN
                self.claims[job] = Claim(due, frozenset(waits["claim_nodes"]), self.troubles)

    def _excused(self, claim: Claim, now: datetime) -> bool:
        """Something changed, or a victim does not end although its time is over."""
        return claim.troubles != self.troubles or self.sql.value(
            "select exists (select from odc.allocation where node_id = any ($1) and ends_at <= $2)",
            list(claim.nodes), now,
        )  # fmt: skip

    # -- whom it ends -----------------------------------------------------------------------------

    def _victims(self, before: Moment, after: Moment) -> None:
        now = before.now
        qos = {row["id"]: row for row in self.sql.rows("select * from odc.qos")}
        fresh = [
            row for job, row in after.running.items()
            if row["intent"] == "preempt" and before.running[job]["intent"] is None
        ]  # fmt: skip
        self.seen |= {row["job_id"] for row in fresh}
        for victim in fresh:
            kind = qos[victim["qos_id"]]
            preemptor = after.pending[victim["preempted_by"]]
            assert kind["id"] in qos[preemptor["qos_id"]]["preempts"]
            ran = now - (victim["running_at"] or now)
            assert ran >= timedelta(seconds=kind["exempt_s"]), f"{ran} of {kind['exempt_s']} s"
            assert victim["kill_at"] == now + timedelta(seconds=kind["grace_s"])
            assert victim["ends_at"] > victim["kill_at"], "it would have ended as soon by itself"
            self._cost_is_told(victim, now)
            at = preemptor["claim_ends_at"] - MARGIN
            # A task that got its own row for this is planned with it from the next pass on.
            row = after.planned.get(preemptor["job_id"]) or after.planned[preemptor["array_job_id"]]
            assert at == row["planned_start_at"]
            assert at >= victim["kill_at"]
            self._is_needed(victim, preemptor, at, now)

    def _cost_is_told(self, victim: dict[str, Any], now: datetime) -> None:
        since = max(victim["started_at"], victim["checkpoint_at"] or victim["started_at"])
        held = self.sql.row(
            "select sum(gpus) as gpus, sum(cpus) as cpus, count(*) as members, "
            "count(distinct ends_at) as ends from odc.allocation where job_id = $1",
            victim["job_id"],
        )
        assert (held["members"], held["ends"]) == (victim["node_count"], 1), "a gang goes whole"
        cost = int((now - since) * (held["gpus"] or held["cpus"]) / SECOND)
        preemption = json.loads(victim["preemption"])
        assert preemption["lost_gpu_s" if held["gpus"] else "lost_cpu_s"] == cost, preemption
        assert preemption["by"] == victim["preempted_by"]

    def _is_needed(
        self, victim: dict[str, Any], preemptor: dict[str, Any], at: datetime, now: datetime
    ) -> None:
        """Would it go on to run, the preemptor could not start, beside all that is planned."""
        plan = audit(self.sql, now)
        end = None if victim["ends_at"].year > 9000 else (victim["ends_at"] - now) / SECOND
        for node in plan.nodes:
            node.uses = [
                Use(u.start, end, u.amounts, u.job_id, u.running)
                if u.job_id == victim["job_id"] else u
                for u in node.uses
            ]  # fmt: skip
        job, second = plan.waiting[preemptor["job_id"]], (at - now) / SECOND
        own = {preemptor["job_id"], preemptor["array_job_id"]}
        assert not plan.could_start(job, second, own), f"{victim['job_id']} ends for nothing"

    # -- planned starts ---------------------------------------------------------------------------

    def _slips(self, before: Moment, after: Moment, started: list[int], quiet: bool) -> None:
        """Each delay of a planned start is an event with its cause. If nothing was changed and the
        policy is fifo, the cause is not a job that was submitted later."""
        events = {
            row["job_id"]: json.loads(row["detail"])
            for row in self.sql.rows(
                "select job_id, detail from odc.event where kind = 'slipped' and id > $1",
                before.event_id,
            )
        }
        fifo = self.sql.value("select bool_and(policy = 'fifo') from odc.partition")
        overdue = self.sql.value(
            "select exists (select from odc.allocation where ends_at <= $1)", before.now
        )
        deep = self.sql.value("select plan_depth > 1 from odc.policy where name = 'fifo'")
        for job, row in before.planned.items():
            was, waits = row["planned_start_at"], after.pending.get(job)
            if was is None or was <= before.now or waits is None or not waits["ready"]:
                continue
            at = after.planned.get(job, {}).get("planned_start_at")
            if at is not None and at <= was + SECOND:
                continue
            if any(after.running[j]["array_job_id"] == job for j in started if j in after.running):
                assert job not in events, "its task started as planned"
                continue
            detail = events[job]
            if quiet and fifo and detail["cause"] in ("overtaken", "order"):
                by = detail.get("job_id")
                other = before.pending.get(by) or after.running.get(by)
                if other is None:
                    # It waits for a job that waits for one that should have ended.
                    assert overdue, f"{job}: {detail}"
                    assert detail["cause"] == "order"
                    continue
                # With several planned starts all tasks of an array go by that of the first.
                task = deep and other["array_job_id"] is not None
                assert task or _place(other) <= _place(waits), f"{job}: {detail}"


def _place(job: dict[str, Any]) -> tuple[int, datetime, int]:
    """In submission order; a task of an array has the array's place."""
    return job["nice"], job["queued_at"], job["array_job_id"] or job["job_id"]
