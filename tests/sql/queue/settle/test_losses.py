"""The loss of a node is never reported as a job's own failure, and never repeated without end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sql.queue.settle.test_facts import GANG, started, tell
from tests.support.builders.jobs import Queue

DOOMED = "Evicted: node h100-1 is being drained"


def again(queue: Queue, job_id: int) -> None:
    """Start the job again, however long it must wait for that."""
    queue.move(3600)
    queue.sweep()
    assert queue.start() == [job_id]


@pytest.mark.parametrize(
    ("before_s", "state"), [(0, "PENDING"), (299, "PENDING"), (301, "FAILED")], ids=str
)
def test_a_gang_about_to_lose_a_member_does_not_fail_by_itself(
    queue: Queue, before_s: int, state: str
) -> None:
    """Rank 0 fails because rank 1 is being ended, and its exit is reported first."""
    job_id = started(queue, **GANG)
    tell(queue, job_id, "doomed", rank=1, detail=DOOMED)
    queue.move(before_s)
    tell(queue, job_id, "exited", exit_code=1, rank=0)
    stops = queue.sql.rows("select job_id, intent from odc.take_stops(0, $1)", queue.now)
    assert stops == [{"job_id": job_id, "intent": "member_failed"}], "the other member must go"
    tell(queue, job_id, "exited", signal=15, rank=1)
    assert queue.state(job_id) == state
    attempt = queue.sql.row("select exit_code, reason from odc.attempt where job_id = $1", job_id)
    lost = state == "PENDING"
    expected = (None, DOOMED) if lost else (1, "NonZeroExitCode")
    assert (attempt["exit_code"], attempt["reason"]) == expected


@pytest.mark.parametrize(
    ("after_s", "state"), [(0, "PENDING"), (299, "PENDING"), (301, "FAILED")], ids=str
)
def test_a_loss_soon_after_a_failure_explains_it(queue: Queue, after_s: int, state: str) -> None:
    """The node goes silent: the other members notice before the cluster does."""
    job_id = started(queue, **GANG)
    tell(queue, job_id, "exited", exit_code=1, rank=0)
    queue.move(after_s)
    tell(queue, job_id, "lost", rank=1, detail="its node does not answer")
    assert queue.state(job_id) == state


@pytest.mark.parametrize(("doomed", "state"), [(True, "PENDING"), (False, "FAILED")], ids=str)
def test_a_pod_deleted_after_a_failure_explains_it_only_if_the_deletion_came_first(
    queue: Queue, doomed: bool, state: str
) -> None:
    """A new leader cannot know whether an earlier leader deleted the pod, to end the gang."""
    job_id = started(queue, **GANG)
    if doomed:
        tell(queue, job_id, "doomed", rank=1, detail=DOOMED)
    tell(queue, job_id, "exited", exit_code=1, rank=0)
    tell(queue, job_id, "doomed", rank=1, detail="seen by a new leader")
    tell(queue, job_id, "lost", rank=1, cause="deleted", detail="its pod was deleted")
    assert queue.state(job_id) == state


def test_a_gang_that_fails_while_a_node_is_down_runs_again(queue: Queue) -> None:
    job_id = started(queue, **GANG)
    queue.sql.execute(
        "update odc.node set state = 'DOWN', reason = 'not ready: gone' where name = $1",
        queue.sql.value("select n.name from odc.allocation a join odc.node n on n.id = a.node_id "
                        "where a.job_id = $1 and a.rank = 1", job_id),
    )  # fmt: skip
    queue.move(3600)
    tell(queue, job_id, "exited", exit_code=1, rank=0)
    tell(queue, job_id, "exited", signal=15, rank=1)
    assert queue.state(job_id) == "PENDING"


def test_a_job_on_one_node_is_not_excused_by_its_own_doom(queue: Queue) -> None:
    """Its executor knows whether its exit was caused by the loss."""
    job_id = started(queue, gpus=1)
    tell(queue, job_id, "doomed", detail=DOOMED)
    tell(queue, job_id, "exited", exit_code=1)
    assert queue.state(job_id) == "FAILED"


def test_a_lack_of_memory_is_not_excused_by_a_loss(queue: Queue) -> None:
    job_id = started(queue, **GANG)
    tell(queue, job_id, "exited", signal=9, cause="oom", rank=0)
    tell(queue, job_id, "lost", rank=1)
    assert queue.state(job_id) == "OUT_OF_MEMORY"


def test_a_job_that_keeps_losing_its_node_is_held_after_five_requeues(queue: Queue) -> None:
    job_id = started(queue, gpus=1)
    for attempt in range(1, 7):
        tell(queue, job_id, "lost", attempt=attempt)
        if attempt <= 5:
            assert queue.pending(job_id)["held"] is None
            again(queue, job_id)
    pending = queue.pending(job_id)
    assert (pending["held"], pending["reason"]) == ("admin", "JobHoldMaxRequeue")
    [cause] = json.loads(queue.sql.value("select odc._why_blocked($1)", job_id))
    assert cause["text"].startswith("held after losing its node 6 times")


def test_losses_preemptions_and_failed_launches_are_counted_separately(queue: Queue) -> None:
    """Before: any ten requeues held a job at its first failed launch."""
    job_id = started(queue, gpus=1)
    attempt = 1
    for _ in range(4):
        tell(queue, job_id, "lost", attempt=attempt)
        again(queue, job_id)
        queue.sql.execute(
            "update odc.running set intent = 'preempt', stop_sent_at = $2, intent_at = $2, "
            "preemption = $3 where job_id = $1",
            job_id, queue.now, json.dumps({"mode": "requeue"}),
        )  # fmt: skip
        tell(queue, job_id, "exited", signal=15, attempt=attempt + 1)
        again(queue, job_id)
        attempt += 2
    for _ in range(4):
        tell(queue, job_id, "start_failed", cause="launch", detail="no space", attempt=attempt)
        assert queue.pending(job_id)["held"] is None
        again(queue, job_id)
        attempt += 1
    tell(queue, job_id, "start_failed", cause="launch", detail="no space", attempt=attempt)
    assert queue.pending(job_id)["held"] == "admin"


def test_a_node_that_never_accepts_a_member_is_not_the_jobs_failure(queue: Queue) -> None:
    job_id = started(queue, gpus=1, requeue=False)
    for attempt in range(1, 9):
        tell(queue, job_id, "start_failed", cause="unscheduled", detail="taints", attempt=attempt)
        pending = queue.pending(job_id)
        assert (pending["held"], pending["reason"]) == (None, None)
        assert queue.start() == [], "the node is first left out"
        again(queue, job_id)
    states = queue.sql.values("select distinct state from odc.attempt where job_id = $1", job_id)
    assert states == ["BOOT_FAIL"]


GONE = "the cluster removed its pod before it started"
NOT_STARTED = {"cause": "launch", "detail": GONE}
DELETED = {"cause": "deleted", "detail": "its pod was deleted by something other than odc"}
SILENT = {"detail": "its node does not answer"}


@pytest.mark.parametrize(
    ("code", "kind", "end"),
    [
        (0, "start_failed", NOT_STARTED),
        (3, "start_failed", NOT_STARTED),
        (0, "start_failed", {"cause": "unscheduled", "detail": "Too many pods"}),
        (0, "lost", DELETED),
        (3, "lost", DELETED),
        (0, "lost", SILENT),
        (0, "exited", {"signal": 9}),
    ],
)
def test_the_end_of_a_script_decides_whatever_becomes_of_the_nodes_that_it_held(
    queue: Queue, code: int, kind: str, end: dict[str, Any]
) -> None:
    """odc ends the other members then: they may not have started yet, and a new leader takes their
    pods for deleted by something else. Before: the job ran again, or ended NODE_FAIL."""
    job_id = started(queue, **GANG, launch="first")
    tell(queue, job_id, "exited", exit_code=code, rank=0)
    tell(queue, job_id, kind, rank=1, **end)
    assert queue.state(job_id) == ("FAILED" if code else "COMPLETED")
    ended = queue.sql.row("select exit_code, signal from odc.job where id = $1", job_id)
    assert (ended["exit_code"], ended["signal"]) == (code, None)


@pytest.mark.parametrize("code", [0, 3])
def test_the_end_of_a_script_decides_beside_those_of_the_nodes_that_it_held(
    queue: Queue, code: int
) -> None:
    """A leader may report them together."""
    job_id = started(queue, **GANG, launch="first")
    queue.sql.rows(
        "select odc.record_facts(0, array[$1::bigint, $1], array[1, 1], array[1, 0], "
        "array['start_failed', 'exited'], array[$2::timestamptz, $2], array[null, $3::integer], "
        "array[null::integer, null], array['launch', null], array['not created', null], $2)",
        job_id, queue.now, code,
    )  # fmt: skip
    assert queue.state(job_id) == ("FAILED" if code else "COMPLETED")


def test_a_script_that_a_signal_ended_has_ended_too(queue: Queue) -> None:
    job_id = started(queue, **GANG, launch="first")
    tell(queue, job_id, "exited", signal=11, rank=0)
    tell(queue, job_id, "start_failed", rank=1, cause="launch", detail=GONE)
    assert queue.state(job_id) == "FAILED"
    assert queue.sql.value("select signal from odc.job where id = $1", job_id) == 11


def test_a_gang_whose_node_is_lost_during_its_script_runs_again(queue: Queue) -> None:
    job_id = started(queue, **GANG, launch="first")
    tell(queue, job_id, "lost", rank=1, detail="its node does not answer")
    tell(queue, job_id, "exited", exit_code=0, rank=0)
    assert queue.state(job_id) == "PENDING"
