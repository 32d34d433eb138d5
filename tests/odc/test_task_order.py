"""The rows of an array are in the order of its tasks."""

from __future__ import annotations

import msgspec

from odc import calls, models
from tests.odcctl.objects import a_job


def test_the_rows_of_an_array_are_in_the_order_of_its_tasks() -> None:
    waiting = a_job(77, array_job_id=77, array_tasks="3-9%2")
    started = [
        a_job(78, array_job_id=77, array_task_id=2),
        a_job(79, array_job_id=77, array_task_id=1),
    ]
    rows = msgspec.convert([waiting, *started], list[models.Job], strict=False)
    assert [row.id for row in calls.by_task(rows)] == [79, 78, 77]
