"""Days of a cluster in seconds: real planner, reaper and SQL, virtual clock, simulated executor.

One seed makes all chance. Every step is one of: time passes to the next event, users do something,
or something goes wrong; after it the books must balance.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

from odcd.database.pool import Database
from odcd.errors import DatabaseDown, LeadershipLost, RunnerDown, WrongState
from odcd.executor.simulated import Run, SimulatedExecutor
from odcd.jobs.submission import prepare
from odcd.loops.election import APPLICATION
from odcd.loops.executor_watch import take_over
from odcd.loops.lead import Lead
from odcd.loops.planner import Planner
from odcd.loops.reconciler import Reconciler
from odcd.records.dispatch import Dispatch, Fact
from odcd.records.job import Identity, JobSpec, ReservationSpec
from odcd.records.node import NodeReport
from odcd.stores.store import Store
from tests.support.builders.disks import PlayedCloud
from tests.support.fakes.clock import VirtualClock

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
USERS = [Identity(user=name, uid=uid, gid=uid, operator=False) for name, uid in
         (("ann", 1001), ("bob", 1002), ("eve", 1003))]  # fmt: skip
ROOT = Identity(user="root", uid=0, gid=0, operator=True)
NODES = [
    *(NodeReport(name=f"h{i}", gpu_type="h100", gpus=8, cpus=192, mem_mib=2_000_000,
                 efa_domain="ab"[i % 2], declared=True) for i in range(6)),
    *(NodeReport(name=f"l{i}", gpu_type="l4", gpus=4, cpus=48, mem_mib=190_000, declared=True)
      for i in range(2)),
    NodeReport(name="c0", gpu_type="cpu-x86", gpus=0, cpus=16, mem_mib=32_000, declared=True),
]  # fmt: skip


class Simulation:
    def __init__(self, database: Database, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = VirtualClock(START)
        self.database = database
        self.store = Store(database)
        self.executor = SimulatedExecutor(self.clock, self.run_of, NODES)
        self.submitted: list[int] = []
        self.reservations: list[int] = []
        self.cloud = PlayedCloud()
        self.overdue: list[Fact] = []
        self.sweep_at = START
        self.steps = 0

    def run_of(self, dispatch: Dispatch) -> Run:
        """The course of an attempt depends only on seed, job and attempt, not on the caller or the
        time."""
        chance = random.Random(f"{dispatch.job_id}/{dispatch.attempt}")
        run = Run(
            seconds=chance.choice([0.0, 1.0, 30.0, 600.0, 3600.0, 20_000.0]),
            exit_code=chance.choice([0, 0, 0, 0, 1, 137]),
            start_s=chance.choice([0.0, 0.1, 4.0]),
        )
        if chance.random() < 0.03:
            return replace(run, outcome=chance.choice(["lost", "start_failed"]))
        return run

    # -- leadership --------------------------------------------------------------------------------

    @asynccontextmanager
    async def leading(self) -> AsyncGenerator[tuple[Lead, Planner, Reconciler]]:
        """Take the term as a new daemon would, and adopt running jobs."""
        async with self.database.dedicated(name=APPLICATION) as session:
            row = await session.fetchrow("select term, beat from odc.read_term()")
            assert row is not None
            term = await session.fetchval(
                "select odc.take_term(p_term => $1, p_beat => $2, p_holder => 'sim', "
                "p_host => 'sim', p_now => $3)",
                row["term"], row["beat"], self.clock.now(),
            )  # fmt: skip
            lead = Lead(term, session, self.clock)
            planner = Planner(
                lead, self.store.dispatches, self.executor, self.clock, timedelta(seconds=30)
            )
            reaper = Reconciler(
                lead, self.store, self.executor, self.clock,
                grace=timedelta(seconds=30), node_grace=None,
                every=timedelta(seconds=30), on_change=planner.wake,
            )  # fmt: skip
            self.executor.away = False
            await self.executor.open(term)
            await self.store.nodes.register(
                term, await self.executor.inventory(), self.clock.now(), whole=True
            )
            await take_over(lead, self.store.attempts, self.executor, planner)
            yield lead, planner, reaper

    async def make_qos(self) -> None:
        """urgent jobs may preempt those of scavenger, which have a grace period of one minute."""
        await self.database.execute(
            "with t as materialized (select odc._set_now($1)), "
            "s as (insert into odc.qos (name, grace_s) select 'scavenger', 60 from t returning id) "
            "insert into odc.qos (name, preempts) select 'urgent', array[s.id] from s",
            self.clock.now(),
        )

    async def run(self, steps: int) -> None:
        await self.make_qos()
        for who in USERS:
            await self.store.disks.create(who, "home", 10, self.clock.now(), key=None, digest="")
        while self.steps < steps:
            async with self.leading() as (lead, planner, reaper):
                reign = self.random.randint(20, 80)
                for _ in range(reign):
                    self.steps += 1
                    await self.step(lead, planner, reaper)
                    await self.check()
                    if self.steps >= steps:
                        break
                old = (lead, planner, reaper)
                # Another daemon takes over while this one still believes that it leads.
                async with self.leading() as (new, *_):
                    assert new.term == lead.term + 1
                    await self.an_old_leader_changes_nothing(*old)
        async with self.leading() as (lead, planner, reaper):
            await self.drain(lead, planner, reaper)

    async def an_old_leader_changes_nothing(
        self, lead: Lead, planner: Planner, reaper: Reconciler
    ) -> None:
        before = await self.fingerprint()
        now = self.clock.now()
        for change in (
            planner.plan_once(),
            reaper.carry_out_once(),
            self.store.leader.sweep(lead.term, now),
            self.store.attempts.record_facts(
                lead.term, [Fact(job_id=1, attempt=1, rank=0, kind="lost", at=now)], now
            ),
            self.executor.open(lead.term),
            self.store.disk_work.take(lead.term, now),
        ):
            try:
                await change
            except (LeadershipLost, DatabaseDown):
                continue
            raise AssertionError(f"an old leader was let in: {change}")
        assert await self.fingerprint() == before

    async def fingerprint(self) -> str:
        return await self.database.fetchval(
            "select md5(string_agg(t::text, ',' order by t::text)) from ("
            "select p::text as t from odc.pending p union all select r::text from odc.running r "
            "union all select a::text from odc.allocation a "
            "union all select d::text from odc.disk d "
            "union all select v::text from odc.disk_volume v) as x"
        )

    # -- steps -------------------------------------------------------------------------------------

    async def step(self, lead: Lead, planner: Planner, reaper: Reconciler) -> None:
        chance = self.random.random()
        if chance < 0.26:
            await self.submit()
        elif chance < 0.30:
            await self.reserve()
        elif chance < 0.42:
            await self.meddle()
        elif chance < 0.46:
            self.executor.away = not self.executor.away
        elif chance < 0.48:
            self.executor.lose(self.random.choice(NODES).name)
        elif chance < 0.52:
            await self.change_a_node()
        else:
            await self.pass_time()
        await self.look(lead, planner, reaper)

    async def look(self, lead: Lead, planner: Planner, reaper: Reconciler) -> None:
        """One round of all the daemon's loops."""
        now = self.clock.now()
        facts = self.overdue + self.executor.take(now)
        self.overdue = []
        if facts and self.random.random() < 0.1:
            facts, self.overdue = [], facts  # the answer comes late
        if facts:
            if self.random.random() < 0.1:
                facts = facts + facts[: len(facts) // 2 + 1]  # and twice
            self.random.shuffle(facts)
            await self.store.attempts.record_facts(lead.term, facts, now)
            await self.executor.acknowledge(facts)
        if now >= self.sweep_at:
            due = await self.store.leader.sweep(lead.term, now)
            self.sweep_at = min(due or now + timedelta(seconds=60), now + timedelta(seconds=60))
        with contextlib.suppress(RunnerDown):
            await reaper.carry_out_once()
        for warning in await self.store.dev_servers.list_expiry_notices(lead.term, now):
            if self.random.random() < 0.8:
                await self.store.dev_servers.record_expiry_notice(lead.term, warning, None, now)
        await self.tend_disks(lead.term)
        await planner.plan_once()
        if not self.executor.away:
            late = await self.store.dispatches.list_unstarted(lead.term, now)
            if late:
                await planner.send(late)

    async def tend_disks(self, term: int) -> None:
        """As odcd.disks.worker, with a cloud that fails now and then; snapshots take time."""
        for work in await self.store.disk_work.take(term, self.clock.now()):
            done = self.random.random() < 0.8
            answer = self.cloud.do(asdict(work)) if done else {"busy": "throttled"}
            await self.store.disk_work.record(term, work, answer, self.clock.now())
        if self.random.random() < 0.3:
            self.cloud.pending.clear()

    async def pass_time(self) -> None:
        next_at = self.executor.next_at()
        limit = self.clock.now() + timedelta(seconds=self.random.choice([1, 60, 900]))
        self.clock.move_to(max(self.clock.now(), min(next_at or limit, limit)))

    async def submit(self) -> None:
        who = self.random.choice(USERS)
        now = self.clock.now()
        changes: dict[str, object] = {
            "time_limit_s": self.random.choice([60, 600, 3600, 7200, 86_400]),
            "name": self.random.choice(["train", "eval", "prep"]),
            "nice": self.random.choice([0, 0, 0, 100]),
            "qos": self.random.choice([None, None, "scavenger", "scavenger", "urgent"]),
            "requeue": self.random.choice([None, True, False]),
        }
        kind = self.random.random()
        if kind < 0.2:
            changes |= {"node_count": self.random.choice([2, 3]), "gpus_per_node": 8,
                        "gpu_type": "h100"}  # fmt: skip
        elif kind < 0.3:
            changes |= {"ntasks": self.random.choice([1, 4])}
        elif kind < 0.4:
            changes |= {"gpus": 1}
        else:
            changes |= {"gpus": self.random.choice([1, 2, 4]),
                        "gpu_type": self.random.choice(["h100", "l4"])}  # fmt: skip
        if self.random.random() < 0.2:
            changes["array"] = self.random.choice(["0-3", "1-9%2", "0-20:5", "7"])
        if self.submitted and self.random.random() < 0.25:
            target = self.random.choice(self.submitted)
            kind_of = self.random.choice(["afterany", "afterok", "afternotok", "after"])
            changes["dependency"] = f"{kind_of}:{target}"
        elif self.random.random() < 0.05:
            changes["dependency"] = "singleton"
        if self.random.random() < 0.1:
            changes["hold"] = True
        if self.random.random() < 0.1:
            changes["begin_at"] = now + timedelta(seconds=self.random.choice([30, 3000]))
        if self.random.random() < 0.05:
            changes["deadline_at"] = now + timedelta(seconds=100_000)
        spec = JobSpec(script="#!/bin/sh\ntrue\n", work_dir="/tmp", **{"launch": "all", **changes})  # type: ignore[arg-type]
        await self.take(who, spec)

    async def reserve(self) -> None:
        """A dev server on part of a node or on several nodes."""
        gang = self.random.random() < 0.3
        spec = ReservationSpec(
            script="#!/bin/sh\ntrue\n", work_dir="/tmp", name="box", gpu_type="h100", pty=True,
            node_count=2 if gang else 1, gpus_per_node=8 if gang else self.random.choice([1, 4]),
            time_limit_s=self.random.choice([300, 3600, 7200, 86_400]), exclusive=gang,
            details={"disk": "home"} if self.random.random() < 0.6 else {},
        )  # fmt: skip
        self.reservations.append(await self.take(self.random.choice(USERS), spec))

    async def take(self, who: Identity, spec: JobSpec) -> int:
        prepared = prepare(who, [spec], key=None, dry_run=False)
        [[answer]] = await self.store.jobs.submit(
            json.dumps([prepared.request]), list(prepared.texts), list(prepared.texts.values()),
            self.clock.now(),
        )  # fmt: skip
        assert answer.code is None, answer
        assert answer.job_id is not None
        self.submitted.append(answer.job_id)
        return answer.job_id

    async def extend(self) -> None:
        """Any dev server, active or not."""
        job_id, seconds = (
            self.random.choice(self.reservations),
            self.random.choice([60, 1800, 86_400]),
        )
        now = self.clock.now()
        with contextlib.suppress(WrongState):
            preview = await self.store.reservations.extend(ROOT, job_id, seconds, now, dry_run=True)
            done = await self.store.reservations.extend(ROOT, job_id, seconds, now, dry_run=False)
            assert json.loads(preview) == json.loads(done) | {"dry_run": True}

    async def meddle(self) -> None:
        if not self.submitted:
            return
        if self.reservations and self.random.random() < 0.2:
            if not self.executor.away:
                await self.extend()
            return
        job = {"ids": [{"job_id": self.random.choice(self.submitted[-30:]), "tasks": None}]}
        now = self.clock.now()
        what = self.random.random()
        if what < 0.4:
            await self.store.jobs.cancel(ROOT, job, now)
        elif what < 0.55:
            await self.store.jobs.hold(ROOT, job, now)
        elif what < 0.8:
            await self.store.jobs.release(ROOT, job, now)
        elif what < 0.85:
            await self.store.jobs.checkpoint(ROOT, job, now)
        elif what < 0.93:
            await self.store.jobs.requeue(ROOT, job, now, hold=self.random.random() < 0.2)
        else:
            await self.store.jobs.update(
                ROOT, job, now, {"time_limit_s": self.random.choice([30, 7200])}
            )

    async def change_a_node(self) -> None:
        node = self.random.choice(NODES).name
        state = self.random.choice(["DRAIN", "UP", "UP"])
        await self.store.nodes.set_state(
            ROOT, [node], state, "test" if state == "DRAIN" else None, self.clock.now()
        )

    async def drain(self, lead: Lead, planner: Planner, reaper: Reconciler) -> None:
        """Let everything end that can end; jobs that wait forever are cancelled."""
        now = self.clock.now()
        await self.store.nodes.set_state(ROOT, [n.name for n in NODES], "UP", None, now)
        for _ in range(3000):
            if not await self.database.fetchval(
                "select exists (select from odc.running) or exists (select from odc.pending)"
            ):
                await self.put_disks_away(lead.term)
                return
            self.executor.away = False
            if self.executor.next_at() is None and not self.overdue:
                self.clock.move(3600)
            else:
                await self.pass_time()
            await self.look(lead, planner, reaper)
            await self.check()
            if not await self.database.fetchval("select exists (select from odc.running)"):
                held = {"all": True, "state": ["PENDING"]}
                await self.store.jobs.release(ROOT, held, self.clock.now())
                if await self.database.fetchval(
                    "select not exists (select from odc.pending where ready or not begun)"
                ):
                    await self.store.jobs.cancel(ROOT, held, self.clock.now())
        raise AssertionError("the cluster does not come to rest")

    async def put_disks_away(self, term: int) -> None:
        for _ in range(500):
            await self.tend_disks(term)
            self.clock.move(30)
        assert self.cloud.volumes == {}, "a volume was not deleted"
        assert await self.database.fetchval("select bool_and(holder is null) from odc.disk")

    # -- promises ----------------------------------------------------------------------------------

    async def check(self) -> None:
        wrong = [row[0] for row in await self.database.fetch("select odc.check_books()")]
        assert wrong == [], f"step {self.steps}: {wrong[:3]}"
        twice = {key: count for key, count in self.executor.started.items() if count > 1}
        assert twice == {}, f"step {self.steps}: started twice: {twice}"
        await self.check_dev_servers()
        await self.check_disks()

    async def check_disks(self) -> None:
        """A running job with a disk is its holder, and a volume in use belongs to the latest
        use."""
        wrong = await self.database.fetch(
            "select r.job_id from odc.running as r join odc.reservation as v using (job_id) "
            "join odc.disk as d on d.id = v.disk_id "
            "left join odc.disk_volume as m on m.job_id = r.job_id and m.attempt = r.attempt "
            "where d.holder is distinct from r.job_id or m.fence is distinct from d.fence"
        )
        assert wrong == [], f"step {self.steps}: disks of {[row[0] for row in wrong]}"

    async def check_dev_servers(self) -> None:
        """Their clocks: an end is that of the launch and what was added, to the plan it is the
        grace later, and no level was sent that lay before it was set."""
        wrong = await self.database.fetch(
            "select v.job_id from odc.reservation as v left join odc.running as r using (job_id) "
            "left join odc.job as j on j.id = v.job_id "
            "where v.expires_at <> v.launched_at + make_interval(secs => v.duration_s) "
            "                      + make_interval(secs => v.extended_s) "
            "   or r.state = 'RUNNING' and r.intent is null and v.launched_at is null "
            "   or v.launched_at is not null and r.ends_at <> v.expires_at + interval '120 s' "
            "   or j.state = 'TIMEOUT' and j.ended_at < j.started_at "
            "      + make_interval(secs => v.duration_s + v.extended_s) "
            "   or v.launched_at is not null and r.job_id is null and j.state is null "
            "   or v.extensions > 1 "
            "   or v.expires_at > v.launched_at + interval '48 hours' "
            "union select w.job_id from odc.reservation_warning as w "
            "join odc.reservation as v using (job_id) where w.sent_at < w.due_at "
            "   or w.due_at <= v.launched_at"
        )
        assert wrong == [], f"step {self.steps}: dev servers {[row[0] for row in wrong]}"
