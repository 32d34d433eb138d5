"""A job waits for others as sbatch's --dependency says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.builders.jobs import Queue

LONG = {"ntasks": 1, "time_limit_s": 3600}


def follower(queue: Queue, dependency: str, **fields: object) -> int:
    return queue.submit(dependency=dependency, **fields)


@pytest.mark.parametrize(
    ("kind", "how", "waits"),
    [
        ("after", "pending", "waiting"),
        ("after", "running", "met"),
        ("after", "completed", "met"),
        ("after", "failed", "met"),
        ("after", "cancelled", "met"),
        ("afterany", "pending", "waiting"),
        ("afterany", "running", "waiting"),
        ("afterany", "completed", "met"),
        ("afterany", "failed", "met"),
        ("afterany", "cancelled", "met"),
        ("afterok", "running", "waiting"),
        ("afterok", "completed", "met"),
        ("afterok", "failed", "never"),
        ("afterok", "cancelled", "never"),
        ("afternotok", "running", "waiting"),
        ("afternotok", "completed", "never"),
        ("afternotok", "failed", "met"),
        ("afternotok", "cancelled", "met"),
        ("aftercorr", "completed", "met"),
        ("aftercorr", "failed", "never"),
    ],
)
@pytest.mark.parametrize("submitted", ["before", "after"])
def test_a_dependency_is_met_as_its_kind_says(
    queue: Queue, kind: str, how: str, waits: str, submitted: str
) -> None:
    """For dependents submitted before and after the end; on jobs, arrays and tasks."""
    job = queue.submit(**LONG)
    arrays = [queue.submit(array="1-3", **LONG) for _ in range(3)]
    targets = [f"{job}", f"{arrays[0]}", f"{arrays[1]}_2", f"{arrays[2]}_3"]
    waiting: list[int] = []
    if submitted == "before":
        waiting = [follower(queue, f"{kind}:{target}") for target in targets]
    if how == "cancelled":
        queue.cancel(job, *arrays)
    elif how != "pending":
        started = queue.start()
        if how == "failed":
            # One failing task fails the array as a whole.
            good = {queue.task(arrays[0], task) for task in (1, 3)}
            queue.end(*good)
            queue.end(*(set(started) - good), exit_code=1)
        elif how == "completed":
            queue.end(*started)
    if submitted == "after":
        waiting = [follower(queue, f"{kind}:{target}") for target in targets]
    if waits == "met":
        assert set(waiting) <= set(queue.start())
    else:
        assert [queue.waits(one) for one in waiting] == [waits] * 4
        assert not set(waiting) & set(queue.start())


def test_a_job_whose_dependency_failed_stays_pending_with_a_reason(queue: Queue) -> None:
    job = queue.submit()
    waiting = follower(queue, f"afterok:{job}")
    queue.cancel(job)
    assert queue.waits(waiting) == "never"
    assert queue.state(waiting) == "PENDING"
    shown = queue.sql.value("select reason from odc.pending_job where id = $1", waiting)
    assert shown == "DependencyNeverSatisfied"


def test_all_terms_joined_by_commas_must_hold(queue: Queue) -> None:
    one, two = queue.submit(), queue.submit()
    waiting = follower(queue, f"afterok:{one},afterany:{two}")
    queue.start()
    queue.end(one)
    assert queue.waits(waiting) == "waiting"
    queue.end(two, exit_code=1)
    assert queue.pending(waiting)["ready"]


def test_one_term_of_those_joined_by_question_marks_is_enough(queue: Queue) -> None:
    one, two = queue.submit(), queue.submit()
    waiting = follower(queue, f"afterok:{one}?afterok:{two}")
    lost = follower(queue, f"afterok:{one}?afternotok:{two}")
    queue.start()
    queue.end(one, exit_code=1)
    assert (queue.waits(waiting), queue.waits(lost)) == ("waiting", "waiting")
    queue.end(two)
    assert (queue.waits(waiting), queue.waits(lost)) == ("met", "never")


def test_one_lost_term_of_all_is_enough_to_be_lost(queue: Queue) -> None:
    one, two = queue.submit(), queue.submit()
    waiting = follower(queue, f"afterok:{one}:{two}")
    queue.cancel(one)
    assert queue.waits(waiting) == "never"


def test_a_delay_counts_from_the_start(queue: Queue) -> None:
    job = queue.submit(**LONG)
    waiting = follower(queue, f"after:{job}+10")
    queue.start()
    queue.move(590)
    late = follower(queue, f"after:{job}+10")
    assert queue.sweep() == queue.now + timedelta(seconds=10)
    queue.move(9)
    queue.sweep()
    assert (queue.waits(waiting), queue.waits(late)) == ("waiting", "waiting")
    queue.move(1)
    queue.sweep()
    assert (queue.waits(waiting), queue.waits(late)) == ("met", "met")


def test_a_requeue_is_neither_an_end_nor_a_second_start(queue: Queue) -> None:
    job = queue.submit(**LONG)
    queue.start()
    queue.requeue(job)
    queue.end(job)
    assert queue.state(job) == "PENDING"
    end = follower(queue, f"afterany:{job}")
    start = follower(queue, f"after:{job}")
    assert (queue.waits(end), queue.waits(start)) == ("waiting", "met")


def test_a_chain_runs_in_order(queue: Queue) -> None:
    chain = [queue.submit()]
    for _ in range(5):
        chain.append(follower(queue, f"afterok:{chain[-1]}"))
    for job in chain:
        assert queue.start() == [job]
        queue.end(job)


# -- singleton ------------------------------------------------------------------------------------


def test_a_singleton_waits_for_all_earlier_jobs_of_its_name_and_user(queue: Queue) -> None:
    first = queue.submit(name="daily")
    array = queue.submit(name="daily", array="0-1")
    other = queue.submit(name="weekly")
    waiting = follower(queue, "singleton", name="daily")
    later = queue.submit(name="daily")
    started = queue.start()
    assert waiting not in started
    assert {first, other, later} <= set(started)
    queue.end(first, other, later)
    assert queue.waits(waiting) == "waiting"
    queue.end(*(job for job in started if queue.job(job)["array_job_id"] == array))
    assert queue.start() == [waiting]


def test_singletons_run_one_after_another(queue: Queue) -> None:
    jobs = [follower(queue, "singleton", name="daily") for _ in range(3)]
    for job in jobs:
        assert queue.start() == [job]
        queue.end(job)


def test_a_cancelled_singleton_lets_the_next_go(queue: Queue) -> None:
    running = queue.submit(name="daily")
    queue.start()
    second, third = (follower(queue, "singleton", name="daily") for _ in range(2))
    queue.cancel(second)
    queue.end(running)
    assert queue.start() == [third]


def test_a_singleton_array_does_not_wait_for_its_own_tasks(queue: Queue) -> None:
    array = queue.submit(name="daily", array="0-3", dependency="singleton")
    queue.hold((array, "{[1,2)}"))
    queue.release((array, "{[1,2)}"))
    assert len(queue.start()) == 4


def test_renaming_releases_a_singleton(queue: Queue) -> None:
    queue.submit(name="daily", hold=True)
    waiting = follower(queue, "singleton", name="daily")
    queue.update(waiting, changes={"name": "own"})
    assert queue.start() == [waiting]


# -- task by task ---------------------------------------------------------------------------------


def test_aftercorr_opens_each_task_when_its_counterpart_has_ended_well(queue: Queue) -> None:
    first = queue.submit(array="0-3")
    second = follower(queue, f"aftercorr:{first}", array="0-3")
    assert queue.pending(second)["open_count"] == 0
    queue.start()
    queue.end(queue.task(first, 2))
    [started] = queue.start()
    assert queue.job(started)["array_task_id"] == 2
    queue.end(queue.task(first, 0), exit_code=1)
    queue.end(queue.task(first, 1))
    [started] = queue.start()
    assert queue.job(started)["array_task_id"] == 1
    queue.end(queue.task(first, 3))
    queue.start()
    # Task 0 can never start, and nothing else of the array is left.
    assert queue.waits(second) == "never"
    assert (
        queue.sql.value(
            "select odc._task_text(tasks, null) from odc.pending where job_id = $1", second
        )
        == "0"
    )


def test_aftercorr_of_a_late_array_sees_what_has_ended(queue: Queue) -> None:
    first = queue.submit(array="0-3")
    queue.start()
    queue.end(queue.task(first, 0))
    queue.end(queue.task(first, 1), exit_code=1)
    second = follower(queue, f"aftercorr:{first}", array="0-5")
    # 0 ended with success; 4 and 5 have no counterpart.
    assert {queue.job(job)["array_task_id"] for job in queue.start()} == {0, 4, 5}
    assert queue.waits(second) == "met"


def test_aftercorr_of_two_arrays_needs_both_counterparts(queue: Queue) -> None:
    one, two = queue.submit(array="0-1"), queue.submit(array="0-1")
    third = follower(queue, f"aftercorr:{one}:{two}", array="0-1")
    queue.start()
    queue.end(queue.task(one, 0), queue.task(one, 1))
    assert queue.pending(third)["open_count"] == 0
    queue.end(queue.task(two, 1))
    [started] = queue.start()
    assert queue.job(started)["array_task_id"] == 1


def test_a_cancelled_counterpart_closes_its_task_for_good(queue: Queue) -> None:
    first = queue.submit(array="0-1", hold=True)
    second = follower(queue, f"aftercorr:{first}", array="0-1")
    queue.cancel((first, "{[0,1)}"))
    queue.release(first)
    [task] = queue.start()
    queue.end(task)
    [started] = queue.start()
    assert queue.job(started)["array_task_id"] == 1
    assert queue.waits(second) == "never"


def test_a_task_held_apart_waits_for_its_own_counterpart(queue: Queue) -> None:
    first = queue.submit(array="0-3")
    second = follower(queue, f"aftercorr:{first}", array="0-3")
    queue.hold((second, "{[1,2)}"))
    queue.release((second, "{[1,2)}"))
    queue.start()
    queue.end(queue.task(first, 1))
    [started] = queue.start()
    assert queue.job(started)["array_task_id"] == 1


def test_aftercorr_among_alternatives_is_refused(queue: Queue) -> None:
    first = queue.submit(array="0-1")
    assert (
        queue.refused(dependency=f"aftercorr:{first}?afterany:{first}", array="0-1").code == "OD016"
    )


# -- arrays as targets ----------------------------------------------------------------------------


def test_an_array_as_a_whole_is_over_when_its_last_task_is(queue: Queue) -> None:
    array = queue.submit(array="0-4%2")
    good, lost, over = (
        follower(queue, f"{kind}:{array}") for kind in ("afterok", "afternotok", "afterany")
    )
    for _ in range(3):
        assert queue.waits(over) == "waiting"
        queue.end(*queue.start())
    assert (queue.waits(good), queue.waits(lost), queue.waits(over)) == ("met", "never", "met")


def test_afterok_of_an_array_fails_with_its_first_failing_task(queue: Queue) -> None:
    array = queue.submit(array="0-4%1")
    good, bad = follower(queue, f"afterok:{array}"), follower(queue, f"afternotok:{array}")
    queue.end(*queue.start(), exit_code=1)
    assert (queue.waits(good), queue.waits(bad)) == ("never", "waiting")


def test_after_an_array_means_after_its_last_start(queue: Queue) -> None:
    array = queue.submit(array="0-3%2", **LONG)
    waiting = follower(queue, f"after:{array}")
    tasks = queue.start()
    assert queue.waits(waiting) == "waiting"
    queue.end(*tasks)
    queue.start()
    assert queue.waits(waiting) == "met"


def test_tasks_cancelled_together_count_as_ended(queue: Queue) -> None:
    array = queue.submit(array="0-9")
    over, task = follower(queue, f"afterany:{array}"), follower(queue, f"afterany:{array}_7")
    queue.cancel((array, "{[5,10)}"))
    assert (queue.waits(over), queue.waits(task)) == ("waiting", "met")
    assert queue.waits(follower(queue, f"afterok:{array}_7")) == "never"
    queue.end(*queue.start())
    assert queue.pending(over)["ready"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{array}_9", "a task that array"),
        ("{job}_1", "is not an array"),
        ("999999", "does not exist"),
    ],
)
def test_a_dependency_on_an_unknown_job_is_refused(queue: Queue, name: str, message: str) -> None:
    name = name.format(job=queue.submit(), array=queue.submit(array="0-3"))
    error = queue.refused(dependency=f"afterany:{name}")
    assert error.code == "OD011"
    assert message in error.message


# -- changing a dependency ------------------------------------------------------------------------


def test_a_pending_jobs_dependency_can_be_replaced_and_taken_away(queue: Queue) -> None:
    one, two = queue.submit(hold=True), queue.submit(hold=True)
    waiting = follower(queue, f"afterok:{one}")
    queue.update(waiting, changes={"dependency": f"afterany:{two}"})
    queue.cancel(one)
    assert queue.waits(waiting) == "waiting"
    assert queue.job(waiting)["dependency"] == f"afterany:{two}"
    queue.update(waiting, changes={"dependency": None})
    assert queue.start() == [waiting]


def test_no_circle_of_jobs_may_wait_for_one_another(queue: Queue) -> None:
    first = queue.submit(hold=True)
    second = follower(queue, f"afterok:{first}")
    third = follower(queue, f"afterok:{second}")
    for target in (first, second, third):
        [answer] = queue.updates(first, changes={"dependency": f"afterok:{target}"})
        assert (answer["outcome"], answer["code"]) == ("refused", "OD011")
    assert queue.waits(third) == "waiting"


def test_a_released_target_of_many_wakes_them_all(queue: Queue) -> None:
    job = queue.submit()
    waiting = [follower(queue, f"afterok:{job}", ntasks=1) for _ in range(50)]
    queue.start()
    queue.end(job)
    assert queue.start() == waiting
