"""Hold, release and requeue."""

from __future__ import annotations

import pytest

from odcd.errors import TooLarge
from tests.support.builders.jobs import BOB, ROOT, Queue


def test_a_held_job_does_not_start_until_it_is_released(queue: Queue) -> None:
    job = queue.submit()
    assert queue.hold(job) == {job: "held"}
    assert queue.start() == []
    queue.move(60)
    assert queue.release(job) == {job: "released"}
    assert queue.pending(job)["eligible_at"] is not None
    assert queue.start() == [job]
    assert queue.events(job) == ["submitted", "held", "released", "started"]


def test_a_release_of_a_job_that_is_not_held_changes_nothing(queue: Queue) -> None:
    job, held = queue.submit(), queue.submit()
    queue.hold(held)
    assert queue.release(job, held) == {job: "not_held", held: "released"}
    assert queue.events(job) == ["submitted"]


def test_a_user_cannot_release_what_an_operator_holds(queue: Queue) -> None:
    job = queue.submit()
    queue.hold(job, who=ROOT)
    assert queue.pending(job)["held"] == "admin"
    queue.hold(job)
    assert queue.pending(job)["held"] == "admin"
    assert queue.release(job) == {job: "OD013"}
    assert queue.release(job, who=ROOT) == {job: "released"}
    assert queue.start() == [job]


def test_an_operators_hold_of_their_own_job_is_a_user_hold(queue: Queue) -> None:
    job = queue.submit(ROOT)
    queue.hold(job, who=ROOT)
    assert queue.pending(job)["held"] == "user"


@pytest.mark.parametrize("verb", ["hold", "release"])
def test_only_the_users_own_pending_jobs_can_be_held_and_released(queue: Queue, verb: str) -> None:
    running, ended, bobs = queue.submit(), queue.submit(), queue.submit(BOB)
    queue.start()
    queue.end(ended)
    change = getattr(queue, verb)
    assert change(running, ended, bobs, 999_999) == {
        running: "OD012", ended: "OD012", bobs: "OD013", 999_999: "OD006",
    }  # fmt: skip


def test_single_tasks_of_an_array_can_be_held(queue: Queue) -> None:
    array = queue.submit(array="0-4")
    held = queue.hold((array, "{[1,3)}"))
    assert set(held.values()) == {"held"}
    assert {queue.job(task)["array_task_id"] for task in held} == {1, 2}
    started = {queue.job(task)["array_task_id"] for task in queue.start()}
    assert started == {0, 3, 4}
    queue.release((array, "{[1,2)}"))
    assert queue.start() == [queue.task(array, 1)]
    assert queue.release(array) == {queue.task(array, 2): "released"}
    assert queue.start() == [queue.task(array, 2)]


def test_tasks_named_one_by_one_are_held_once(queue: Queue) -> None:
    array = queue.submit(array="0-4")
    held = queue.hold((array, "{[1,3)}"), (array, "{[2,4)}"))
    assert len(held) == 3


def test_a_released_task_takes_its_place_within_the_throttle(queue: Queue) -> None:
    array = queue.submit(array="0-4%1")
    queue.hold((array, "{[0,1)}"))
    [first] = queue.start()
    queue.release((array, "{[0,1)}"))
    assert queue.start() == []
    queue.end(first)
    assert queue.start() == [queue.task(array, 0)]
    assert queue.start() == []


@pytest.mark.parametrize("verb", ["hold", "release"])
def test_at_most_1000_tasks_of_an_array_are_changed_separately(queue: Queue, verb: str) -> None:
    array = queue.submit(array="0-999999", hold=True)
    change = getattr(queue, verb)
    change((array, "{[0,600)}"))
    before = queue.pending(array)
    for tasks in ("{[1000,1401)}", "{[1,900000)}"):
        with pytest.raises(TooLarge, match=f"tasks of array {array}") as refusal:
            change((array, tasks))
        assert "1,000" in (refusal.value.hint or "")
        assert queue.pending(array) == before
    assert len(change((array, "{[1000,1400)}"))) == 400


def test_requeued_tasks_do_not_count_as_separate_tasks(queue: Queue) -> None:
    array = queue.submit(array="0-2000", gpus=1)
    started = queue.start()
    queue.requeue(*started, hold=True)
    queue.end(*started)
    assert len(queue.hold((array, "{[1000,2000)}"))) == 1000


def test_an_array_does_not_wait_as_more_than_10000_ranges(queue: Queue) -> None:
    def every_second(first: int, count: int) -> str:
        tasks = range(first, first + 2 * count, 2)
        return "{" + ",".join(f"[{task},{task + 1})" for task in tasks) + "}"

    array = queue.submit(array="0-999999", hold=True)
    queue.cancel((array, every_second(1, 9_999)))
    before = queue.pending(array)
    for change in (queue.cancel, queue.hold):
        with pytest.raises(TooLarge, match="more than 10,000 ranges"):
            change((array, every_second(50_001, 1)))
        assert queue.pending(array) == before
    assert queue.cancel((array, "{[0,1)}")) == {array: "cancelled"}
    assert queue.cancel(array) == {array: "cancelled"}


def test_a_held_job_with_a_begin_time_is_ready_when_both_are_over(queue: Queue) -> None:
    job = queue.submit()
    waiting = queue.submit(dependency=f"afterany:{job}", hold=True)
    queue.cancel(job)
    assert queue.pending(waiting)["eligible_at"] is None
    queue.release(waiting)
    assert queue.pending(waiting)["eligible_at"] is not None
    assert queue.start() == [waiting]


# -- requeue --------------------------------------------------------------------------------------


def test_a_requeued_job_runs_again_under_its_id_and_queue_time(queue: Queue) -> None:
    job = queue.submit()
    queue.move(5)
    queue.start()
    queue.move(60)
    assert queue.requeue(job) == {job: "requeueing"}
    assert (queue.running(job)["intent"], queue.state(job)) == ("requeue", "COMPLETING")
    queue.end(job, exit_code=143)
    pending = queue.pending(job)
    assert (pending["attempt"], pending["queued_at"]) == (2, queue.job(job)["submitted_at"])
    assert queue.start() == [job]
    assert queue.running(job)["attempt"] == 2


def test_a_requeue_with_hold_waits_for_its_release(queue: Queue) -> None:
    job = queue.submit()
    queue.start()
    queue.requeue(job, hold=True)
    queue.end(job)
    assert queue.start() == []
    queue.release(job)
    assert queue.start() == [job]


def test_a_requeued_task_keeps_its_place_in_the_throttle(queue: Queue) -> None:
    array = queue.submit(array="0-4%1")
    [task] = queue.start()
    queue.requeue(task)
    queue.end(task)
    assert queue.pending(array)["open_count"] == 0
    assert queue.start() == [task]


def test_an_array_is_requeued_where_it_runs_and_held_where_it_waits(queue: Queue) -> None:
    array = queue.submit(array="0-4%2")
    running = queue.start()
    assert queue.hold(array) == {array: "held"}
    assert queue.requeue(array) == dict.fromkeys(running, "requeueing")


def test_a_held_requeued_task_does_not_block_its_array(queue: Queue) -> None:
    queue.submit(array="0-4%1")
    [task] = queue.start()
    queue.requeue(task, hold=True)
    queue.end(task)
    [next_task] = queue.start()
    assert next_task != task


def test_a_requeue_of_other_jobs_is_refused(queue: Queue) -> None:
    never = queue.submit(requeue=False)
    ended, cancelled, bobs = queue.submit(), queue.submit(), queue.submit(BOB)
    queue.start()
    queue.end(ended)
    queue.cancel(cancelled)
    pending = queue.submit(hold=True)
    jobs = (never, ended, cancelled, bobs, pending, 999_999)
    assert [queue.requeue(*jobs)[job] for job in jobs] == [
        "OD012", "OD012", "OD012", "OD013", "OD012", "OD006",
    ]  # fmt: skip
    hints = {a["job_id"]: a["hint"] for a in queue.change("requeue", ended, never)}
    assert "submit it again" in hints[ended]
    assert "submit it again" in hints[never]
