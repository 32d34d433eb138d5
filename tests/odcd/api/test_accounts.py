"""/v1/accounts, qos, users, priority, shares, accounting: permissions, answers and refusals."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx
import msgspec
import pytest

from odcd.api.answers.accounts import (
    Account,
    Accounting,
    AccountList,
    Member,
    PriorityList,
    Qos,
    QosList,
    ShareList,
    User,
    UserList,
)
from odcd.api.answers.partitions import Partition
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve

T = TypeVar("T")


async def ask(
    service: Service, method: str, path: str, body: Any = None, *, peer: Any = OPERATOR,
    headers: dict[str, str] | None = None,
) -> httpx.Response:  # fmt: skip
    async with service.client(peer) as client:
        return await client.request(method, path, json=body, headers=headers)


def read(kind: type[T], answer: httpx.Response, status: int = 200) -> T:
    assert answer.status_code == status, answer.text
    return msgspec.json.decode(answer.content, type=kind)


def test_an_account_is_created_shown_listed_changed_and_deleted(database_url: str) -> None:
    async def work(service: Service) -> None:
        body = {
            "name": "lab", "parent": "default", "shares": 3, "qos": ["normal"],
            "limits": {"user": {"gpus": 4}, "job": {"wall": "1-00:00:00"}},
        }  # fmt: skip
        made = read(Account, await ask(service, "POST", "/v1/accounts", body), 201)
        assert made.limits == {"user": {"gpus": 4}, "job": {"wall_s": 86_400}}
        assert read(Account, await ask(service, "GET", "/v1/accounts/lab")) == made
        listed = read(AccountList, await ask(service, "GET", "/v1/accounts"))
        assert [account.name for account in listed.accounts] == ["default", "lab"]
        change = {"parent": None, "limits": {"job": {"wall": "UNLIMITED"}}}
        changed = read(Account, await ask(service, "PATCH", "/v1/accounts/lab", change))
        assert (changed.parent, changed.limits) == (None, {"user": {"gpus": 4}})
        assert service.woken
        gone = await ask(service, "DELETE", "/v1/accounts/lab")
        assert read(Account, gone) == changed
        assert (await ask(service, "GET", "/v1/accounts/lab")).json()["code"] == "OD002"

    serve(database_url, work)


def test_a_qos_is_created_shown_listed_changed_and_deleted(database_url: str) -> None:
    async def work(service: Service) -> None:
        body = {
            "name": "urgent", "priority": 9, "preempts": ["normal"], "grace": "0:30",
            "exempt_s": 60, "usage_factor": 1.5, "deny_on_limit": False,
        }  # fmt: skip
        made = read(Qos, await ask(service, "POST", "/v1/qos", body), 201)
        assert (made.grace_s, made.exempt_s, made.preempt_mode) == (30, 60, "requeue")
        none = {"exempt": "0", "grace": "0:00"}
        spans = read(Qos, await ask(service, "PATCH", "/v1/qos/urgent", none))
        assert (spans.grace_s, spans.exempt_s) == (0, 0), "not without end, as a time limit of 0"
        changed = read(Qos, await ask(service, "PATCH", "/v1/qos/urgent", {"preempts": []}))
        assert changed.preempts == []
        listed = read(QosList, await ask(service, "GET", "/v1/qos"))
        assert [qos.name for qos in listed.qos] == ["urgent", "normal"]
        assert read(Qos, await ask(service, "GET", "/v1/qos/urgent")) == changed
        assert read(Qos, await ask(service, "DELETE", "/v1/qos/urgent")) == changed

    serve(database_url, work)


IDLE = [{"idle_warn_s": 3600}, {"idle_warn": "1:00:00"}, {"idle_release_s": 3600},
        {"idle_warn_s": 0, "idle_release": "1:00:00"}]  # fmt: skip
NEVER = {"idle_warn": "0", "idle_release_s": 0}


def test_the_idle_limit_of_dev_servers_is_refused_without_idle_detection(database_url: str) -> None:
    """Where they are shells on the daemon's machine, which are never checked for idleness."""

    async def work(service: Service) -> None:
        for terms in IDLE:
            for method, path, name in (("POST", "/v1/qos", {"name": "n"}),
                                       ("PATCH", "/v1/qos/normal", {})):  # fmt: skip
                refused = await ask(service, method, path, name | terms)
                assert (refused.status_code, refused.json()["code"]) == (501, "OD016"), terms
                assert "whether one is idle" in refused.json()["detail"]
        normal = read(Qos, await ask(service, "GET", "/v1/qos/normal"))
        assert (normal.idle_warn_s, normal.idle_release_s) == (0, 0)
        assert (await ask(service, "GET", "/v1/qos/n")).status_code == 404
        made = await ask(service, "POST", "/v1/qos", {"name": "n", **NEVER})
        assert read(Qos, made, 201).idle_warn_s == 0
        read(Qos, await ask(service, "PATCH", "/v1/qos/n", NEVER))

    serve(database_url, work)


def test_the_idle_limit_of_dev_servers_is_accepted_for_pods(database_url: str) -> None:
    async def work(service: Service) -> None:
        body = {"name": "n", "idle_warn": "1:00:00"}
        assert read(Qos, await ask(service, "POST", "/v1/qos", body), 201).idle_warn_s
        change = {"idle_release": "2:00:00"}
        changed = read(Qos, await ask(service, "PATCH", "/v1/qos/n", change))
        assert (changed.idle_warn_s, changed.idle_release_s) == (3600, 7200)

    serve(database_url, work, dev_server_terminals=False)


def test_users_come_and_go_by_operators_and_coordinators(database_url: str) -> None:
    async def work(service: Service) -> None:
        await ask(service, "POST", "/v1/accounts", {"name": "lab"})
        users = "/v1/accounts/lab/users"
        refused = await ask(service, "POST", users, {"user": "carol", "uid": 64007}, peer=ALICE)
        assert (refused.status_code, refused.json()["code"]) == (403, "OD013")
        assert (await ask(service, "POST", users, {"user": "carol"})).json()["code"] == "OD027"
        # root exists on every machine, so its uid need not be given.
        root = read(User, await ask(service, "POST", users, {"user": "root"}), 201)
        assert (root.uid, root.default_account) == (0, "lab")
        me = (await ask(service, "POST", "/v1/jobs", JOB, peer=ALICE)).json()["id"]
        name = (await ask(service, "GET", f"/v1/jobs/{me}", peer=ALICE)).json()["jobs"][0]["user"]
        coordinators = "/v1/accounts/lab/coordinators"
        lab = read(Account, await ask(service, "POST", coordinators, {"user": name}))
        assert lab.coordinators == [name]
        # A coordinator can add only known users, and cannot assign uids.
        known = {"user": "carol", "uid": 64007}
        await ask(service, "POST", "/v1/accounts/default/users", known)
        carol = {"user": "carol", "limits": {"group": {"jobs": 2}}}
        added = read(User, await ask(service, "POST", users, carol, peer=ALICE), 201)
        limits = {account.account: account.limits for account in added.accounts}
        assert limits == {"default": {}, "lab": {"group": {"jobs": 2}}}
        changed = read(
            User,
            await ask(service, "PATCH", f"{users}/carol", {"shares": 5}, peer=ALICE),
        )
        assert {account.account: account.shares for account in changed.accounts}["lab"] == 5
        assert read(User, await ask(service, "GET", "/v1/users/carol")) == changed
        listed = read(UserList, await ask(service, "GET", "/v1/users"))
        assert [user.user for user in listed.users] == sorted(["carol", "root", name])
        gone = await ask(service, "DELETE", f"{users}/carol", peer=ALICE)
        assert read(Member, gone).user == "carol"
        nowhere = await ask(service, "DELETE", f"{users}/root?partition=big")
        assert nowhere.json()["code"] == "OD027"
        lab = read(Account, await ask(service, "DELETE", f"{coordinators}/{name}"))
        assert (lab.coordinators, lab.users) == ([], ["root"])

    serve(database_url, work)


def test_a_uid_that_the_machine_gives_to_another_name_is_refused(database_url: str) -> None:
    async def work(service: Service) -> None:
        users = "/v1/accounts/default/users"
        for user, uid, message in (
            ("root", 4242, "user root has uid 0 on the daemon's machine, not 4242"),
            ("carol", 0, "uid 0 belongs to user root on the daemon's machine, not to carol"),
        ):
            for path in (users, "/v1/accounts/default/coordinators"):
                refused = await ask(service, "POST", path, {"user": user, "uid": uid})
                assert (refused.status_code, refused.json()["detail"]) == (400, message)
        assert read(UserList, await ask(service, "GET", "/v1/users")).users == []

    serve(database_url, work)


JOB = {"script": "#!/bin/sh\n", "work_dir": "/tmp", "gpus": 1}


@pytest.mark.parametrize(
    ("path", "body", "other"),
    [
        ("/v1/accounts", {"name": "lab"}, {"name": "other"}),
        ("/v1/qos", {"name": "fast"}, {"name": "fast", "priority": 1}),
        ("/v1/accounts/default/users", {"user": "root"}, {"user": "carol", "uid": 64007}),
    ],
)
def test_a_repeated_idempotency_key_creates_only_once(
    database_url: str, path: str, body: dict[str, Any], other: dict[str, Any]
) -> None:
    async def work(service: Service) -> None:
        key = {"Idempotency-Key": "k"}
        first = await ask(service, "POST", path, body, headers=key)
        again = await ask(service, "POST", path, body, headers=key)
        assert (again.status_code, again.json()) == (201, first.json())
        assert (await ask(service, "POST", path, body)).json()["code"] == "OD028"
        reused = await ask(service, "POST", path, other, headers=key)
        assert (reused.status_code, reused.json()["code"]) == (409, "OD014")
        long = await ask(service, "POST", path, body, headers={"Idempotency-Key": "k" * 201})
        assert long.json()["code"] == "OD010"

    serve(database_url, work)


def test_priorities_and_shares_are_read_by_all_and_set_by_operators(database_url: str) -> None:
    async def work(service: Service) -> None:
        ids = [
            (await ask(service, "POST", "/v1/jobs", JOB, peer=p)).json()["id"] for p in (ALICE, BOB)
        ]
        shown = read(PriorityList, await ask(service, "GET", "/v1/priority", peer=BOB))
        assert sorted(job.id for job in shown.jobs) == ids
        assert shown.jobs[0].ordering == "odc"
        one = read(PriorityList, await ask(service, "GET", f"/v1/priority?id={ids[1]}"))
        assert [job.id for job in one.jobs] == [ids[1]]
        cut = read(PriorityList, await ask(service, "GET", "/v1/priority?limit=1"))
        assert (len(cut.jobs), cut.more) == (1, True)
        none = await ask(service, "GET", "/v1/priority?account=nobody")
        assert none.json()["code"] == "OD002"
        shares = read(ShareList, await ask(service, "GET", "/v1/shares", peer=BOB))
        assert [(s.account, s.depth) for s in shares.shares] == [
            ("default", 0),
            ("default", 1),
            ("default", 1),
        ]
        change = {"weights": {"age": 5}, "half_life": "14-0", "enforce": False}
        refused = await ask(service, "PATCH", "/v1/accounting", change, peer=BOB)
        assert refused.json()["code"] == "OD013"
        before = read(Accounting, await ask(service, "GET", "/v1/accounting", peer=BOB))
        after = read(Accounting, await ask(service, "PATCH", "/v1/accounting", change))
        assert (after.weights.age, after.half_life_s) == (5, 14 * 86_400)
        back = {"weights": {"age": before.weights.age}, "half_life_s": before.half_life_s}
        assert read(Accounting, await ask(service, "PATCH", "/v1/accounting", back)) == before

    serve(database_url, work)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/accounts", {"name": ""}),
        ("POST", "/v1/accounts", {"name": "a", "colour": "red"}),
        ("POST", "/v1/accounts", {"name": "a", "shares": -1}),
        ("POST", "/v1/accounts", {"name": "a", "limits": {"user": {"gpus": -1}}}),
        ("POST", "/v1/accounts", {"name": "a", "limits": {"user": {"gpus": "many"}}}),
        ("POST", "/v1/accounts", {"name": "a", "limits": {"job": {"wall": "x"}}}),
        ("POST", "/v1/accounts", {"name": "a", "limits": {"each": {"gpus": 1}}}),
        ("POST", "/v1/qos", {"name": "a", "preempt_mode": "suspend"}),
        ("POST", "/v1/qos", {"name": "a", "grace": "0:30", "grace_s": 30}),
        ("POST", "/v1/qos", {"name": "a", "usage_factor": 1001}),
        ("PATCH", "/v1/qos/normal", {"preempts": ["normal"]}),
        ("PATCH", "/v1/accounts/default", {"parent": "default"}),
        ("PATCH", "/v1/accounting", {"weights": {"luck": 1}}),
        ("PATCH", "/v1/accounting", {"weights": {"age": 1_000_001}}),
        ("PATCH", "/v1/accounting", {"half_life": "-1"}),
        ("PATCH", "/v1/accounting", {"half_life": "UNLIMITED"}),
        ("PATCH", "/v1/accounting", {"max_age": "0"}),
        ("PATCH", "/v1/accounts/default", {"limits": {"job": {"wall": "-1"}}}),
        ("PATCH", "/v1/qos/normal", {"grace": "-1"}),
        ("GET", "/v1/priority?id=x", None),
        ("GET", "/v1/priority?limit=0", None),
        ("GET", "/v1/shares?user=x", None),
    ],
)
def test_an_invalid_request_is_a_bad_request(
    database_url: str, method: str, path: str, body: dict[str, Any] | None
) -> None:
    async def work(service: Service) -> None:
        refused = await ask(service, method, path, body)
        assert (refused.status_code, refused.json()["code"]) == (400, "OD010"), refused.text
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["hint"]

    serve(database_url, work)


def test_a_partition_has_limits(database_url: str) -> None:
    async def work(service: Service) -> None:
        change = {"limits": {"user": {"gpus": 2}, "job": {"wall": "60"}}}
        changed = read(Partition, await ask(service, "PATCH", "/v1/partitions/main", change))
        assert changed.limits == {"user": {"gpus": 2}, "job": {"wall_s": 3600}}
        refused = await ask(service, "POST", "/v1/jobs", {**JOB, "gpus": 4}, peer=ALICE)
        assert (refused.status_code, refused.json()["code"]) == (422, "OD009")
        change = {"limits": {"user": {"gpus": None}, "job": {"wall": None}}}
        changed = read(Partition, await ask(service, "PATCH", "/v1/partitions/main", change))
        assert changed.limits == {}

    serve(database_url, work)
