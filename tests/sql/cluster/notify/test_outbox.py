"""Notifications: who gets which, in the transaction of the event, and how often each is sent."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from odcd.database.schema_source import sql_folder
from odcd.errors import BadRequest, LeadershipLost
from odcd.records.job import Identity
from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import ALICE, BOB, NOW, Queue

MAIL = "alice@example.org"
ALL = ["BEGIN", "END", "FAIL", "REQUEUE", "INVALID_DEPEND", "TIME_LIMIT"]


@pytest.fixture
def mailing(queue: Queue) -> Queue:
    configure(queue)
    return queue


def configure(queue: Queue, *, mail: bool = True, per_hour: int = 1000) -> None:
    queue.sql.value("select odc.configure_notifications(0, $1, $2, $3)", mail, per_hour, queue.now)


def actor(who: Identity) -> str:
    return json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator})


def set_webhook(queue: Queue, *kinds: str, who: Identity = ALICE) -> dict[str, Any]:
    return json.loads(
        queue.sql.value(
            "select odc.set_webhook($1::jsonb, $2, $3, $4)",
            actor(who), "https://chat.example.org/secret", list(kinds), queue.now,
        )
    )  # fmt: skip


def outbox(queue: Queue) -> list[tuple[str, str, int | None]]:
    rows = queue.sql.rows("select channel, kind, job_id from odc.outbox order by id")
    return [(row["channel"], row["kind"], row["job_id"]) for row in rows]


def facts(queue: Queue) -> list[dict[str, Any]]:
    return [json.loads(f) for f in queue.sql.values("select facts from odc.outbox order by id")]


def take(queue: Queue, channel: str = "mail", limit: int = 10) -> list[dict[str, Any]]:
    return queue.sql.rows(
        "select * from odc.take_outbox(0, $1, $2, '5 minutes', $3)", channel, limit, queue.now
    )


def note_unsent(queue: Queue, ids: list[int], retry_s: float | None, why: str | None) -> None:
    retry_at = None if retry_s is None else queue.now + timedelta(seconds=retry_s)
    queue.sql.value("select odc.note_unsent(0, $1, $2, $3, $4)", ids, retry_at, why, queue.now)


# -- who gets which -------------------------------------------------------------------------------


def test_begin_and_end_are_mailed_to_the_jobs_address(mailing: Queue) -> None:
    job = mailing.submit(name="train", mail_types=["BEGIN", "END"], mail_user=MAIL)
    assert outbox(mailing) == []
    mailing.move(5)
    mailing.start()
    assert outbox(mailing) == [("mail", "begin", job)]
    mailing.move(62)
    mailing.end(job)
    assert outbox(mailing) == [("mail", "begin", job), ("mail", "end", job)]
    assert set(mailing.sql.values("select address from odc.outbox")) == {MAIL}
    begin, end = facts(mailing)
    assert (begin["queued_s"], begin["nodes"]) == (5, ["h100-1"])
    assert (end["state"], end["exit_code"], end["run_s"]) == ("COMPLETED", 0, 62)
    assert (end["job"], end["name"], end["user"]) == (str(job), "train", "alice")


def test_a_job_without_a_subscription_adds_no_row(mailing: Queue) -> None:
    set_webhook(mailing, "begin", "end", who=BOB)
    other = mailing.submit(mail_types=["END"], mail_user=MAIL)
    job = mailing.submit()
    mailing.start()
    mailing.end(job)
    assert outbox(mailing) == []
    mailing.end(other)
    assert outbox(mailing) == [("mail", "end", other)]


def test_a_failure_is_reported_once_as_failed_or_as_ended(mailing: Queue) -> None:
    both = mailing.submit(mail_types=["END", "FAIL"], mail_user=MAIL)
    end = mailing.submit(mail_types=["END"], mail_user=MAIL)
    fail = mailing.submit(mail_types=["FAIL"], mail_user=MAIL)
    good = mailing.submit(mail_types=["FAIL"], mail_user=MAIL)
    mailing.start()
    mailing.end(both, end, fail, exit_code=3)
    mailing.end(good)
    assert outbox(mailing) == [
        ("mail", "fail", both), ("mail", "end", end), ("mail", "fail", fail)
    ]  # fmt: skip
    assert {one["exit_code"] for one in facts(mailing)} == {3}


def test_a_cancelled_pending_job_ends(mailing: Queue) -> None:
    job = mailing.submit(hold=True, mail_types=["ALL"], mail_user=MAIL)
    mailing.cancel(job)
    assert outbox(mailing) == [("mail", "end", job)]
    [one] = facts(mailing)
    assert one["state"] == "CANCELLED"
    assert "run_s" not in one


def test_a_requeue_and_an_impossible_dependency_are_reported(mailing: Queue) -> None:
    job = mailing.submit(mail_types=["REQUEUE"], mail_user=MAIL)
    later = mailing.submit(
        dependency=f"afterok:{job}", mail_types=["INVALID_DEPEND"], mail_user=MAIL
    )
    mailing.start()
    mailing.requeue(job)
    mailing.end(job)
    assert outbox(mailing) == [("mail", "requeue", job)]
    assert facts(mailing)[0]["state"] == "PENDING"
    mailing.move(60)
    mailing.start()
    mailing.end(job, exit_code=1)
    assert outbox(mailing)[1:] == [("mail", "invalid_depend", later)]


def test_an_array_is_reported_as_a_whole(mailing: Queue) -> None:
    array = mailing.submit(array="1-3%1", gpus=8, mail_types=["BEGIN", "END"], mail_user=MAIL)
    for task in (1, 2, 3):
        mailing.move(10)
        mailing.start()
        assert [kind for _, kind, _ in outbox(mailing)] == ["begin"]
        mailing.end(mailing.task(array, task), exit_code=task - 1)
    assert outbox(mailing) == [("mail", "begin", array), ("mail", "end", array)]
    end = facts(mailing)[1]
    assert (end["tasks"], end["completed"], end["not_completed"]) == (3, 1, 2)
    assert (end["state"], end["exit_code"]) == ("MIXED", 2)


def test_a_failed_task_makes_its_array_fail(mailing: Queue) -> None:
    array = mailing.submit(array="1-2", gpus=1, mail_types=["END", "FAIL"], mail_user=MAIL)
    mailing.start()
    mailing.end(mailing.task(array, 1), exit_code=1)
    mailing.end(mailing.task(array, 2))
    assert outbox(mailing) == [("mail", "fail", array)]


def test_array_tasks_reports_each_task(mailing: Queue) -> None:
    array = mailing.submit(array="1-2", gpus=1, mail_types=["END", "ARRAY_TASKS"], mail_user=MAIL)
    mailing.start()
    mailing.end(mailing.task(array, 1), mailing.task(array, 2))
    assert {one["job"] for one in facts(mailing)} == {f"{array}_1", f"{array}_2"}
    assert len(outbox(mailing)) == 2


def test_a_cancelled_array_ends_once(mailing: Queue) -> None:
    array = mailing.submit(array="1-9", gpus=8, hold=True, mail_types=["ALL"], mail_user=MAIL)
    mailing.cancel((array, "{[1,3)}"))
    assert outbox(mailing) == []
    mailing.cancel(array)
    assert outbox(mailing) == [("mail", "end", array)]
    assert facts(mailing)[0]["state"] == "CANCELLED"


def test_shares_of_the_time_limit_are_reported_once(mailing: Queue) -> None:
    kinds = ["TIME_LIMIT_50", "TIME_LIMIT_80", "TIME_LIMIT_90", "TIME_LIMIT"]
    job = mailing.submit(time_limit_s=1000, mail_types=kinds, mail_user=MAIL)
    mailing.start()
    seen: list[list[str]] = []
    for seconds in (499, 2, 1, 300, 150):
        mailing.move(seconds)
        mailing.sql.value("select odc.note_time_limits(0, $1)", mailing.now)
        seen.append([kind for _, kind, _ in outbox(mailing)])
    halves = ["time_limit_50"]
    assert seen == [
        [], halves, halves, [*halves, "time_limit_80"],
        [*halves, "time_limit_80", "time_limit_90"],
    ]  # fmt: skip
    mailing.move(60)
    mailing.sql.rows(
        "select * from odc.record_facts(0, $1, '{1}', '{0}', '{exited}', $2, '{null}', '{15}', "
        "'{timeout}', '{null}', $3)",
        [job], [mailing.now], mailing.now,
    )  # fmt: skip
    assert outbox(mailing)[-1] == ("mail", "time_limit", job)


def test_a_share_that_a_shorter_limit_has_passed_is_reported_once(mailing: Queue) -> None:
    """Before: only shares whose moment, by the new limit, was after the last check."""
    kinds = ["TIME_LIMIT_50", "TIME_LIMIT_80", "TIME_LIMIT_90"]
    job = mailing.submit(time_limit_s=1000, mail_types=kinds, mail_user=MAIL)
    mailing.start()
    mailing.move(600)
    for _ in range(2):
        mailing.sql.value("select odc.note_time_limits(0, $1)", mailing.now)
    assert outbox(mailing) == [("mail", "time_limit_50", job)]
    mailing.move(10)
    assert mailing.update(job, changes={"time_limit_s": 700}) == {job: "updated"}
    for _ in range(2):
        mailing.move(1)
        mailing.sql.value("select odc.note_time_limits(0, $1)", mailing.now)
    assert outbox(mailing)[1:] == [("mail", "time_limit_80", job)]
    mailing.move(20)
    mailing.sql.value("select odc.note_time_limits(0, $1)", mailing.now)
    assert outbox(mailing)[2:] == [("mail", "time_limit_90", job)]


def test_an_array_reaches_a_share_of_its_limit_once(mailing: Queue) -> None:
    mailing.submit(
        array="1-3", gpus=1, time_limit_s=1000, mail_types=["TIME_LIMIT_80"], mail_user=MAIL
    )
    mailing.start()
    mailing.move(801)
    for _ in range(2):
        mailing.sql.value("select odc.note_time_limits(0, $1)", mailing.now)
        mailing.move(1)
    assert [kind for _, kind, _ in outbox(mailing)] == ["time_limit_80"]


def test_a_webhook_gets_its_users_jobs_and_only_what_it_asks_for(mailing: Queue) -> None:
    set_webhook(mailing, "fail")
    good, bad = mailing.submit(), mailing.submit()
    others = mailing.submit(who=BOB)
    mailing.start()
    mailing.end(good)
    mailing.end(bad, others, exit_code=1)
    assert outbox(mailing) == [("webhook", "fail", bad)]


def test_notices_about_dev_servers_reach_the_webhook(queue: Queue) -> None:
    set_webhook(queue, "expiry", "drain")
    server = Reservations(queue).active(hours=8)
    queue.sql.value(
        "select odc.note_node_notice(0, $1, 'h100-1 is drained', null, $2)", server, queue.now
    )
    queue.move(7.6 * 3600)
    [row] = queue.sql.rows("select * from odc.take_warnings(0, $1)", queue.now)
    queue.sql.value(
        "select odc.note_warned(0, $1, $2, $3, 'no terminal', $4)",
        server, row["expires_at"], row["minutes"], queue.now,
    )  # fmt: skip
    assert outbox(queue) == [("webhook", "drain", server), ("webhook", "expiry", server)]
    drain, expiry = facts(queue)
    assert drain["text"] == "h100-1 is drained"
    assert expiry["minutes"] == 30


def test_an_event_that_is_undone_notifies_no_one(mailing: Queue) -> None:
    job = mailing.submit(mail_types=["BEGIN"], mail_user=MAIL)
    with mailing.sql.trial():
        mailing.start()
        assert outbox(mailing) == [("mail", "begin", job)]
    assert outbox(mailing) == []


def test_whatever_fills_the_outbox_takes_the_turn() -> None:
    """It locks rows of users in any order, beside the rows of jobs."""
    files = (sql_folder() / "functions").rglob("*.sql")
    texts = {path.stem: path.read_text("utf-8").split("\n$$;")[0] for path in files}
    bodies = {name: text.partition("as $$")[2] for name, text in texts.items()}
    turns, without, new = set[str](), set[str](), {"_fill_outbox"}
    while new:
        called = re.compile(rf"\b({'|'.join(sorted(new))})\(")
        found = {name for name, body in bodies.items() if called.search(body)} - turns - without
        turns |= {name for name in found if "_take_turn(" in bodies[name]}
        new = found - turns
        without |= new
    assert {"record_facts", "apply_plan", "test_webhook", "note_warned"} <= turns
    assert {name for name in without if not name.startswith("_")} == set()


# -- limits ---------------------------------------------------------------------------------------


def test_notifications_beyond_the_limit_of_an_hour_are_dropped_and_counted(queue: Queue) -> None:
    configure(queue, per_hour=3)
    array = queue.submit(array="1-5", gpus=1, mail_types=["END", "ARRAY_TASKS"], mail_user=MAIL)
    other = queue.submit(who=BOB, gpus=1, mail_types=["END"], mail_user="bob@example.org")
    queue.start()
    queue.end(*(queue.task(array, task) for task in range(1, 6)), other)
    assert len(outbox(queue)) == 4
    assert ("mail", "end", other) in outbox(queue)
    assert queue.sql.value("select dropped from odc.notify_state") == 2
    events = queue.sql.rows("select detail from odc.event where kind = 'notifications_limited'")
    assert [json.loads(e["detail"])["user"] for e in events] == ["alice"]
    queue.move(3600)
    more = queue.submit(mail_types=["END"], mail_user=MAIL)
    queue.start()
    queue.end(more)
    assert outbox(queue)[-1] == ("mail", "end", more)


def test_without_a_mail_server_no_mail_is_queued(queue: Queue) -> None:
    configure(queue, mail=False)
    job = queue.submit(mail_types=["ALL"], mail_user=MAIL)
    queue.start()
    queue.end(job)
    assert outbox(queue) == []


def test_only_known_kinds_can_be_asked_for(queue: Queue) -> None:
    for kinds in (["sunrise"], []):
        with pytest.raises(BadRequest):
            set_webhook(queue, *kinds)
    with pytest.raises(BadRequest, match="no webhook"):
        queue.sql.value("select odc.remove_webhook($1::jsonb, $2)", actor(ALICE), queue.now)
    with pytest.raises(BadRequest, match="no webhook"):
        queue.sql.value("select odc.test_webhook($1::jsonb, $2)", actor(ALICE), queue.now)


def test_the_path_of_a_webhook_is_never_shown(queue: Queue) -> None:
    shown = set_webhook(queue, "end")
    assert shown["url"] == "https://chat.example.org/…"
    assert shown["events"] == ["end"]
    assert queue.sql.value("select count(*) from odc.event where detail::text like '%secret%'") == 0
    none = json.loads(queue.sql.value("select odc.show_webhook($1)", BOB.uid))
    assert none == {"url": None, "events": [], "set_at": None, "recent": []}


# -- the outbox -----------------------------------------------------------------------------------


def fill(queue: Queue, count: int, channel: str = "webhook", who: Identity = ALICE) -> None:
    queue.sql.value(
        "select odc._fill_outbox((select jsonb_agg(jsonb_build_object('uid', $1::integer, 'user', "
        "$2::text, 'channel', $3::text, 'address', case $3 when 'mail' then 'a@b.c' end, "
        "'kind', 'end', 'facts', '{}'::jsonb)) from generate_series(1, $4::integer)), $5)",
        who.uid, who.user, channel, count, queue.now,
    )  # fmt: skip


def test_a_taken_notification_is_taken_again_only_after_its_claim(mailing: Queue) -> None:
    fill(mailing, 3, "mail")
    first = take(mailing, limit=2)
    assert len(first) == 2
    assert len(take(mailing)) == 1
    assert take(mailing) == []
    mailing.sql.value("select odc.note_sent($1, $2)", [first[0]["id"]], mailing.now)
    mailing.move(301)
    again = take(mailing)
    assert first[1]["id"] in [row["id"] for row in again]
    assert first[0]["id"] not in [row["id"] for row in again]
    assert {row["key"] for row in again if row["id"] == first[1]["id"]} == {first[1]["key"]}


def test_a_webhook_that_fails_delays_only_its_own_user_and_keeps_the_order(queue: Queue) -> None:
    set_webhook(queue, "end")
    set_webhook(queue, "end", who=BOB)
    fill(queue, 2)
    fill(queue, 2, who=BOB)
    alice, bob = take(queue, "webhook")
    assert (alice["user_name"], bob["user_name"]) == ("alice", "bob")
    note_unsent(queue, [alice["id"]], 60, "503")
    queue.sql.value("select odc.note_sent($1, $2)", [bob["id"]], queue.now)
    assert [row["user_name"] for row in take(queue, "webhook")] == ["bob"]
    queue.move(61)
    [again] = take(queue, "webhook")
    assert (again["id"], again["tries"]) == (alice["id"], 2)


def test_what_was_not_tried_does_not_count_as_a_try(mailing: Queue) -> None:
    fill(mailing, 1, "mail")
    [one] = take(mailing)
    note_unsent(mailing, [one["id"]], 0, None)
    [again] = take(mailing)
    assert again["tries"] == one["tries"] == 1


def test_giving_up_is_an_event_and_old_rows_are_deleted(mailing: Queue) -> None:
    fill(mailing, 3, "mail")
    refused, sent, _ = take(mailing)
    note_unsent(mailing, [refused["id"]], None, "550 unknown")
    mailing.sql.value("select odc.note_sent($1, $2)", [sent["id"]], mailing.now)
    mailing.move(86_400)
    tidy = "select * from odc.tidy_outbox(0, $1, $2, 100, $3)"
    row = mailing.sql.row(tidy, mailing.now - timedelta(hours=1), NOW, mailing.now)
    assert (row["given_up"], row["more"]) == (["mail"], False)
    events = mailing.sql.rows("select detail from odc.event where kind = 'notification_failed'")
    whys = [json.loads(event["detail"])["why"] for event in events]
    assert whys == ["550 unknown", "it was not tried"]
    mailing.sql.row(tidy, NOW, mailing.now, mailing.now)
    assert outbox(mailing) == []


def test_an_old_leader_takes_nothing_but_may_record_what_it_sent(mailing: Queue) -> None:
    fill(mailing, 1, "mail")
    [one] = take(mailing)
    mailing.sql.execute("update odc.term set term = 1")
    with pytest.raises(LeadershipLost):
        take(mailing)
    with pytest.raises(LeadershipLost):
        note_unsent(mailing, [one["id"]], 1, "late")
    mailing.sql.value("select odc.note_sent($1, $2)", [one["id"]], mailing.now)
    assert mailing.sql.value("select count(*) from odc.outbox where sent_at is null") == 0


def test_removing_a_webhook_drops_what_waits_for_it(queue: Queue) -> None:
    set_webhook(queue, "end")
    fill(queue, 2)
    queue.sql.value("select odc.remove_webhook($1::jsonb, $2)", actor(ALICE), queue.now)
    assert take(queue, "webhook") == []
    assert queue.sql.values("select distinct trouble from odc.outbox") == [
        "the webhook was removed"
    ]
