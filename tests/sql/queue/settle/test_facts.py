"""The outcome of an attempt is decided once, from the facts about its members."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from odcd.errors import LeadershipLost, WrongState
from tests.support.builders.jobs import Queue

GANG = {"node_count": 2, "gpus_per_node": 8, "gpu_type": "h100"}


def tell(
    queue: Queue, job_id: int, kind: str, *, rank: int = 0, exit_code: int | None = None,
    signal: int | None = None, cause: str | None = None, detail: str | None = None,
    at: datetime | None = None, attempt: int = 1, term: int = 0, drains: str | None = None,
    used: str | None = None,
) -> list[int]:  # fmt: skip
    """Record one fact; returns the jobs whose attempt it ended."""
    rows = queue.sql.rows(
        "select job_id from odc.record_facts($1, array[$2::bigint], array[$3::integer], "
        "array[$4::integer], array[$5], array[$6::timestamptz], array[$7::integer], "
        "array[$8::integer], array[$9::text], array[$10::text], $11, p_drains => array[$12::text], "
        "p_used => array[$13::text])",
        term, job_id, attempt, rank, kind, at or queue.now, exit_code, signal, cause, detail,
        queue.now, drains, used,
    )  # fmt: skip
    return [row["job_id"] for row in rows]


def started(queue: Queue, **fields: object) -> int:
    job_id = queue.submit(**fields)
    assert queue.start() == [job_id]
    return job_id


@pytest.mark.parametrize(
    ("fact", "state", "reason"),
    [
        ({"exit_code": 0}, "COMPLETED", None),
        ({"exit_code": 3}, "FAILED", "NonZeroExitCode"),
        ({"signal": 9}, "FAILED", "NonZeroExitCode"),
        ({"signal": 15, "cause": "timeout"}, "TIMEOUT", "TimeLimit"),
        ({"exit_code": 0, "cause": "timeout"}, "TIMEOUT", "TimeLimit"),
        ({"signal": 9, "cause": "oom"}, "OUT_OF_MEMORY", "OutOfMemory"),
    ],
)
def test_an_exit_says_how_the_job_ended(
    queue: Queue, fact: dict[str, object], state: str, reason: str | None
) -> None:
    job_id = started(queue, gpus=1)
    tell(queue, job_id, "started")
    assert tell(queue, job_id, "exited", **fact) == [job_id]  # type: ignore[arg-type]
    job = queue.job(job_id)
    assert (job["state"], job["reason"]) == (state, reason)


def test_a_job_ends_when_its_process_did_not_when_we_learned_of_it(queue: Queue) -> None:
    job_id = started(queue, gpus=1)
    ended = queue.now + timedelta(seconds=25)
    queue.move(3600)
    tell(queue, job_id, "exited", exit_code=0, at=ended)
    assert queue.job(job_id)["ended_at"] == ended


def test_repeated_and_late_facts_change_nothing(queue: Queue) -> None:
    job_id = started(queue, gpus=1)
    assert tell(queue, job_id, "exited", exit_code=0) == [job_id]
    assert tell(queue, job_id, "exited", exit_code=1) == []
    assert tell(queue, job_id, "started") == []
    assert queue.state(job_id) == "COMPLETED"


def test_capacity_is_held_until_the_last_member_is_gone(queue: Queue) -> None:
    job_id = started(queue, **GANG)
    assert tell(queue, job_id, "exited", exit_code=0, rank=0) == []
    assert queue.sql.value("select sum(gpus) from odc.node_free") == 0
    assert tell(queue, job_id, "exited", exit_code=0, rank=1) == [job_id]
    assert queue.sql.value("select sum(gpus) from odc.node_free") == 16


def test_the_end_of_the_script_ends_the_members_that_hold_its_nodes(queue: Queue) -> None:
    """Whatever ends those members says nothing about the job."""
    for exit_code, state in ((0, "COMPLETED"), (4, "FAILED")):
        job_id = started(queue, **GANG, launch="first")
        for rank in (0, 1):
            tell(queue, job_id, "started", rank=rank)
        assert tell(queue, job_id, "exited", exit_code=exit_code) == []
        stops = queue.sql.rows("select job_id, intent from odc.take_stops(0, $1)", queue.now)
        assert stops == [{"job_id": job_id, "intent": "member_failed"}]
        state_now = "select state::text from odc.running where job_id = $1"
        assert queue.sql.value(state_now, job_id) == "COMPLETING"
        assert tell(queue, job_id, "exited", rank=1, signal=15) == [job_id]
        job = queue.job(job_id)
        assert (job["state"], job["exit_code"], job["signal"]) == (state, exit_code, None)


def test_a_member_that_holds_a_node_may_end_without_its_job(queue: Queue) -> None:
    job_id = started(queue, **GANG, launch="first")
    for rank in (0, 1):
        tell(queue, job_id, "started", rank=rank)
    assert tell(queue, job_id, "exited", rank=1, signal=15) == []
    state_now = "select state::text from odc.running where job_id = $1"
    assert queue.sql.value(state_now, job_id) == "RUNNING"
    assert tell(queue, job_id, "exited", exit_code=0) == [job_id]
    assert queue.job(job_id)["state"] == "COMPLETED"


def test_one_failed_member_ends_the_whole_gang(queue: Queue) -> None:
    job_id = started(queue, **GANG)
    tell(queue, job_id, "exited", exit_code=7, rank=1)
    stops = queue.sql.rows("select job_id, intent from odc.take_stops(0, $1)", queue.now)
    assert stops == [{"job_id": job_id, "intent": "member_failed"}]
    tell(queue, job_id, "exited", signal=15, rank=0)
    job = queue.job(job_id)
    reason = "how the member failed, not how the others were ended for it"
    assert (job["state"], job["exit_code"], job["signal"]) == ("FAILED", 7, None), reason


def test_a_stop_is_returned_once_a_minute_until_it_is_done(queue: Queue) -> None:
    job_id = started(queue, gpus=1)
    queue.cancel(job_id)
    taken = "select count(*) from odc.take_stops(0, $1)"
    assert [queue.sql.value(taken, queue.now) for _ in range(2)] == [1, 0]
    queue.move(61)
    assert queue.sql.value(taken, queue.now) == 1


def test_a_lost_job_runs_again_under_its_id_and_queue_time(queue: Queue) -> None:
    job_id = queue.submit(gpus=1)
    queued_at = queue.pending(job_id)["queued_at"]
    queue.move(10)
    queue.start()
    tell(queue, job_id, "lost")
    pending = queue.pending(job_id)
    assert (pending["attempt"], pending["queued_at"]) == (2, queued_at)
    [attempt] = queue.sql.rows("select state, requeued from odc.attempt where job_id = $1", job_id)
    assert attempt == {"state": "NODE_FAIL", "requeued": True}


def test_a_lost_job_that_may_not_run_again_has_failed_with_its_node(queue: Queue) -> None:
    job_id = started(queue, gpus=1, requeue=False)
    tell(queue, job_id, "lost")
    assert queue.state(job_id) == "NODE_FAIL"


def test_a_failed_launch_is_retried_later_a_limited_number_of_times(queue: Queue) -> None:
    job_id = started(queue, gpus=1, requeue=False)
    for attempt in range(1, 6):
        tell(queue, job_id, "start_failed", cause="launch", detail="no space", attempt=attempt)
        assert queue.start() == [], "it waits before it is tried again"
        if attempt < 5:
            queue.move(3600)
            queue.sweep()
            assert queue.start() == [job_id]
    pending = queue.pending(job_id)
    assert (pending["held"], pending["reason"]) == ("admin", "JobHoldMaxRequeue")


@pytest.mark.parametrize("requeue", [False, True])
@pytest.mark.parametrize("first", [0, 1], ids=["ran-first", "failed-first"])
def test_a_gang_launched_in_part_has_run(queue: Queue, requeue: bool, first: int) -> None:
    """Rank 0 ran while the machine could not launch rank 1: the job has started."""
    job_id = started(queue, **GANG, requeue=requeue)
    for turn in (first, 1 - first):
        if turn == 0:
            tell(queue, job_id, "started", rank=0)
        else:
            tell(queue, job_id, "start_failed", cause="launch", detail="no space", rank=1)
    tell(queue, job_id, "exited", signal=15, rank=0)
    if requeue:
        assert queue.pending(job_id)["attempt"] == 2
    else:
        assert queue.state(job_id) == "NODE_FAIL"


def test_a_lost_member_beside_one_never_launched_may_have_run(queue: Queue) -> None:
    job_id = started(queue, **GANG, requeue=False)
    tell(queue, job_id, "start_failed", cause="launch", detail="no space", rank=1)
    tell(queue, job_id, "lost", rank=0)
    assert queue.state(job_id) == "NODE_FAIL"


def test_an_intent_takes_precedence_over_the_exit(queue: Queue) -> None:
    job_id = started(queue, gpus=1)
    queue.cancel(job_id)
    tell(queue, job_id, "exited", exit_code=0)
    assert queue.state(job_id) == "CANCELLED"


def test_an_end_is_final(queue: Queue) -> None:
    job_id = started(queue, gpus=1)
    tell(queue, job_id, "exited", exit_code=0)
    with pytest.raises(WrongState, match="has ended as COMPLETED, which cannot change"):
        queue.sql.execute("update odc.job set state = 'FAILED' where id = $1", job_id)


def test_an_old_leader_records_nothing(queue: Queue) -> None:
    job_id = started(queue, gpus=1)
    queue.sql.execute("update odc.term set term = 5")
    with pytest.raises(LeadershipLost):
        tell(queue, job_id, "exited", exit_code=0)
    assert queue.state(job_id) == "CONFIGURING"


def test_a_member_that_has_ended_is_never_sent_out_to_start(queue: Queue) -> None:
    job_id = started(queue, **GANG)
    tell(queue, job_id, "exited", exit_code=0, rank=0)
    [body] = queue.sql.values("select body from odc.dispatches(0, null)")
    states = {m["rank"]: m["state"] for m in json.loads(body)["members"]}
    assert states == {0: "ended", 1: "starting"}


def test_a_plain_job_is_sent_out_with_the_keys_of_the_last_release_only(queue: Queue) -> None:
    """Daemons of that release may lead until the upgrade ends; other keys made them end."""
    started(queue, gpus=1)
    [body] = queue.sql.values("select body from odc.dispatches(0, null)")
    assert not {"tmp_mib", "component_nodes"} & set(json.loads(body))


def test_a_changed_time_limit_is_returned_until_it_was_applied(queue: Queue) -> None:
    """An executor that missed the change would end an extended job at its old end."""
    job_id = started(queue, gpus=1, time_limit_s=3600)
    assert queue.update(job_id, changes={"time_limit_s": 600}) == {job_id: "updated"}
    ends = "select job_id, ends_at from odc.moved_ends(0)"
    note_ends = "select odc.note_ends(0, array[$1::bigint], array[1], array[$2::timestamptz])"
    [row] = queue.sql.rows(ends)
    assert row == {"job_id": job_id, "ends_at": queue.now + timedelta(seconds=600)}
    assert queue.sql.rows(ends) == [row]
    queue.sql.rows(note_ends, job_id, row["ends_at"] + timedelta(seconds=1))
    assert queue.sql.rows(ends) == [row], "it has moved again"
    queue.sql.rows(note_ends, job_id, row["ends_at"])
    assert queue.sql.rows(ends) == []


def nodes_of(queue: Queue, job_id: int) -> list[str]:
    return queue.sql.values(
        "select n.name from odc.allocation as a join odc.node as n on n.id = a.node_id "
        "where a.job_id = $1 order by a.rank",
        job_id,
    )


def node_state(queue: Queue, name: str) -> tuple[str, str | None, str | None]:
    row = queue.sql.row("select state::text, reason, reason_by from odc.node where name = $1", name)
    return row["state"], row["reason"], row["reason_by"]


def test_a_failed_prolog_drains_its_node_and_returns_the_job_to_the_queue(queue: Queue) -> None:
    job_id = started(queue, **GANG)
    first, second = nodes_of(queue, job_id)
    why = "the prolog failed: exit code 1"
    assert tell(queue, job_id, "start_failed", cause="launch", detail=why) == []
    drains = '{"1": "Prolog error"}'
    tell(queue, job_id, "start_failed", rank=1, cause="launch", detail=why, drains=drains)
    assert node_state(queue, first) == ("UP", None, None)
    assert node_state(queue, second) == ("DRAIN", "Prolog error", "odcd")
    assert queue.state(job_id) == "PENDING"
    assert queue.pending(job_id)["reason"] == "JobLaunchFailure"
    assert queue.sql.value("select count(*) from odc.event where kind = 'node_drain'") == 1


def test_a_failed_epilog_drains_all_its_nodes_and_the_job_keeps_its_end(queue: Queue) -> None:
    job_id = started(queue, **GANG)
    nodes = nodes_of(queue, job_id)
    for rank in (0, 1):
        tell(queue, job_id, "started", rank=rank)
    tell(queue, job_id, "exited", exit_code=0)
    drains = '{"0": "Epilog error", "1": "Epilog error"}'
    tell(queue, job_id, "exited", rank=1, exit_code=0, drains=drains)
    assert {node_state(queue, name)[:2] for name in nodes} == {("DRAIN", "Epilog error")}
    assert queue.job(job_id)["state"] == "COMPLETED"


def test_a_repeated_fact_does_not_drain_a_node_that_was_resumed(queue: Queue) -> None:
    job_id = started(queue, **GANG)
    name, _ = nodes_of(queue, job_id)
    drains = '{"0": "Epilog error"}'
    tell(queue, job_id, "started")
    tell(queue, job_id, "exited", exit_code=0, drains=drains)
    assert node_state(queue, name)[0] == "DRAIN"
    queue.sql.row(
        "select odc.set_node_state($1, array[$2], 'UP', null, $3)",
        json.dumps({"user": "ann", "uid": 0, "operator": True}), name, queue.now,
    )  # fmt: skip
    tell(queue, job_id, "exited", exit_code=0, drains=drains)
    assert node_state(queue, name)[0] == "UP"


def test_a_hook_never_changes_the_reason_of_a_node_that_is_out_of_use(queue: Queue) -> None:
    job_id = started(queue, gpus=1)
    (name,) = nodes_of(queue, job_id)
    queue.sql.row(
        "select odc.set_node_state($1, array[$2], 'DRAIN', 'new cables', $3)",
        json.dumps({"user": "ann", "uid": 0, "operator": True}), name, queue.now,
    )  # fmt: skip
    tell(queue, job_id, "exited", exit_code=0, drains='{"0": "Epilog error"}')
    assert node_state(queue, name) == ("DRAIN", "new cables", "ann")


USED = "{1000,200,70,5,6}"


def test_what_members_used_is_added_up_for_the_attempt(queue: Queue) -> None:
    job_id = started(queue, **GANG)
    for rank, used in enumerate((USED, "{30,4,900,1,0}")):
        tell(queue, job_id, "exited", rank=rank, exit_code=0, used=used)
    assert queue.sql.value("select used from odc.attempt where job_id = $1", job_id) == [
        1030, 204, 900, 6, 6,
    ]  # fmt: skip
    shown = json.loads(queue.sql.value("select odc._resource_use($1, $2)", job_id, queue.now))
    script = {
        "user_cpu_s": 1.03, "system_cpu_s": 0.204, "max_rss_kib": 900, "read_kib": 6,
        "written_kib": 6,
    }  # fmt: skip
    assert shown == {**script, "script": script}


def test_what_was_not_measured_is_not_zero(queue: Queue) -> None:
    job_id = started(queue, **GANG)
    for rank in range(2):
        tell(queue, job_id, "exited", rank=rank, exit_code=0)
    assert queue.sql.value("select used from odc.attempt where job_id = $1", job_id) is None
    assert queue.sql.value("select odc._resource_use($1, $2)", job_id, queue.now) is None


def test_a_daemon_of_the_last_release_reports_nothing_that_was_used(queue: Queue) -> None:
    job_id = started(queue, gpus=1)
    queue.sql.rows(
        "select * from odc.record_facts(0, array[$1::bigint], '{1}', '{0}', '{exited}', "
        "array[$2::timestamptz], '{0}', '{null}', '{null}', '{null}', $2, p_suspects => '{false}', "
        "p_drains => null)",
        job_id, queue.now,
    )  # fmt: skip
    assert queue.job(job_id)["state"] == "COMPLETED"
