"""The promises of the queue, under any order of actions of users, executors, nodes and time."""

from __future__ import annotations

import contextlib
import json
import os
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from odcd.errors import LeadershipLost, OdcError
from odcd.slurm.dependencies import parse_dependency
from tests.sql.limits.account.books import a_limit
from tests.sql.limits.booking.desk import Desk
from tests.support.builders.jobs import ALICE, BOB, NOW, ROOT, Queue, a_cluster
from tests.support.harness.audit import audit
from tests.support.harness.database import Sql
from tests.support.harness.depth import deep
from tests.support.harness.preemptions import Preemptions

NODES = ("h100-1", "h100-2", "l4-1")
LIVE = "(select job_id from odc.pending union all select job_id from odc.running)"
FACTS = ("job_id", "attempt", "rank", "kind", "at", "exit_code", "signal", "cause", "detail")
ARRAYS = {"0-3": (0, 1, 2, 3), "1-9:2%2": (1, 3, 5, 7, 9), "7": (7,)}
KINDS = ("after", "afterany", "afterok", "afternotok", "aftercorr", "singleton")
Pick = st.integers(0, 40)

shapes = st.sampled_from(
    [
        {"gpus": 1},
        {"gpus": 2, "gpu_type": "h100"},
        {"gpus": 8, "gpu_type": "h100"},
        {"node_count": 2, "gpus_per_node": 8, "gpu_type": "h100"},
        {"node_count": 2, "gpus_per_node": 1},
        {"ntasks": 8},
        {"gpus": 1, "gpu_type": "l4", "exclusive": True},
    ]
)
full = st.sampled_from(
    [
        {"gpus": 8, "gpu_type": "h100"},
        {"gpus": 4, "gpu_type": "h100"},
        {"gpus": 3, "gpu_type": "h100"},
        {"node_count": 2, "gpus_per_node": 8, "gpu_type": "h100"},
        {"node_count": 2, "gpus_per_node": 4, "gpu_type": "h100"},
        {"gpus": 4, "gpu_type": "l4"},
    ]
)
asks = st.fixed_dictionaries(
    {
        "shape": shapes,
        "who": st.sampled_from([ALICE, ALICE, BOB]),
        "time_limit_s": st.sampled_from([60, 3600, 86_400]),
        "name": st.sampled_from(["train", "eval"]),
        "array": st.sampled_from([None, None, None, *ARRAYS]),
        "dependency": st.sampled_from([None, None, *KINDS]),
        "other": Pick,
        "hold": st.sampled_from([False, False, False, True]),
        "begin_s": st.sampled_from([None, None, None, 30, 4000]),
        "deadline_s": st.sampled_from([None, None, None, None, 100_000]),
        "requeue": st.booleans(),
        "qos": st.sampled_from(
            [None, None, "scavenger", "scavenger", "batch", "urgent", "urgent", "rush"]
        ),
    }
)
ends = st.sampled_from(
    [
        ("exited", 0, None, None),
        ("exited", 0, None, None),
        ("exited", 3, None, None),
        ("exited", None, 9, "oom"),
        ("exited", None, 15, "timeout"),
        ("lost", None, None, "unknown"),
        ("start_failed", None, None, "launch"),
        ("start_failed", None, None, "unknown"),
    ]
)


class Promises(RuleBasedStateMachine):
    sql: Sql

    def __init__(self) -> None:
        super().__init__()
        self.sql.begin()
        self.queue = Queue(self.sql)
        self.term: int = self.sql.value("select term from odc.term")
        self.jobs: dict[int, int] = {}
        """Submitted jobs and arrays, with the number of their tasks."""
        self.arrays: dict[int, tuple[int, ...]] = {}
        self.waits_for: dict[int, str] = {}
        self.begins: dict[int, datetime] = {}
        self.held: set[int] = set()
        self.apart: set[int] = set()
        """Tasks of arrays that got their own row before they started."""
        self.started: set[tuple[int, int]] = set()
        self.ended: dict[int, str] = {}
        self.recorded_facts: list[dict[str, Any]] = []
        self.preemptions = Preemptions(self.sql)
        self.quiet = False
        """Since the last pass, only time passed, and jobs were submitted or ended."""

    def teardown(self) -> None:
        try:
            if self.jobs:
                self.come_to_rest()
        finally:
            self.sql.rollback()

    @initialize(
        first=st.lists(asks, min_size=1, max_size=6),
        busy=st.lists(
            st.tuples(st.sampled_from(["scavenger", "batch", "urgent"]), full), max_size=4
        ),
        hurry=st.lists(st.tuples(st.sampled_from(["urgent", "rush"]), full), max_size=3),
        policy=st.sampled_from(["odc", "fifo", "fifo"]),
    )
    def a_morning(
        self, first: list[dict[str, Any]], busy: list[tuple[str, dict[str, Any]]],
        hurry: list[tuple[str, dict[str, Any]]], policy: str,
    ) -> None:  # fmt: skip
        a_cluster(self.sql, now=self.now, h100=2, l4=1)
        self.make_qos()
        self.sql.execute("update odc.partition set policy = $1", policy)
        for qos, shape in busy:
            job = self.queue.submit(BOB, qos=qos, time_limit_s=86_400, **shape)
            self.jobs[job] = 1
            self.waits_for[job] = ""
        self.members_start()
        for ask in first:
            self.submit(ask)
        self.a_pass()
        for qos, shape in hurry:
            self.queue.move(200)
            self.somebody_is_in_a_hurry(qos, shape, None, 3600)

    def make_qos(self) -> None:
        self.sql.execute(
            "insert into odc.qos (name, grace_s, exempt_s, preempt_mode) values "
            "('scavenger', 60, 0, 'requeue'), ('batch', 10, 600, 'cancel'), "
            "('urgent', 30, 100, 'requeue')"
        )
        self.sql.execute("insert into odc.qos (name, priority) values ('rush', 1000)")
        for name, preempts in (("urgent", "{scavenger,batch}"), ("rush", "{scavenger,urgent}")):
            self.sql.execute(
                "update odc.qos set preempts = array(select id from odc.qos where name = any ($2)) "
                "where name = $1",
                name, preempts.strip("{}").split(","),
            )  # fmt: skip

    def trouble(self) -> None:
        """Change something that a plan relies on."""
        self.quiet = False
        self.preemptions.troubles += 1

    @property
    def now(self) -> datetime:
        return self.queue.now

    def a_job(self, pick: int) -> int:
        return list(self.jobs)[pick % len(self.jobs)]

    # -- users -----------------------------------------------------------------------------------

    @rule(ask=asks)
    def submit(self, ask: dict[str, Any]) -> None:
        kept = ("time_limit_s", "name", "hold", "requeue", "qos")
        fields = {**ask["shape"], **{name: ask[name] for name in kept}}
        array, who = ask["array"], ask["who"]
        if array:
            fields["array"] = array
        if ask["dependency"] == "singleton":
            fields["dependency"] = "singleton"
        elif ask["dependency"] and self.jobs:
            fields["dependency"] = f"{ask['dependency']}:{self.a_job(ask['other'])}"
        if ask["begin_s"]:
            fields["begin_at"] = self.now + timedelta(seconds=ask["begin_s"])
        if ask["deadline_s"]:
            fields["deadline_at"] = self.now + timedelta(seconds=ask["deadline_s"])
        job = self.queue.submit(who, **fields)
        self.jobs[job] = 1
        if array:
            self.arrays[job] = ARRAYS[array]
            self.jobs[job] = len(self.arrays[job])
        self.waits_for[job] = fields.get("dependency", "")
        if ask["begin_s"]:
            self.begins[job] = fields["begin_at"]
        if ask["hold"]:
            self.held.add(job)

    @rule(
        qos=st.sampled_from(["urgent", "urgent", "rush"]), shape=full,
        array=st.sampled_from([None, None, "0-3"]), limit_s=st.sampled_from([60, 3600, 86_400]),
    )  # fmt: skip
    def somebody_is_in_a_hurry(
        self, qos: str, shape: dict[str, Any], array: str | None, limit_s: int
    ) -> None:
        self.submit({
            "shape": shape, "who": ALICE, "time_limit_s": limit_s, "name": "eval", "array": array,
            "dependency": None, "hold": False, "begin_s": None, "deadline_s": None,
            "requeue": True, "qos": qos,
        })  # fmt: skip
        self.a_pass()

    @precondition(lambda self: self.jobs)
    @rule(pick=Pick, tasks=st.sampled_from([None, None, "{[1,3)}", "{[7,8)}"]))
    def cancel(self, pick: int, tasks: str | None) -> None:
        self.trouble()
        self.queue.cancel(self.named(pick, tasks), who=ROOT)

    @precondition(lambda self: self.jobs)
    @rule(pick=Pick, tasks=st.sampled_from([None, None, "{[1,3)}"]))
    def hold(self, pick: int, tasks: str | None) -> None:
        self.trouble()
        answers = self.queue.hold(self.named(pick, tasks), who=ROOT)
        self.apart |= answers.keys()
        self.held |= {job for job, outcome in answers.items() if outcome == "held"}

    @precondition(lambda self: self.jobs)
    @rule(pick=Pick, tasks=st.sampled_from([None, None, None, "{[1,4)}"]))
    def release(self, pick: int, tasks: str | None) -> None:
        self.trouble()
        answers = self.queue.release(self.named(pick, tasks), who=ROOT)
        self.apart |= answers.keys()
        self.held -= {job for job, outcome in answers.items() if outcome == "released"}

    @precondition(lambda self: self.jobs)
    @rule(pick=Pick, hold=st.booleans())
    def requeue(self, pick: int, hold: bool) -> None:
        self.queue.requeue(self.a_job(pick), hold=hold, who=ROOT)

    @precondition(lambda self: self.started)
    @rule(pick=Pick)
    def checkpoint(self, pick: int) -> None:
        self.queue.change("checkpoint", self.a_job(pick), who=ROOT)

    @precondition(lambda self: self.jobs)
    @rule(
        pick=Pick,
        other=Pick,
        what=st.sampled_from(["limit", "nice", "name", "throttle", "dependency", "begin", "never"]),
    )
    def update(self, pick: int, other: int, what: str) -> None:
        job, other = self.a_job(pick), self.a_job(other)
        self.trouble()
        begin_at = self.now + timedelta(seconds=600)
        changes: dict[str, Any] = {
            "limit": {"time_limit_s": 120},
            "nice": {"nice": 50},
            "name": {"name": "other"},
            "throttle": {"array_throttle": 1},
            "dependency": {"dependency": f"afterany:{other}"},
            "begin": {"begin_at": begin_at.isoformat()},
            "never": {"dependency": None},
        }[what]
        if what == "never" or (what == "dependency" and other < job):
            answers = self.queue.update(job, changes=changes, who=ROOT)
            if answers.get(job) == "updated":
                self.waits_for[job] = changes["dependency"] or ""
        elif what == "begin":
            for changed, outcome in self.queue.update(job, changes=changes, who=ROOT).items():
                if outcome == "updated":
                    self.begins[changed] = begin_at
        elif what != "dependency":
            self.queue.update(job, changes=changes, who=ROOT)

    def named(self, pick: int, tasks: str | None) -> int | tuple[int, str]:
        job = self.a_job(pick)
        return (job, tasks) if tasks and self.jobs[job] > 1 else job

    # -- the leader ------------------------------------------------------------------------------

    @rule()
    def a_pass(self) -> None:
        """And another pass for as long as the pass requests it."""
        for _ in range(10):
            before = self.world()
            moment = self.preemptions.look(self.now)
            ready = {job for job, row in moment.pending.items() if row["ready"]}
            row = self.sql.row(
                "select started, more from odc.plan_pass($1, $2)", self.term, self.now
            )
            self.look_at_starts(row["started"], before)
            self.preemptions.check(moment, row["started"], self.quiet)
            self.quiet = True
            if not row["more"]:
                break
        else:
            raise AssertionError("no pass is the last")
        audit(self.sql, self.now).check(ready)

    def look_at_starts(self, started: list[int], before: list[dict[str, Any]]) -> None:
        for row in self.sql.rows(
            "select r.job_id, r.attempt, j.array_job_id, j.array_task_id, j.uid, j.name "
            "from odc.running as r "
            "join odc.job as j on j.id = r.job_id where r.job_id = any ($1) order by r.job_id",
            started,
        ):
            attempt = row["job_id"], row["attempt"]
            assert attempt not in self.started, f"started twice: {attempt}"
            self.started.add(attempt)
            top = row["array_job_id"] or row["job_id"]
            own = row["job_id"] if row["job_id"] in self.apart else top
            if row["attempt"] == 1:
                begin_at = self.begins.get(own) or self.begins.get(top, NOW)
                assert begin_at <= self.now, f"too early: {row}"
                assert own not in self.held, f"held: {row}"
                assert self.may_start(row, top, before), f"{self.waits_for[top]}: {row}"

    @rule(
        policy=st.sampled_from(["fifo", "sjf", "saf", "wfp3", "odc", "multifactor"]),
        backfill=st.sampled_from(["order", "order", "fifo", "sjbf", "safbf"]),
        depth=st.sampled_from([0, 1, 1, 2, 100]),
        max_wait_s=st.sampled_from([None, None, 3600]),
        placement=st.sampled_from(["pack", "pack", "spread"]),
    )
    def the_policy_changes(
        self, policy: str, backfill: str, depth: int, max_wait_s: int | None, placement: str
    ) -> None:
        self.trouble()
        self.sql.execute(
            "update odc.policy set backfill = $2, plan_depth = $3, max_wait_s = $4 where name = $1",
            policy, backfill, depth, max_wait_s,
        )  # fmt: skip
        self.sql.execute("update odc.partition set policy = $1, placement = $2", policy, placement)

    @rule(
        scope=st.sampled_from(["qos", "account"]), per=st.sampled_from(["user", "group"]),
        limit=st.sampled_from([("jobs", 1), ("jobs", 2), ("gpus", 16), ("nodes", 2), None]),
    )  # fmt: skip
    def a_limit_changes(self, scope: str, per: str, limit: tuple[str, int] | None) -> None:
        """Limits that are never so low that a submit is refused."""
        self.trouble()
        if limit is None:
            self.sql.execute("delete from odc.resource_limit")
        elif (scope, per) != ("account", "user"):
            a_limit(self.sql, scope, 1, per, *limit)

    @rule(
        node=st.sampled_from(NODES), begins_s=st.sampled_from([60, 3000, 50_000]),
        lasts_s=st.sampled_from([60, 4000]), maintenance=st.booleans(),
    )  # fmt: skip
    def nodes_are_booked(self, node: str, begins_s: int, lasts_s: int, maintenance: bool) -> None:
        desk = Desk(self.queue)
        self.trouble()
        with contextlib.suppress(OdcError):
            desk.create(
                f"b{len(self.arrays)}-{self.now:%j%H%M%S}", starts_at=desk.at(begins_s),
                duration_s=lasts_s, node_list=[node],
                **({"kind": "maintenance", "ignore_running": True} if maintenance else {}),
            )  # fmt: skip

    def world(self) -> list[dict[str, Any]]:
        """All rows of jobs; state: null until the job ends; begun: it waits for no first start."""
        return self.sql.rows(
            """
            select coalesce(j.array_job_id, j.id) as top, j.array_task_id as task, j.uid, j.name,
                   j.state::text, p.job_id is null or p.attempt > 1 as begun
              from odc.job as j left join odc.pending as p on p.job_id = j.id
            """
        )

    def may_start(self, row: dict[str, Any], top: int, before: list[dict[str, Any]]) -> bool:
        if not self.waits_for[top]:
            return True
        [term] = parse_dependency(self.waits_for[top]).terms
        if term.kind == "singleton":
            # A renamed job got its name later.
            return row["name"] == "other" or not any(
                r["state"] is None and r["top"] < top
                and (r["uid"], r["name"]) == (row["uid"], row["name"])
                for r in before
            )  # fmt: skip
        target = [r for r in before if r["top"] == term.target_id]
        if term.kind == "aftercorr" and {top, term.target_id} <= self.arrays.keys():
            task = row["array_task_id"]
            if task not in self.arrays[term.target_id]:
                return True
            return [r["state"] for r in target if r["task"] == task] == ["COMPLETED"]
        ended = all(r["state"] is not None for r in target)
        ok = all(r["state"] == "COMPLETED" for r in target)
        return {
            "after": all(r["begun"] for r in target), "afterany": ended, "afterok": ended and ok,
            "aftercorr": ended and ok, "afternotok": ended and not ok,
        }[term.kind]  # fmt: skip

    @rule()
    def sweep(self) -> None:
        self.sql.value("select odc.sweep($1, $2)", self.term, self.now)

    @rule(seconds=st.sampled_from([1, 60, 600, 5000, 90_000]))
    def time_passes(self, seconds: int) -> None:
        self.queue.move(seconds)
        self.a_pass()

    @rule(seconds=st.sampled_from([100, 4000, 90_000]))
    def time_passes_and_limits_are_kept(self, seconds: int) -> None:
        """Executors end every job that exceeds its limit or its grace, to the second."""
        until = self.now + timedelta(seconds=seconds)
        for _ in range(20):
            self.sql.rows("select odc.take_stops($1, $2)", self.term, self.now)
            next_at = self.sql.value("select min(ends_at) from odc.allocation")
            if next_at is None or next_at > until:
                break
            self.queue.move(max(0.0, (next_at - self.now).total_seconds()))
            self.record([
                self.a_fact(m["job_id"], m["attempt"], m["rank"], "exited", None, 15, "timeout")
                for m in self.members() if m["ends_at"] <= self.now
            ])  # fmt: skip
            self.a_pass()
        else:
            return
        self.queue.move((until - self.now).total_seconds())
        self.a_pass()

    @rule()
    def another_leads(self) -> None:
        """And every call of the old leader is refused."""
        old = self.term
        row = self.sql.row("select term, beat from odc.term")
        self.term = self.sql.value(
            "select odc.take_term($1, $2, 'other', 'host', $3)", row["term"], row["beat"], self.now
        )
        before = self.fingerprint()
        for call, *arguments in (
            ("odc.plan_pass($1, $2)", old, self.now),
            ("odc.sweep($1, $2)", old, self.now),
            ("odc.take_stops($1, $2)", old, self.now),
            ("odc.moved_ends($1)", old),
            ("odc.beat_term($1)", old),
            ("odc.live_members($1)", old),
        ):
            with pytest.raises(LeadershipLost):
                self.sql.rows(f"select {call}", *arguments)
        with pytest.raises(LeadershipLost):
            self.record([self.a_fact(1, 1, 0, "lost")], old)
        assert self.fingerprint() == before

    def fingerprint(self) -> str:
        return self.sql.value(
            "select md5(string_agg(t, ',' order by t)) from ("
            "select p::text as t from odc.pending p union all select r::text from odc.running r "
            "union all select a::text from odc.allocation a "
            "union all select j::text from odc.job j) as x"
        )

    # -- executors -------------------------------------------------------------------------------

    def members(self) -> list[dict[str, Any]]:
        return self.sql.rows(
            "select r.job_id, r.attempt, a.rank, a.ends_at, a.state::text from odc.running as r "
            "join odc.allocation as a using (job_id) where a.state <> 'ended' order by 1, 3"
        )

    def a_fact(
        self, job_id: int, attempt: int, rank: int, kind: str, exit_code: int | None = None,
        signal: int | None = None, cause: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        values = (job_id, attempt, rank, kind, self.now, exit_code, signal, cause, None)
        return dict(zip(FACTS, values, strict=True))

    def record(self, facts: list[dict[str, Any]], term: int | None = None) -> None:
        self.sql.rows(
            "select odc.record_facts($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            self.term if term is None else term,
            *([fact[name] for fact in facts] for name in FACTS),
            self.now,
        )
        self.recorded_facts += facts

    @rule()
    def members_start(self) -> None:
        self.a_pass()
        self.record([
            self.a_fact(m["job_id"], m["attempt"], m["rank"], "started")
            for m in self.members() if m["state"] == "starting"
        ])  # fmt: skip

    @precondition(lambda self: self.started)
    @rule(pick=Pick, end=ends)
    def a_member_ends(self, pick: int, end: tuple[str, int | None, int | None, str | None]) -> None:
        members = self.members()
        if members:
            member = members[pick % len(members)]
            self.record([self.a_fact(member["job_id"], member["attempt"], member["rank"], *end)])
        self.a_pass()

    @precondition(lambda self: self.started)
    @rule(end=ends)
    def all_members_end(self, end: tuple[str, int | None, int | None, str | None]) -> None:
        self.record([
            self.a_fact(m["job_id"], m["attempt"], m["rank"], *end) for m in self.members()
        ])  # fmt: skip
        self.a_pass()

    @precondition(lambda self: self.recorded_facts)
    @rule(pick=Pick, count=st.integers(1, 5))
    def facts_are_told_again(self, pick: int, count: int) -> None:
        """Late and in another order; repeated facts have no effect."""
        at = pick % len(self.recorded_facts)
        again = self.recorded_facts[at : at + count][::-1]
        live = {(m["job_id"], m["attempt"], m["rank"]) for m in self.members()}
        gone = [f for f in again if (f["job_id"], f["attempt"], f["rank"]) not in live]
        before = self.fingerprint()
        self.record(gone)
        assert self.fingerprint() == before

    @precondition(lambda self: self.started)
    @rule()
    def what_is_to_end_is_ended(self) -> None:
        stops = self.sql.rows("select * from odc.take_stops($1, $2)", self.term, self.now)
        stopped = {(row["job_id"], row["attempt"]) for row in stops}
        self.record([
            self.a_fact(m["job_id"], m["attempt"], m["rank"], "exited", None, 15)
            for m in self.members() if (m["job_id"], m["attempt"]) in stopped
        ])  # fmt: skip

    # -- nodes -----------------------------------------------------------------------------------

    @rule(node=st.sampled_from(NODES), state=st.sampled_from(["DRAIN", "DOWN", "UP", "UP"]))
    def a_node_changes(self, node: str, state: str) -> None:
        self.set_node(node, state)

    def set_node(self, node: str, state: str) -> None:
        self.trouble()
        self.sql.value(
            "select odc.set_node_state($1::jsonb, $2, $3, $4, $5)",
            json.dumps({"user": "root", "uid": 0, "operator": True}), [node], state,
            None if state == "UP" else "broken", self.now,
        )  # fmt: skip

    # -- promises --------------------------------------------------------------------------------

    @invariant()
    def the_books_balance(self) -> None:
        assert self.queue.contradictions() == []

    @invariant()
    def every_task_is_somewhere_once(self) -> None:
        rows = self.sql.rows(
            "select coalesce(j.array_job_id, j.id) as top, sum(odc._task_count(coalesce("
            "p.tasks, odc._tasks_of(j.array_tasks), int4multirange(int4range(0, 1)))))::integer "
            "as tasks from odc.job as j left join odc.pending as p on p.job_id = j.id group by 1"
        )
        assert {row["top"]: row["tasks"] for row in rows} == self.jobs

    @invariant()
    def who_ended_has_an_end(self) -> None:
        assert (
            self.sql.values(
                "select j.id from odc.job as j left join odc.attempt as a "
                "on a.job_id = j.id and a.attempt = j.attempt "
                "where j.state is not null and (j.ended_at is null or j.started_at is not null "
                "and (a.state, a.ended_at, a.requeued) is distinct from "
                "(j.state, j.ended_at, false))"
            )
            == []
        )

    @invariant()
    def an_end_is_final(self) -> None:
        rows = self.sql.rows("select id, state::text from odc.job where state is not null")
        now = {row["id"]: row["state"] for row in rows}
        assert now.items() >= self.ended.items()
        self.ended = now

    def come_to_rest(self) -> None:
        """Every job that waits for no other ends; a job that waits forever can be cancelled."""
        for node in NODES:
            self.set_node(node, "UP")
        everything = {"who": ROOT, "all": True}
        self.queue.release(**everything)
        self.held = set()
        self.sql.execute("delete from odc.resource_limit")
        for _ in range(30):
            self.time_passes(90_000)
            self.sweep()
            self.a_pass()
            self.what_is_to_end_is_ended()
            self.all_members_end(("exited", 0, None, None))
            if not self.sql.value(f"select exists {LIVE}"):
                break
        stuck = self.sql.rows("select * from odc.pending where ready")
        assert stuck == [], f"ready, and never started: {stuck}"
        self.queue.cancel(**everything)
        self.what_is_to_end_is_ended()
        assert not self.sql.value(f"select exists {LIVE}")
        self.the_books_balance()
        self.every_task_is_somewhere_once()
        self.an_end_is_final()


def hold_to_it(database_url: str, **chosen: Any) -> None:
    with Sql(database_url) as sql:
        machine = type("PromisesHere", (Promises,), {"sql": sql})
        run_state_machine_as_test(
            machine,
            settings=settings(
                deadline=None, database=None, suppress_health_check=list(HealthCheck), **chosen
            ),
        )


def test_the_queue_keeps_its_promises(database_url: str) -> None:
    hold_to_it(database_url, max_examples=6, stateful_step_count=20, derandomize=True)


@pytest.mark.long
def test_the_queue_keeps_its_promises_for_long(database_url: str) -> None:
    """The same days in each run; new ones each time with ODC_HUNT=1."""
    hold_to_it(
        database_url, max_examples=deep(35), stateful_step_count=50,
        derandomize=not os.environ.get("ODC_HUNT"),
    )  # fmt: skip
