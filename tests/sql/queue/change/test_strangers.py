"""No change affects jobs of another user: every change, under every selection."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue

CHANGES: dict[str, tuple[str, str, list[object]]] = {
    "hold": ("hold", "", []),
    "release": ("release", "", []),
    "cancel": ("cancel", ", $4", [None]),
    "signal": ("cancel", ", $4", [10]),
    "requeue": ("requeue", ", $4", [False]),
    "requeue and hold": ("requeue", ", $4", [True]),
    "checkpoint": ("checkpoint", "", []),
    **{
        f"update {name}": ("update", ", $4::jsonb", [json.dumps({name: value})])
        for name, value in {
            "nice": 5, "name": "taken", "comment": "x", "time_limit_s": 60, "array_throttle": 1,
            "begin_at": "2030-01-01T00:00:00Z", "deadline_at": "2030-01-02T00:00:00Z",
            "dependency": None, "booking": None, "partitions": ["main"], "account": "default",
        }.items()
    },
}  # fmt: skip
TASKS = {
    "one task that waits": "{[5,6)}",
    "one task that runs": "{[0,1)}",
    "one task with a row of its own": "{[9,10)}",
    "one task that has ended": "{[1,2)}",
    "a part of the waiting range": "{[4,6),[7,8)}",
    "the whole waiting range": "{[2,9)}",
    "every task": "{[0,12)}",
}
FILTERS: dict[str, dict[str, Any]] = {
    "all": {"all": True},
    "user": {"user": "bob"},
    "name": {"name": ["bobs"]},
    "state": {"state": ["PENDING", "RUNNING", "CONFIGURING"]},
    "partition": {"partition": ["main"]},
    "account": {"account": ["default"]},
    "qos": {"qos": ["normal"]},
    "user and name": {"user": "bob", "name": "bobs"},
}
TABLES = ("job", "pending", "running", "array_job", "dependency", "allocation", "attempt", "event")


def a_scene(queue: Queue, held: bool) -> tuple[int, list[int]]:
    """Jobs of Bob in every state: his array, and his other jobs."""
    array = queue.submit(BOB, array="0-11%2", name="bobs", gpus=1)
    first = queue.start()
    queue.end(queue.task(array, 1))
    queue.hold((array, "{[9,10)}"), who=BOB)
    queue.cancel((array, "{[10,12)}"), who=BOB)
    running = queue.submit(BOB, name="bobs")
    queue.start()
    pending = queue.submit(BOB, name="bobs", dependency=f"afterany:{running}")
    singleton = queue.submit(BOB, name="bobs", dependency="singleton")
    ended = queue.submit(BOB, name="bobs", hold=True)
    queue.cancel(ended, who=BOB)
    if held:
        queue.hold(array, pending, who=BOB)
    assert first
    return array, [running, pending, singleton, ended]


def rows(queue: Queue) -> dict[str, list[str]]:
    return {
        table: sorted(queue.sql.values(f"select t::text from odc.{table} as t")) for table in TABLES
    }


@pytest.mark.parametrize("held", [False, True], ids=["waiting", "held"])
@pytest.mark.parametrize("change", CHANGES)
def test_other_users_cannot_change_a_job_by_any_selection(
    queue: Queue, change: str, held: bool
) -> None:
    """Found: hold and release of a part of an array's waiting range were carried out."""
    verb, more, arguments = CHANGES[change]
    array, others = a_scene(queue, held)
    named: dict[str, list[int | tuple[int, str]]] = {
        "the array": [array],
        "jobs": list(others),
        "a task by its id": [queue.task(array, 9)],
        "a part beside all": [array, (array, "{[4,6)}"), *others],
        **{form: [(array, tasks)] for form, tasks in TASKS.items()},
    }
    before = rows(queue)
    for form, ids in named.items():
        answers = queue.change(verb, *ids, who=ALICE, more=more, arguments=arguments)
        assert answers, form
        assert {(a["outcome"], a["code"]) for a in answers} == {("refused", "OD013")}, form
        assert rows(queue) == before, form
        alone = {
            "ids": [
                {"job_id": i, "tasks": None, "alone": True}
                if isinstance(i, int)
                else {"job_id": i[0], "tasks": i[1], "alone": True}
                for i in ids
            ]
        }
        answers = queue.change(verb, who=ALICE, more=more, arguments=arguments, **alone)
        assert {(a["outcome"], a["code"]) for a in answers} == {("refused", "OD013")}, form
        assert rows(queue) == before, form
    for form, filters in FILTERS.items():
        answers = queue.change(verb, who=ALICE, more=more, arguments=arguments, **filters)
        assert answers == [], form
        assert rows(queue) == before, form


@pytest.mark.parametrize("change", ["hold", "release"])
def test_beside_another_users_job_only_the_own_job_is_changed(queue: Queue, change: str) -> None:
    theirs, mine = queue.submit(BOB, array="0-9", hold=True), queue.submit(array="0-9", hold=True)
    before = queue.pending(theirs)
    outcomes = getattr(queue, change)((theirs, "{[3,5)}"), (mine, "{[3,5)}"))
    assert outcomes.pop(theirs) == "OD013"
    assert set(outcomes.values()) == {"held" if change == "hold" else "released"}
    assert {queue.job(task)["user_name"] for task in outcomes} == {"alice"}
    assert queue.pending(theirs) == before


@pytest.mark.parametrize("tasks", ["{[3,4)}", "{[3,6)}", "{[0,10)}"])
def test_tasks_held_by_an_operator_are_neither_released_nor_split(queue: Queue, tasks: str) -> None:
    array = queue.submit(array="0-9")
    queue.hold(array, who=ROOT)
    before = rows(queue)
    assert set(queue.release((array, tasks)).values()) == {"OD013"}
    assert set(queue.release((array, tasks), who=BOB).values()) == {"OD013"}
    assert rows(queue) == before
