"""The invariants of scheduling, asked of committed rows after every commit of a schedule.

State: what must hold of any committed moment. Starts: what must hold of the jobs that one commit
starts, given what was committed before it; an edit that committed later may contradict them.
"""

from __future__ import annotations

from typing import Any

import asyncpg

from odcd.slurm.dependencies import Term, parse_dependency
from tests.interleave.stage import Session
from tests.interleave.world import World

STATE = """
    select check_books from odc.check_books()
    union all
    select format('node %s: jobs %s and %s share GPUs', a.node_id, a.job_id, b.job_id)
      from odc.allocation as a
      join odc.allocation as b on b.node_id = a.node_id and a.job_id < b.job_id
     where a.gpu_mask & b.gpu_mask <> 0
    union all
    select format('node %s: %s GPUs allocated of %s', n.name, sum(a.gpus), n.gpus)
      from odc.node as n join odc.allocation as a on a.node_id = n.id
     group by n.id
    having sum(a.gpus) > n.gpus or sum(a.cpus) > n.cpus or sum(a.mem_mib) > n.mem_mib
    union all
    select format('job %s: pending.dependency is %s, its rows say %s',
                  p.job_id, p.dependency, d.state)
      from odc.pending as p
      join (select job_id, case when bool_or(p.dependency_any) then
                       case when bool_or(d.state = 'met') then 'met'
                            when bool_and(d.state = 'never') then 'never' else 'waiting' end
                   else case when bool_or(d.state = 'never') then 'never'
                             when bool_and(d.state = 'met') then 'met' else 'waiting' end
                   end::odc.dependency_state as state
              from odc.pending as p join odc.dependency as d using (job_id)
             where d.kind <> 'aftercorr' group by job_id) as d using (job_id)
     where p.dependency <> d.state
    union all
    select format('job %s waits for a dependency without a row', p.job_id)
      from odc.pending as p
     where p.dependency <> 'met'
       and not exists (select from odc.dependency as d where d.job_id = p.job_id)
    union all
    select format('planned job %s is not pending', l.job_id)
      from odc.planned as l
     where not exists (select from odc.pending as p where p.job_id = l.job_id)
    union all
    select format('array %s counts started %s ok %s not ok %s; its rows say %s, %s, %s', a.job_id,
                  a.started, a.ended_ok, a.ended_not_ok, r.started, r.ok, r.not_ok)
      from odc.array_job as a
     cross join lateral (
           select count(*) filter (where j.started_at is not null or u.job_id is not null
                                      or t.job_id is not null) as started,
                  count(*) filter (where j.state = 'COMPLETED') as ok,
                  coalesce(sum(case when j.array_tasks is null then 1
                                    else odc._task_count(odc._tasks_of(j.array_tasks)) end)
                           filter (where j.state is not null and j.state <> 'COMPLETED'), 0)
                      as not_ok
             from odc.job as j
             left join odc.running as u on u.job_id = j.id
             left join odc.attempt as t on t.job_id = j.id and t.attempt = 1
            where j.array_job_id = a.job_id) as r
     where (a.started, a.ended_ok, a.ended_not_ok) is distinct from (r.started, r.ok, r.not_ok)
    union all
    select format('array %s: %s tasks may start, and its throttle leaves %s',
                  p.job_id, p.open_count, o.n)
      from odc.pending as p
      join odc.array_job as a on a.job_id = p.job_id
     cross join lateral (
           select greatest(0, least(odc._task_count(p.tasks - coalesce(p.closed_tasks, '{}')),
                      coalesce(a.throttle, 1000000)
                      - (select count(*) from odc.running as r
                          where r.array_job_id = a.job_id))) as n) as o
     where p.tasks is not null and p.open_count <> o.n
       and not exists (select from odc.pending as q
                        where q.array_job_id = p.job_id and q.job_id <> p.job_id)
    union all
    select format('job %s runs into booking %s on node %s', r.job_id, b.booking_id, b.node_id)
      from odc.running as r
      join odc.shape as s on s.id = r.shape_id
      join odc.allocation as a on a.job_id = r.job_id
      join odc._plan_bookings($1) as b on b.node_id = a.node_id
     where b.booking_id is distinct from s.booking_id
       and b.starts_at < r.ends_at and b.ends_at > $1 and r.started_at < b.ends_at
"""

STARTS = """
    with starts as materialized (
        select r.*, s.licences from odc.running as r join odc.shape as s on s.id = r.shape_id
         where r.job_id = any ($1)
    )
    select format('job %s starts on node %s, which is %s', a.job_id, n.name, n.state)
      from odc.allocation as a join odc.node as n on n.id = a.node_id
     where a.job_id = any ($1) and n.state <> 'UP'
    union all
    select format('job %s starts in partition %s, which is %s', s.job_id, p.name, p.state)
      from starts as s join odc.partition as p on p.id = s.partition_id
     where p.state not in ('UP', 'DRAIN')
    union all
    select format('job %s asks for %s and starts on %s, of type %s', s.job_id, h.gpu_type, n.name,
                  n.gpu_type)
      from starts as s
      join odc.shape as h on h.id = s.shape_id
      join odc.allocation as a on a.job_id = s.job_id
      join odc.node as n on n.id = a.node_id
     where h.gpu_type <> n.gpu_type
    union all
    select format('job %s starts on a node outside its partition', s.job_id)
      from starts as s
      join odc.allocation as a on a.job_id = s.job_id
      join odc.partition as p on p.id = s.partition_id
     where not p.all_nodes and not exists (
           select from odc.partition_node as n
            where n.partition_id = p.id and n.node_id = a.node_id)
    union all
    select format('%s %s per %s: %s %s run, the limit is %s',
                  scope, scope_id, per, used, what, value)
      from (select l.scope, l.scope_id, l.per, l.what, l.value,
                   case l.what when 'jobs' then count(*) else sum(g.gpus) end as used
              from odc.resource_limit as l
              join odc.running as r
                on l.scope_id = case l.scope when 'qos' then r.qos_id
                                             when 'account' then r.account_id
                                             when 'partition' then r.partition_id end
              join (select job_id, sum(gpus) as gpus from odc.allocation group by job_id) as g
                on g.job_id = r.job_id
             where l.per in ('group', 'user') and l.what in ('jobs', 'gpus')
             group by l.scope, l.scope_id, l.per, l.what, l.value,
                      case l.per when 'user' then r.uid end
            having bool_or(r.job_id = any ($1))) as u
     where u.used > u.value
    union all
    select format('licence %s: %s in use of %s', l.name, u.used, l.total)
      from odc.licence as l
      join (select k.key as name, sum(k.value::integer) as used, bool_or(r.job_id = any ($1)) as hit
              from odc.running as r
              join odc.shape as s on s.id = r.shape_id
             cross join lateral jsonb_each_text(s.licences) as k
             group by k.key) as u on u.name = l.name
     where u.hit and u.used > l.total
    union all
    select format('array %s: %s tasks run, its throttle is %s', a.job_id, count(*), a.throttle)
      from odc.array_job as a join odc.running as r on r.array_job_id = a.job_id
     group by a.job_id having count(*) > a.throttle and bool_or(r.job_id = any ($1))
"""

SUBMITS = """
    select format('%s %s of limit on submitted jobs %s', l.scope, l.scope_id, l.value)
      from odc.resource_limit as l
      join odc.job as j on l.scope_id = case l.scope when 'qos' then j.qos_id
                                                     when 'account' then j.account_id end
      left join odc.pending as p on p.job_id = j.id
     where l.what = 'submitted' and l.per = 'group' and j.state is null
     group by l.scope, l.scope_id, l.value
    having sum(coalesce(odc._task_count(p.tasks), 1)) > l.value
"""

JOBS = """
    select j.id, coalesce(j.array_job_id, j.id) as top, j.uid, j.name, j.state::text, j.dependency,
           p.job_id is not null as waits, p.held::text, p.begun, p.dependency::text as judged,
           p.job_id is null or p.attempt > 1 as has_begun, coalesce(p.attempt, 0) as attempt
      from odc.job as j left join odc.pending as p on p.job_id = j.id
"""


class Promises:
    """Watches one schedule: every commit is compared with the commit before it."""

    def __init__(self) -> None:
        self._before: list[asyncpg.Record] = []
        self._term = 0
        self._ended: dict[int, str] = {}
        self._attempts: set[tuple[int, int]] = set()

    async def begins(self, watcher: asyncpg.Connection, world: World) -> None:
        await self._remember(watcher)
        self._attempts = {tuple(r) for r in await watcher.fetch(_ATTEMPTS)}

    async def committed(self, watcher: asyncpg.Connection, world: World, session: Session) -> None:
        leads = session.program.leads and not session.changed_nothing
        assert not leads or session.term >= self._term, (
            f"{session.name} of term {session.term} wrote in term {self._term}"
        )
        broken = [row[0] for row in await watcher.fetch(STATE, world.now)]
        attempts = {tuple(r) for r in await watcher.fetch(_ATTEMPTS)}
        starts = [job for job, _ in attempts - self._attempts]
        self._attempts |= attempts
        if starts:
            broken += [row[0] for row in await watcher.fetch(STARTS, starts)]
            broken += await self._started_too_early(watcher, starts)
        ended = {
            r["id"]: r["state"]
            for r in await watcher.fetch(
                "select id, state::text from odc.job where state is not null"
            )
        }
        if session.program.name.startswith("submitter"):
            broken += [row[0] for row in await watcher.fetch(SUBMITS)]
        if not ended.items() >= self._ended.items():
            broken.append(f"an end changed: {self._ended} became {ended}")
        self._ended = ended
        await self._remember(watcher)
        assert broken == [], f"after a commit of {session.name}: {broken}"

    async def _remember(self, watcher: asyncpg.Connection) -> None:
        self._before = await watcher.fetch(JOBS)
        self._term = await watcher.fetchval("select term from odc.term")

    async def _started_too_early(self, watcher: asyncpg.Connection, starts: list[int]) -> list[str]:
        before = {row["id"]: row for row in self._before}
        broken = []
        for row in await watcher.fetch(
            "select id, coalesce(array_job_id, id) as top from odc.job where id = any ($1)", starts
        ):
            was = before.get(row["id"]) or before[row["top"]]
            if not was["waits"] or was["held"] or not was["begun"] or was["judged"] != "met":
                broken.append(f"job {row['id']} starts and was {dict(was)}")
            if was["attempt"] == 1 and was["dependency"] and not self._may_start(was):
                broken.append(f"job {row['id']} starts before its dependency {was['dependency']}")
        return broken

    def _may_start(self, job: asyncpg.Record) -> bool:
        parsed = parse_dependency(job["dependency"])
        met = [self._is_met(term, job) for term in parsed.terms]
        return any(met) if parsed.any else all(met)

    def _is_met(self, term: Term, job: asyncpg.Record) -> bool:
        if term.kind == "singleton":
            return not any(
                r["state"] is None and r["top"] < job["top"]
                and (r["uid"], r["name"]) == (job["uid"], job["name"])
                for r in self._before
            )  # fmt: skip
        target: list[Any] = [r for r in self._before if r["top"] == term.target_id]
        ended = all(r["state"] is not None for r in target)
        ok = all(r["state"] == "COMPLETED" for r in target)
        return {
            "after": all(r["has_begun"] for r in target), "afterany": ended,
            "afterok": ended and ok, "afternotok": ended and not ok,
        }[term.kind]  # fmt: skip


_ATTEMPTS = "select job_id, attempt from odc.running union select job_id, attempt from odc.attempt"
