"""After a schedule: let all work finish, and check whether anything was forgotten."""

from __future__ import annotations

from tests.interleave.programs import OPERATOR, RECORD, nodes
from tests.interleave.promises import STATE
from tests.interleave.world import World
from tests.support.builders.jobs import ROOT, Queue
from tests.support.harness.database import Sql


class Rest:
    """The only leader, of the term that the schedule left."""

    def __init__(self, sql: Sql, world: World) -> None:
        self._sql = sql
        self._world = world
        self._term = sql.value("select term from odc.term")
        self._queue = Queue(sql)
        self._queue.now = world.now

    def check(self) -> None:
        self._nobody_was_forgotten()
        self._pass_until_nothing_starts()
        self._nothing_could_start()
        self._everything_ends()
        self._every_task_ended_once()

    def _nobody_was_forgotten(self) -> None:
        """Dependencies follow the states of their targets, without the help of a sweep."""
        late = self._sql.rows(
            "select v.job_id, v.ord, d.state::text as state, v.verdict::text as verdict "
            "from odc._dependency_verdicts((select array_agg(job_id) from odc.pending), null, $1) "
            "as v join odc.dependency as d on (d.job_id, d.ord) = (v.job_id, v.ord) "
            "where v.verdict <> d.state",
            self._queue.now,
        )
        assert late == [], f"dependencies that were not checked again: {late}"

    def _pass_until_nothing_starts(self) -> None:
        for _ in range(12):
            self._sql.value("select odc.sweep($1, $2)", self._term, self._queue.now)
            row = self._sql.row(
                "select started, more from odc.plan_pass($1, $2)", self._term, self._queue.now
            )
            broken = self._sql.values(STATE, self._queue.now)
            assert broken == [], f"at rest: {broken}"
            if not row["started"] and not row["more"]:
                return
        raise AssertionError("passes go on starting jobs")

    def _nothing_could_start(self) -> None:
        found = self._sql.value("select start_jobs from odc.decide($1)", self._queue.now)
        assert not found, f"jobs {found} could have started"

    def _everything_ends(self) -> None:
        """Without holds, limits, drains and bookings each job runs, unless it never can."""
        self._clear_the_way()
        for _ in range(20):
            # Also jobs that were to be held after their end.
            self._queue.release(who=ROOT, all=True)
            self._pass_until_nothing_starts()
            if not self._end_all() and not self._cancel_lost() and not self._anyone_waits():
                break
            self._queue.move(90_000)
        stuck = self._sql.rows(
            "select job_id, dependency::text, held::text, begun, open_count, tasks::text, "
            "array(select (d.kind, d.target_id, d.state)::text from odc.dependency as d "
            "       where d.job_id = p.job_id) as rows from odc.pending as p"
        )
        assert stuck == [], f"jobs that wait forever: {stuck}"

    def _anyone_waits(self) -> bool:
        return self._sql.value("select exists (select from odc.pending)")

    def _cancel_lost(self) -> bool:
        """Jobs whose dependencies can never be met: others may wait for them."""
        lost = self._sql.values("select job_id from odc.pending where dependency = 'never'")
        for job in lost:
            self._queue.cancel(job, who=ROOT)
        return lost != []

    def _clear_the_way(self) -> None:
        now = self._queue.now
        self._sql.execute("delete from odc.resource_limit")
        self._sql.execute("update odc.licence set total = 1000")
        self._sql.value(
            "select odc.edit_partition($1::jsonb, 'main', $2::jsonb, $3)",
            OPERATOR, '{"state": "UP", "all_nodes": true}', now,
        )  # fmt: skip
        self._sql.execute(
            "select odc.register_nodes($1, $2::jsonb, true, $3)", self._term, nodes(), now
        )
        self._sql.value(
            "select odc.set_node_state($1::jsonb, array(select name from odc.node order by 1), "
            "'UP', null, $2)",
            OPERATOR, now,
        )  # fmt: skip

    def _end_all(self) -> int:
        members = self._sql.rows(
            "select r.job_id, r.attempt, a.rank from odc.running as r "
            "join odc.allocation as a using (job_id) where a.state <> 'ended' order by 1, 3"
        )
        n, now = len(members), self._queue.now
        if n:
            self._sql.rows(
                RECORD, self._term, [m["job_id"] for m in members],
                [m["attempt"] for m in members], [m["rank"] for m in members], ["exited"] * n,
                [now] * n, [0] * n, [None] * n, [None] * n, [None] * n, now,
            )  # fmt: skip
        return n

    def _every_task_ended_once(self) -> None:
        ended = {
            row["top"]: row["tasks"]
            for row in self._sql.rows(
                "select coalesce(array_job_id, id) as top, sum(case when array_tasks is null "
                "then 1 else odc._task_count(odc._tasks_of(array_tasks)) end)::integer as tasks "
                "from odc.job where state is not null group by 1"
            )
        }
        assert ended == self._world.tasks, "tasks that ended are not those submitted"
        broken = self._sql.values(STATE, self._queue.now)
        assert broken == [], f"at the end: {broken}"
