"""Jobs that wait for one another: the stored facts stay consistent in any order of events."""

from __future__ import annotations

import random
from typing import Any

import pytest

from odcd.errors import BadDependency
from tests.support.builders.jobs import Queue

STEPS = 60


class Lives:
    """A random walk over every event of jobs and arrays; one seed drives all randomness."""

    def __init__(self, queue: Queue, seed: int) -> None:
        self.queue = queue
        self.chance = random.Random(seed)
        self.jobs: list[int] = []
        self.arrays: dict[int, set[int]] = {}

    def step(self) -> None:
        step: Any = self.chance.choice(
            [self.submit, self.submit, self.start, self.start, self.end, self.end, self.cancel,
             self.hold, self.release, self.requeue, self.update, self.pass_time]
        )  # fmt: skip
        step()

    def target(self) -> str:
        job = self.chance.choice(self.jobs)
        if job in self.arrays and self.chance.random() < 0.5:
            return f"{job}_{self.chance.choice(sorted(self.arrays[job]))}"
        return str(job)

    def dependency(self) -> str | None:
        if not self.jobs or self.chance.random() < 0.3:
            return None
        kinds = ["after", "afterany", "afterok", "afternotok", "aftercorr", "singleton"]
        terms = []
        for _ in range(self.chance.randint(1, 3)):
            kind = self.chance.choice(kinds)
            terms.append(kind if kind == "singleton" else f"{kind}:{self.target()}")
        joined = "," if "aftercorr" in " ".join(terms) else self.chance.choice(",?")
        return joined.join(terms)

    def submit(self) -> None:
        fields: dict[str, Any] = {
            "name": self.chance.choice("ab"),
            "ntasks": self.chance.choice([1, 40]),
            "dependency": self.dependency(),
            "hold": self.chance.random() < 0.1,
        }
        if self.chance.random() < 0.5:
            fields["array"] = self.chance.choice(["0-3", "0-5%2", "1,3,5", "0-8:2%1", "7"])
        job = self.queue.submit(**fields)
        self.jobs.append(job)
        if "array" in fields:
            spans = self.queue.sql.rows(
                "select lower(r) as low, upper(r) as high from odc.pending, unnest(tasks) as r "
                "where job_id = $1", job,
            )  # fmt: skip
            self.arrays[job] = {t for s in spans for t in range(s["low"], s["high"])}

    def some(self) -> list[Any]:
        """Jobs, whole arrays, tasks by number and by id."""
        if not self.jobs:
            return []
        chosen: list[Any] = self.chance.sample(self.jobs, min(len(self.jobs), 3))
        for at, job in enumerate(chosen):
            if job in self.arrays and self.chance.random() < 0.6:
                low = self.chance.randint(0, 6)
                chosen[at] = (job, f"{{[{low},{low + self.chance.randint(1, 3)})}}")
        rows = self.queue.sql.values(
            "select id from odc.job where array_task_id is not null order by 1"
        )
        return chosen + self.chance.sample(rows, min(len(rows), 1))

    def start(self) -> None:
        before = self.running()
        self.queue.start()
        throttles = self.queue.sql.rows("select job_id, throttle from odc.array_job")
        for array, throttle in ((row["job_id"], row["throttle"]) for row in throttles):
            if throttle:
                running = self.running()
                assert running.get(array, 0) <= max(throttle, before.get(array, 0))

    def running(self) -> dict[int, int]:
        rows = self.queue.sql.rows(
            "select array_job_id as id, count(*) as n from odc.running group by array_job_id"
        )
        return {row["id"]: row["n"] for row in rows}

    def end(self) -> None:
        running = self.queue.sql.values("select job_id from odc.running order by 1")
        ending = self.chance.sample(running, (len(running) + 1) // 2)
        self.queue.end(*ending, exit_code=self.chance.choice([0, 0, 1]))

    def cancel(self) -> None:
        if some := self.some():
            self.queue.cancel(*some)

    def hold(self) -> None:
        if some := self.some():
            self.queue.hold(*some)

    def release(self) -> None:
        if some := self.some():
            self.queue.release(*some)
        self.queue.release(job_ids=self.jobs)

    def requeue(self) -> None:
        if some := self.some():
            self.queue.requeue(*some, hold=self.chance.random() < 0.3)

    def update(self) -> None:
        for one in self.some():
            changes: dict[str, Any] = self.chance.choice(
                [{"name": "a"}, {"name": "b"}, {"array_throttle": 1}, {"array_throttle": 0},
                 {"dependency": self.dependency()}, {"nice": 3}]
            )  # fmt: skip
            self.queue.update(one, changes=changes)

    def pass_time(self) -> None:
        self.queue.move(30)
        self.queue.sweep()


def kept(queue: Queue) -> list[Any]:
    """Every stored fact that is derived from the states of other jobs."""
    return [
        queue.sql.rows(f"select * from odc.{table} order by 1, 2")
        for table in ("pending", "dependency", "array_job")
    ]


def differences(before: list[Any], after: list[Any]) -> list[str]:
    return [
        f"{old['job_id']}: {key} was {old[key]}, should be {new[key]}"
        for olds, news in zip(before, after, strict=True)
        for old, new in zip(olds, news, strict=True)
        for key in new
        if old[key] != new[key]
    ]


def check(lives: Lives) -> None:
    queue = lives.queue
    assert queue.contradictions() == []
    # Judged again from scratch, every stored state is the same.
    before = kept(queue)
    queue.sql.execute(
        "select odc._judge_dependencies((select array_agg(distinct job_id) from odc.dependency "
        "where state = 'waiting'), $1)",
        queue.now,
    )
    queue.sql.execute("select odc._close_tasks((select array_agg(job_id) from odc.pending))")
    assert queue.sql.value("select odc._repair_books($1)", queue.now) == 0
    assert differences(before, kept(queue)) == []
    for array, tasks in lives.arrays.items():
        check_array(queue, array, tasks)


def check_array(queue: Queue, array: int, tasks: set[int]) -> None:
    """Every task is once in the range, in its own row, or among those cancelled together."""
    rows = queue.sql.rows(
        "select array_task_id, j.state::text, odc._tasks_of(array_tasks) as gone, p.tasks, "
        "r.job_id is not null as runs from odc.job as j "
        "left join odc.pending as p on p.job_id = j.id "
        "left join odc.running as r on r.job_id = j.id where j.array_job_id = $1", array,
    )  # fmt: skip
    found: list[int] = []
    for row in rows:
        assert (row["array_task_id"] is None) != (row["gone"] is None and row["tasks"] is None)
        if row["array_task_id"] is not None:
            found.append(row["array_task_id"])
        for span in (row["gone"] or []) if row["array_task_id"] is None else []:
            found.extend(range(span.lower, span.upper))
        for span in row["tasks"] or []:
            found.extend(range(span.lower, span.upper))
    assert sorted(found) == sorted(tasks)
    counted = queue.sql.row("select * from odc.array_job where job_id = $1", array)
    assert counted["running"] == sum(row["runs"] for row in rows)
    assert counted["ended_ok"] == sum(row["state"] == "COMPLETED" for row in rows)
    assert counted["ended_ok"] + counted["ended_not_ok"] == sum(
        1 if row["array_task_id"] is not None else sum(s.upper - s.lower for s in row["gone"])
        for row in rows
        if row["state"] is not None
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_stored_facts_stay_consistent(queue: Queue, seed: int) -> None:
    live(queue, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4, 24))
def test_the_stored_facts_stay_consistent_for_long(queue: Queue, seed: int) -> None:
    live(queue, seed)


def live(queue: Queue, seed: int) -> None:
    lives = Lives(queue, seed)
    for _ in range(STEPS):
        try:
            lives.step()
        except BadDependency:
            continue
        check(lives)
    # No job is stuck: when all holds are released, every job ends.
    queue.sql.execute("update odc.array_job set throttle = null")
    for job in lives.jobs:
        queue.update(job, changes={"dependency": None})
    for _ in range(200):
        queue.release(all=True)
        started = queue.start()
        running = queue.sql.values("select job_id from odc.running order by 1")
        if not started and not running:
            break
        queue.end(*running)
    queue.cancel(all=True)
    check(lives)
    assert queue.sql.value("select count(*) from odc.job where state is null") == 0
