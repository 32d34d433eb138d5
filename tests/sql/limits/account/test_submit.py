"""Names that a submit may use, and jobs that are refused because they could never start."""

from __future__ import annotations

import json

import pytest

from odcd.errors import LimitExceeded, NotAllowed, UnknownAccount, UnknownQos
from odcd.records.job import Identity
from tests.sql.limits.account.books import a_limit, a_member, a_qos, an_account
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue


def terms(queue: Queue, who: Identity = ALICE, **fields: object) -> tuple[str, str]:
    return terms_of(queue, queue.submit(who, gpus=1, **fields))


def terms_of(queue: Queue, job_id: int) -> tuple[str, str]:
    job = queue.job(job_id)
    return (
        queue.sql.value("select name from odc.account where id = $1", job["account_id"]),
        queue.sql.value("select name from odc.qos where id = $1", job["qos_id"]),
    )


def test_with_nothing_configured_every_user_has_the_defaults(queue: Queue) -> None:
    assert terms(queue) == ("default", "normal")


def test_a_users_default_account_is_taken(queue: Queue) -> None:
    lab, other = an_account(queue.sql, "lab"), an_account(queue.sql, "other")
    a_member(queue.sql, lab, ALICE)
    a_member(queue.sql, other, ALICE, is_default=True)
    assert terms(queue) == ("other", "normal")
    assert terms(queue, account="lab") == ("lab", "normal")
    assert terms(queue, BOB) == ("default", "normal")


def test_the_default_qos_is_that_of_the_nearest_association_or_account(queue: Queue) -> None:
    fast, slow = a_qos(queue.sql, "fast"), a_qos(queue.sql, "slow")
    top = an_account(queue.sql, "top")
    an_account(queue.sql, "leaf", top)
    queue.sql.execute("update odc.account set default_qos_id = $1 where id = $2", slow, top)
    assert terms(queue, account="leaf") == ("leaf", "slow")
    own = a_member(queue.sql, top, ALICE)
    queue.sql.execute("update odc.association set default_qos_id = $1 where id = $2", fast, own)
    assert terms(queue, account="top") == ("top", "fast")
    assert terms(queue, BOB, account="top", qos="fast") == ("top", "fast")


def test_a_restricted_qos_is_only_for_users_and_accounts_that_list_it(queue: Queue) -> None:
    urgent = a_qos(queue.sql, "urgent", restricted=True)
    lab = an_account(queue.sql, "lab")
    queue.sql.execute("update odc.account set qos_ids = $1 where id = $2", [1, urgent], lab)
    assert terms(queue, account="lab", qos="urgent") == ("lab", "urgent")
    refused = queue.refused(gpus=1, qos="urgent")
    assert isinstance(refused, NotAllowed)
    assert refused.message == 'user alice may not use QOS "urgent" in account "default"'
    assert refused.hint == "QOS that alice may use there: normal."


def test_a_list_of_qos_leaves_out_the_others(queue: Queue) -> None:
    a_qos(queue.sql, "fast")
    own = a_member(queue.sql, 1, ALICE)
    queue.sql.execute("update odc.association set qos_ids = '{1}' where id = $1", own)
    assert isinstance(queue.refused(gpus=1, qos="fast"), NotAllowed)
    assert terms(queue, BOB, qos="fast") == ("default", "fast")


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"account": "nobody"}, UnknownAccount, 'account "nobody" does not exist'),
        ({"qos": "best"}, UnknownQos, 'QOS "best" does not exist'),
    ],
)
def test_unknown_names_are_refused(
    queue: Queue, fields: dict[str, str], error: type[Exception], message: str
) -> None:
    refused = queue.refused(gpus=1, **fields)
    assert isinstance(refused, error)
    assert refused.message == message


def test_deleted_names_do_not_exist(queue: Queue) -> None:
    queue.sql.execute(
        "update odc.qos set deleted_at = $1 where id = $2", queue.now, a_qos(queue.sql, "old")
    )
    queue.sql.execute(
        "update odc.account set deleted_at = $1 where id = $2",
        queue.now,
        an_account(queue.sql, "gone"),
    )
    assert isinstance(queue.refused(gpus=1, qos="old"), UnknownQos)
    assert isinstance(queue.refused(gpus=1, account="gone"), UnknownAccount)


def test_only_members_may_submit_where_that_is_enforced(queue: Queue) -> None:
    sql = queue.sql
    sql.execute("update odc.account_setting set enforce = true")
    lab = an_account(sql, "lab")
    a_member(sql, lab, ALICE, is_default=True)
    assert terms(queue) == ("lab", "normal")
    stranger = queue.refused(BOB, gpus=1)
    assert isinstance(stranger, NotAllowed)
    assert stranger.message == 'user bob is not a member of account "default"'
    assert isinstance(queue.refused(gpus=1, account="default"), NotAllowed)


def test_a_membership_may_be_for_one_partition(queue: Queue) -> None:
    sql = queue.sql
    part = sql.value(
        "insert into odc.partition (name, all_nodes) values ('big', true) returning id"
    )
    sql.execute("select odc._regroup_nodes()")
    sql.execute("update odc.account_setting set enforce = true")
    a_member(sql, 1, ALICE, partition=part)
    assert terms(queue, partitions=["big"], time_limit_s=60) == ("default", "normal")
    refused = queue.refused(gpus=1)
    assert refused.message == 'user alice may use account "default" in other partitions only'


@pytest.mark.parametrize(
    ("scope", "per", "what", "value", "fields", "message"),
    [
        ("qos", "job", "wall_s", 3600, {"gpus": 1, "time_limit_s": 7200},
         "a time limit of 2:00:00 is more than the 1:00:00 allowed for a job in QOS normal"
         " (QOSMaxWallDurationPerJobLimit)"),
        ("qos", "user", "gpus", 4, {"gpus": 8, "gpu_type": "h100"},
         "8 GPUs is more than the 4 GPUs allowed for user alice in QOS normal (QOSMaxGRESPerUser)"),
        ("account", "job", "nodes", 1, {"node_count": 2, "gpus_per_node": 1},
         "2 nodes is more than the 1 node allowed for a job in account default"
         " (AssocMaxNodePerJobLimit)"),
        ("account", "group", "gpu_minutes", 100, {"gpus": 2, "time_limit_s": 3600},
         "120 GPU-minutes (GPUs times time limit) is more than the 100 GPU-minutes allowed for"
         " account default (AssocGrpGRESMinutes)"),
        ("partition", "job", "gpus", 0, {"gpus": 1},
         "1 GPU is more than the 0 GPUs allowed for a job in partition main (QOSMaxGRESPerJob)"),
    ],
)  # fmt: skip
def test_a_job_that_could_never_start_is_refused(
    queue: Queue,
    scope: str,
    per: str,
    what: str,
    value: int,
    fields: dict[str, object],
    message: str,
) -> None:
    a_limit(queue.sql, scope, 1, per, what, value)
    refused = queue.refused(**fields)  # type: ignore[arg-type]
    assert isinstance(refused, LimitExceeded)
    assert refused.message == message
    queue.sql.execute("update odc.qos set deny_on_limit = false")
    job = queue.submit(**fields)  # type: ignore[arg-type]
    assert queue.start() == []
    assert queue.state(job) == "PENDING"


def test_a_hint_names_the_qos_that_are_left(queue: Queue) -> None:
    a_qos(queue.sql, "long")
    a_limit(queue.sql, "qos", 1, "job", "wall_s", 3600)
    assert (
        queue.refused(gpus=1, time_limit_s=7200).hint == "Request less, or use another QOS: long."
    )
    assert terms(queue, qos="long", time_limit_s=7200) == ("default", "long")


def test_a_hint_names_no_qos_for_the_limit_of_an_account(queue: Queue) -> None:
    a_qos(queue.sql, "long")
    a_limit(queue.sql, "account", 1, "job", "wall_s", 3600)
    hint = "Request less; an operator can change the limit."
    assert queue.refused(gpus=1, time_limit_s=7200).hint == hint


def test_submitted_jobs_are_counted_with_their_tasks(queue: Queue) -> None:
    a_limit(queue.sql, "qos", 1, "user", "submitted", 5)
    queue.submit(gpus=1, array="0-2")
    queue.submit(gpus=1)
    assert len(queue.start()) == 4
    refused = queue.refused(gpus=1, array="0-1")
    assert isinstance(refused, LimitExceeded)
    assert refused.message == (
        "user alice in QOS normal may have 5 submitted jobs, and 2 more would make 6 "
        "(QOSMaxSubmitJobPerUserLimit)"
    )
    queue.submit(gpus=1)
    queue.submit(BOB, gpus=1, array="0-4")


def test_account_and_qos_of_a_pending_job_can_be_changed(queue: Queue) -> None:
    a_qos(queue.sql, "fast", priority=5)
    an_account(queue.sql, "lab")
    job = queue.submit(gpus=1, array="0-2")
    assert queue.update(job, changes={"account": "lab", "qos": "fast"}) == {job: "updated"}
    assert terms_of(queue, job) == ("lab", "fast")
    assert queue.updates(job, changes={"qos": "normal"})[0]["outcome"] == "updated"
    event = queue.sql.value(
        "select detail from odc.event where kind = 'updated' order by id limit 1"
    )
    assert json.loads(event)["old"] == {"account": "default", "qos": "normal"}
    started = queue.start()
    queue.move(10)
    queue.end(*started)
    charged = queue.sql.rows("select account_id from odc.usage where total_gpu_ms > 0")
    assert charged == [{"account_id": queue.job(started[0])["account_id"]}]
    assert queue.job(started[0])["account_id"] != 1


def test_a_change_beyond_a_limit_is_refused(queue: Queue) -> None:
    short = a_qos(queue.sql, "short")
    a_limit(queue.sql, "qos", short, "job", "wall_s", 3600)
    job = queue.submit(gpus=1, time_limit_s=7200)
    [answer] = queue.updates(job, changes={"qos": "short"})
    assert answer["code"] == "OD009"
    assert queue.update(job, changes={"qos": "short", "time_limit_s": 600}) == {job: "updated"}
    assert queue.update(job, changes={"time_limit_s": 7200}) == {job: "OD009"}
    queue.start()
    assert queue.update(job, changes={"time_limit_s": 7200}, who=ROOT) == {job: "updated"}
    assert queue.update(job, changes={"qos": "normal"}, who=ROOT) == {job: "OD012"}
