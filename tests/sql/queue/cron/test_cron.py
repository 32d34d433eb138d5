"""Tables of recurring jobs, and the jobs of their occurrences."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from odcd.errors import BadRequest, LeadershipLost, NotOwner
from tests.support.builders.cron import actor, due_crons, put_cron, run_all, run_cron, show_cron
from tests.support.builders.jobs import ALICE, BOB, NOW, ROOT, Queue
from tests.support.harness.database import Sql

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
HOURLY = "#SCRON -t 5\n0 * * * * date\n"


def entry(sql: Sql, **fields: Any) -> dict[str, Any]:
    [one] = show_cron(sql, **fields)["entries"]
    return one


def jobs(sql: Sql) -> list[int]:
    return sql.values("select id from odc.job order by id")


def test_an_occurrence_submits_a_job_of_the_user(queue: Queue) -> None:
    shown = put_cron(queue.sql, "A=1\n#SCRON -J tidy -t 5\n@hourly ./clean $A\n")
    assert shown["user"] == "alice"
    assert shown["zone"] == "Europe/Berlin"
    assert shown["text"].startswith("A=1\n")
    assert entry(queue.sql)["next_at"] == "2026-01-01T01:00:00Z"
    assert due_crons(queue.sql, NOW + 59 * MINUTE) == []
    [outcome] = run_all(queue.sql, NOW + HOUR)
    assert outcome is not None
    [job] = queue.sql.rows("select * from odc.job")
    assert (job["id"], job["name"], job["uid"], job["gid"]) == (
        outcome["job_id"],
        "tidy",
        1001,
        100,
    )
    assert job["time_limit_s"] == 300
    script, environment = (
        queue.sql.value("select content from odc.job_text where digest = $1", job[name])
        for name in ("script_digest", "environment_digest")
    )
    assert script.endswith("\n./clean $A\n")
    assert json.loads(environment) == {"A": "1"}
    after = entry(queue.sql)
    assert after["next_at"] == "2026-01-01T02:00:00Z"
    assert (after["last_result"], after["last_job_id"]) == ("submitted", job["id"])
    assert after["last_job_state"] == "PENDING"


def test_an_occurrence_is_skipped_while_the_last_job_is_pending_or_running(queue: Queue) -> None:
    put_cron(queue.sql, HOURLY)
    run_all(queue.sql, NOW + HOUR)
    [job] = jobs(queue.sql)
    [outcome] = run_all(queue.sql, NOW + 2 * HOUR)
    assert outcome == {"result": "skipped", "job_id": None, "why": f"job {job} is still pending",
                       "disabled": False}  # fmt: skip
    queue.now = NOW + 2 * HOUR
    queue.start()
    [outcome] = run_all(queue.sql, NOW + 3 * HOUR)
    assert outcome is not None
    assert outcome["why"] == f"job {job} is still running"
    assert entry(queue.sql)["skipped"] == 2
    assert entry(queue.sql)["last_job_id"] == job
    queue.end(job, exit_code=1)
    [outcome] = run_all(queue.sql, NOW + 4 * HOUR)
    assert outcome is not None
    assert outcome["result"] == "submitted"  # a failed job does not stop the recurrence
    assert len(jobs(queue.sql)) == 2


def test_occurrences_missed_during_a_downtime_run_once(queue: Queue) -> None:
    put_cron(queue.sql, "*/5 * * * * date\n")
    back = NOW + timedelta(days=3, minutes=2)
    assert len(run_all(queue.sql, back)) == 1
    assert len(jobs(queue.sql)) == 1
    assert due_crons(queue.sql, back) == []
    assert entry(queue.sql)["last_at"] == "2026-01-01T00:05:00Z"
    assert entry(queue.sql)["next_at"] == "2026-01-04T00:05:00Z"


def test_an_occurrence_that_was_done_is_not_done_again(queue: Queue) -> None:
    put_cron(queue.sql, HOURLY)
    [due] = due_crons(queue.sql, NOW + HOUR)
    assert run_cron(queue.sql, due, NOW + HOUR) is not None
    queue.cancel(*jobs(queue.sql))
    assert run_cron(queue.sql, due, NOW + HOUR) is None
    assert len(jobs(queue.sql)) == 1


def test_a_leader_that_lost_its_term_submits_nothing(queue: Queue) -> None:
    put_cron(queue.sql, HOURLY)
    [due] = due_crons(queue.sql, NOW + HOUR)
    with pytest.raises(LeadershipLost):
        run_cron(queue.sql, due, NOW + HOUR, term=7)
    assert jobs(queue.sql) == []
    assert due_crons(queue.sql, NOW + HOUR) == [due]


def test_a_refused_occurrence_has_its_reason_and_stops_no_other(queue: Queue) -> None:
    put_cron(queue.sql, "#SCRON -p nowhere\n0 * * * * a\n0 * * * * b\n")
    refused, done = run_all(queue.sql, NOW + HOUR)
    assert refused is not None
    assert done is not None
    assert refused["result"] == "refused"
    assert refused["why"] == 'partition "nowhere" does not exist'
    assert done["result"] == "submitted"
    first, second = show_cron(queue.sql)["entries"]
    assert (first["last_result"], first["last_why"]) == ("refused", refused["why"])
    assert first["next_at"] == second["next_at"] == "2026-01-01T02:00:00Z"
    [event] = queue.sql.rows("select * from odc.event where kind = 'cron_refused'")
    assert json.loads(event["detail"]) == {"user": "alice", "line": 2, "why": refused["why"]}


def test_an_account_that_the_user_may_not_use_disables_the_entry(queue: Queue) -> None:
    put_cron(queue.sql, "#SCRON -A gone\n0 * * * * a\n")
    [outcome] = run_all(queue.sql, NOW + HOUR)
    assert outcome is not None
    assert outcome["disabled"]
    shown = entry(queue.sql)
    assert shown["next_at"] is None
    assert shown["disabled_by"] == "odcd"
    assert "gone" in shown["disabled_why"]
    assert due_crons(queue.sql, NOW + 9 * HOUR) == []
    # The user enables it by editing the table.
    put_cron(queue.sql, "#SCRON -A gone\n0 * * * * a\n", now=NOW + 9 * HOUR)
    assert entry(queue.sql)["next_at"] == "2026-01-01T10:00:00Z"
    assert entry(queue.sql)["disabled_at"] is None


def test_the_same_table_twice_changes_nothing(queue: Queue) -> None:
    text = f"{HOURLY}{HOURLY}30 1 * * * c\n"
    before = put_cron(queue.sql, text)
    run_all(queue.sql, NOW + HOUR)
    shown = show_cron(queue.sql)
    ids = queue.sql.values("select id from odc.cron_entry order by id")
    again = put_cron(queue.sql, text, now=NOW + HOUR)
    assert again["entries"] == shown["entries"]
    assert again["entries"] != before["entries"]
    assert queue.sql.values("select id from odc.cron_entry order by id") == ids
    assert {queue.state(job) for job in jobs(queue.sql)} == {"PENDING"}


def test_an_unchanged_entry_keeps_its_job_wherever_its_line_is(queue: Queue) -> None:
    put_cron(queue.sql, HOURLY)
    run_all(queue.sql, NOW + HOUR)
    [job] = jobs(queue.sql)
    put_cron(queue.sql, f"# more\n5 5 * * * other\n\n{HOURLY}", now=NOW + HOUR)
    other, kept = show_cron(queue.sql)["entries"]
    assert other["last_job_id"] is None
    assert (kept["line"], kept["first_line"], kept["last_job_id"]) == (5, 4, job)
    assert queue.state(job) == "PENDING"


@pytest.mark.parametrize(
    "text",
    [
        "#SCRON -t 6\n0 * * * * date\n",
        f"A=1\n{HOURLY}",
        f"CRON_TZ=UTC\n{HOURLY}",
        "#SCRON -t 5\n0 * * * * date -u\n",
        "",
    ],
)
def test_a_pending_job_of_a_changed_entry_is_cancelled(queue: Queue, text: str) -> None:
    put_cron(queue.sql, HOURLY)
    run_all(queue.sql, NOW + HOUR)
    [job] = jobs(queue.sql)
    shown = put_cron(queue.sql, text, now=NOW + HOUR)
    assert queue.state(job) == "CANCELLED"
    assert all(one["last_job_id"] is None for one in shown["entries"])


def test_a_running_job_of_a_removed_table_continues(queue: Queue) -> None:
    put_cron(queue.sql, f"{HOURLY}0 * * * * b\n")
    run_all(queue.sql, NOW + HOUR)
    queue.now = NOW + HOUR
    queue.start()
    put_cron(queue.sql, f"{HOURLY}0 * * * * b\n1 1 * * * c\n", now=NOW + HOUR)
    queue.sql.value("select odc.remove_cron($1::jsonb, null, $2)", actor(ALICE), queue.now)
    assert {queue.state(job) for job in jobs(queue.sql)} == {"CONFIGURING"}
    assert show_cron(queue.sql)["text"] is None
    assert show_cron(queue.sql)["entries"] == []
    assert due_crons(queue.sql, NOW + 5 * HOUR) == []


def test_a_table_belongs_to_its_user(queue: Queue) -> None:
    put_cron(queue.sql, HOURLY)
    assert show_cron(queue.sql, BOB)["text"] is None
    for call in ("show_cron($1::jsonb, 'alice')", f"remove_cron($1::jsonb, 'alice', '{NOW}')"):
        with pytest.raises(NotOwner, match="user bob may not see or remove recurring jobs"):
            queue.sql.value(f"select odc.{call}", actor(BOB))
    put_cron(queue.sql, "", who=BOB)
    assert show_cron(queue.sql, ROOT, "alice")["text"] == HOURLY
    assert show_cron(queue.sql, ROOT, "nobody")["text"] is None
    queue.sql.value("select odc.remove_cron($1::jsonb, 'alice', $2)", actor(ROOT), NOW)
    assert show_cron(queue.sql)["text"] is None
    assert show_cron(queue.sql, BOB)["text"] == ""


def test_disabling_by_a_job_stops_only_its_entry(queue: Queue) -> None:
    put_cron(queue.sql, f"{HOURLY}0 * * * * b\n")
    run_all(queue.sql, NOW + HOUR)
    one, other = jobs(queue.sql)
    call = "select odc.disable_cron($1::jsonb, $2, $3)"
    assert queue.sql.value(call, actor(BOB), [one], NOW) == []
    assert queue.sql.value(call, actor(ALICE), [one, 99], NOW + HOUR) == [one]
    assert queue.sql.value(call, actor(ALICE), [one], NOW + HOUR) == []
    first, second = show_cron(queue.sql)["entries"]
    assert first["next_at"] is None
    assert first["disabled_by"] == "alice"
    assert second["next_at"] is not None
    assert second["last_job_id"] == other


@pytest.mark.parametrize(
    ("zone", "hint"), [("Europe/Berln", "Did you mean Europe/Berlin?"), ("EST5EDT", "Use a name")]
)
def test_a_zone_that_does_not_exist_changes_nothing(queue: Queue, zone: str, hint: str) -> None:
    put_cron(queue.sql, HOURLY)
    for text, of_table in ((HOURLY, zone), (f"CRON_TZ={zone}\n{HOURLY}", "UTC")):
        with pytest.raises(BadRequest, match=f'time zone "{zone}" does not exist') as error:
            put_cron(queue.sql, text, zone=of_table)
        assert error.value.hint is not None
        assert hint in error.value.hint
    assert show_cron(queue.sql)["zone"] == "Europe/Berlin"


def test_an_entry_of_another_zone_runs_at_its_own_times(queue: Queue) -> None:
    put_cron(queue.sql, "0 9 * * * a\nCRON_TZ=America/New_York\n0 9 * * * b\n")
    assert [one["next_at"] for one in show_cron(queue.sql)["entries"]] == [
        "2026-01-01T08:00:00Z", "2026-01-01T14:00:00Z",
    ]  # fmt: skip


def test_many_entries_are_stored_and_found_at_once(queue: Queue) -> None:
    text = "".join(f"{n % 60} * * * * echo {'x' * 500} {n}\n" for n in range(100))
    assert len(put_cron(queue.sql, text)["entries"]) == 100
    assert len(due_crons(queue.sql, datetime(2099, 1, 1, tzinfo=UTC))) == 100
