"""Accounts, QOS, users and settings are edited completely or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odcd.errors import (
    BadRequest,
    InUse,
    KeyReused,
    NotOwner,
    OdcError,
    UnknownAccount,
    UnknownPartition,
    UnknownQos,
    UnknownUser,
    WrongState,
)
from odcd.records.job import Identity
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue


class Books:
    """Requests of operators, coordinators and users about accounts."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    def call(self, function: str, who: Identity, *arguments: Any) -> Any:
        actor = json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator})
        given = [json.dumps(a) if isinstance(a, dict) else a for a in arguments]
        places = ", ".join(
            f"${n}::jsonb" if isinstance(a, dict) else f"${n}" for n, a in enumerate(arguments, 2)
        )
        places = f", {places}" if places else ""
        return json.loads(
            self.queue.sql.value(
                f"select odc.{function}($1::jsonb{places}, ${len(arguments) + 2})",
                actor, *given, self.queue.now,
            )
        )  # fmt: skip

    def account(self, name: str, who: Identity = ROOT, key: str | None = None, **ask: Any) -> Any:
        digest = json.dumps([name, ask]) if key else None
        actor = json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator})
        return json.loads(
            self.queue.sql.value(
                "select odc.create_account($1::jsonb, $2, $3::jsonb, $4, $5, $6)",
                actor, name, json.dumps(ask), key, digest, self.queue.now,
            )
        )  # fmt: skip

    def qos(self, name: str, who: Identity = ROOT, **ask: Any) -> Any:
        actor = json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator})
        return json.loads(
            self.queue.sql.value(
                "select odc.create_qos($1::jsonb, $2, $3::jsonb, null, null, $4)",
                actor, name, json.dumps(ask), self.queue.now,
            )
        )  # fmt: skip

    def edit(self, kind: str, name: str, who: Identity = ROOT, **ask: Any) -> Any:
        return self.call(f"edit_{kind}", who, name, ask)

    def delete(self, kind: str, name: str, who: Identity = ROOT) -> Any:
        return self.call(f"delete_{kind}", who, name)

    def member(
        self, account: str, user: Identity, who: Identity = ROOT, new: bool = True, **ask: Any
    ) -> Any:
        return self.call("put_member", who, account, user.user, user.uid, new, ask)

    def events(self) -> list[str]:
        return self.queue.sql.values(
            "select kind from odc.event where kind not like 'node%' order by id"
        )


@pytest.fixture
def books(queue: Queue) -> Books:
    return Books(queue)


def test_an_account_is_created_changed_and_deleted(books: Books) -> None:
    books.account("top", description="All", shares=10, limits={"group": {"gpus": 64}})
    made = books.account("lab", parent="top", organisation="Physics", default_qos="normal")
    assert made == {
        "name": "lab", "parent": "top", "description": None, "organisation": "Physics",
        "shares": 1, "default_qos": "normal", "qos": None, "coordinators": [], "users": [],
        "limits": {},
    }  # fmt: skip
    changed = books.edit(
        "account",
        "lab",
        shares=3,
        qos=["normal"],
        limits={"user": {"jobs": 4}, "job": {"wall_s": 60}},
    )
    assert (changed["shares"], changed["qos"]) == (3, ["normal"])
    assert changed["limits"] == {"job": {"wall_s": 60}, "user": {"jobs": 4}}
    changed = books.edit("account", "lab", parent=None, qos=None, limits={"user": {"jobs": None}})
    assert (changed["parent"], changed["qos"], changed["limits"]) == (
        None,
        None,
        {"job": {"wall_s": 60}},
    )
    books.member("lab", ALICE)
    books.delete("account", "lab")
    assert books.queue.sql.values("select scope from odc.resource_limit") == ["account"]
    assert books.queue.sql.rows("select * from odc.association") == []
    assert books.account("lab") == made | {
        "parent": None,
        "organisation": None,
        "default_qos": None,
    }
    assert books.events() == [
        "account_created", "account_created", "account_edited", "account_edited", "user_added",
        "account_deleted", "account_created",
    ]  # fmt: skip


def test_an_event_has_the_old_and_the_new(books: Books) -> None:
    books.account("lab", shares=2)
    books.edit("account", "lab", shares=5)
    event = books.queue.sql.row("select actor, detail from odc.event where kind = 'account_edited'")
    assert event["actor"] == "root"
    assert json.loads(event["detail"]) == {
        "account": "lab",
        "old": {"shares": 2},
        "new": {"shares": 5},
    }


def test_a_create_under_one_key_makes_one_account(books: Books) -> None:
    first = books.account("lab", key="k", shares=2)
    assert books.account("lab", key="k", shares=2) == first
    with pytest.raises(KeyReused):
        books.account("lab", key="k", shares=3)
    with pytest.raises(InUse, match='account "lab" already exists'):
        books.account("lab")


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        ({"parent": "a"}, BadRequest, 'account "a" cannot be below itself'),
        ({"parent": "c"}, BadRequest, 'account "a" cannot be below "c", which is below it'),
        ({"parent": "nobody"}, UnknownAccount, 'account "nobody" does not exist'),
        ({"shares": -1}, BadRequest, 'account "a": shares cannot be -1'),
        ({"shares": 10**7}, BadRequest, 'account "a": shares cannot be 10000000'),
        ({"shares": 10**12}, BadRequest, 'account "a": shares cannot be 1000000000000'),
        ({"default_qos": "best"}, UnknownQos, 'QOS "best" does not exist'),
        ({"qos": ["normal", "best", "new"]}, UnknownQos, 'QOS "best", "new" does not exist'),
        ({"limits": {"group": {"jobs": -1}}}, BadRequest, "limit group.jobs cannot be -1"),
        ({"limits": {"group": {"jobs": "x"}}}, BadRequest, 'limit group.jobs cannot be "x"'),
        ({"limits": {"account": {"jobs": 1}}}, BadRequest,
         "jobs cannot be limited per account in an account"),
        ({"limits": {"job": {"beer": 1}}}, BadRequest, "limit job.beer does not exist"),
        ({"limits": {"foo": {"gpus": 1}}}, BadRequest, "limit foo.gpus does not exist"),
        ({"limits": {"group": {"wall_s": 1}}}, BadRequest,
         "wall cannot be limited per group in an account"),
        ({"limits": {"job": {"wall_s": 10**13}}}, BadRequest,
         "limit job.wall cannot be 10000000000000"),
    ],
)  # fmt: skip
def test_an_invalid_account_is_refused_completely(
    books: Books, ask: dict[str, Any], error: type[OdcError], message: str
) -> None:
    books.account("a")
    books.account("b", parent="a")
    books.account("c", parent="b")
    before = books.queue.sql.value("select odc.list_accounts(null)")
    with pytest.raises(error) as refused:
        books.edit("account", "a", description="x", **ask)
    assert refused.value.message == message
    assert refused.value.hint
    assert books.queue.sql.value("select odc.list_accounts(null)") == before


def test_an_account_or_qos_in_use_is_not_deleted(books: Books) -> None:
    books.account("top")
    books.account("lab", parent="top")
    books.qos("fast")
    books.queue.submit(gpus=1, account="lab", qos="fast")
    with pytest.raises(InUse, match="accounts below it: lab"):
        books.delete("account", "top")
    with pytest.raises(InUse, match="1 pending or running job"):
        books.delete("account", "lab")
    with pytest.raises(InUse, match="1 pending or running job"):
        books.delete("qos", "fast")
    books.qos("slow")
    books.member("lab", ALICE, default_qos="slow")
    with pytest.raises(InUse, match="the default of user alice"):
        books.delete("qos", "slow")
    for kind, name in (("account", "default"), ("qos", "normal")):
        with pytest.raises(WrongState, match=f'"{name}" cannot be deleted'):
            books.delete(kind, name)


def test_a_qos_is_created_changed_and_deleted(books: Books) -> None:
    books.qos("scavenge")
    made = books.qos(
        "urgent", priority=100, restricted=True, deny_on_limit=False, usage_factor=2.5,
        preempts=["scavenge"], preempt_mode="cancel", exempt_s=600, grace_s=30,
        limits={"user": {"gpus": 8}, "job": {"wall_s": 3600}},
    )  # fmt: skip
    assert made == {
        "name": "urgent", "description": None, "priority": 100, "restricted": True,
        "deny_on_limit": False, "usage_factor": 2.5, "preempts": ["scavenge"],
        "preempt_mode": "cancel", "exempt_s": 600, "grace_s": 30,
        "idle_warn_s": 0, "idle_release_s": 0,
        "limits": {"job": {"wall_s": 3600}, "user": {"gpus": 8}},
    }  # fmt: skip
    names = [q["name"] for q in json.loads(books.queue.sql.value("select odc.list_qos(null)"))]
    assert names == ["urgent", "normal", "scavenge"]
    books.edit("account", "default", qos=["normal", "scavenge"])
    books.delete("qos", "scavenge")
    assert json.loads(books.queue.sql.value("select odc.list_qos('urgent')"))[0]["preempts"] == []
    assert books.edit("account", "default")["qos"] == ["normal"]
    # Created again, it is new.
    assert books.qos("scavenge")["limits"] == {}


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        ({"preempts": ["a"]}, BadRequest, 'QOS "a" would preempt itself'),
        ({"preempts": ["normal", "b"]}, BadRequest,
         'QOS "a" would preempt b, which preempts c, which preempts a'),
        ({"preempts": ["nobody"]}, UnknownQos, 'QOS "nobody" does not exist'),
        ({"priority": -1}, BadRequest,
         'QOS "a": one of these values is out of range: {"priority": -1}'),
        ({"usage_factor": -0.5}, BadRequest,
         'QOS "a": one of these values is out of range: {"usage_factor": -0.5}'),
        ({"preempt_mode": "suspend"}, BadRequest,
         'QOS "a": one of these values is out of range: {"preempt_mode": "suspend"}'),
        ({"limits": {"user": {"gpu_minutes": 1}}}, BadRequest,
         "gpu_minutes cannot be limited per user in a QOS"),
    ],
)  # fmt: skip
def test_an_invalid_qos_is_refused(
    books: Books, ask: dict[str, Any], error: type[OdcError], message: str
) -> None:
    books.qos("a")
    books.qos("c", preempts=["a"])
    books.qos("b", preempts=["c"])
    with pytest.raises(error) as refused:
        books.edit("qos", "a", **ask)
    assert refused.value.message == message


@pytest.mark.parametrize("name", ["", "-x", "a b", "a\nb", "é", "x" * 101])
def test_a_name_is_plain(books: Books, name: str) -> None:
    with pytest.raises(BadRequest, match="is not a valid account name"):
        books.account(name)
    with pytest.raises(BadRequest, match="is not a valid QOS name"):
        books.qos(name)


def test_users_are_added_changed_and_removed(books: Books) -> None:
    books.account("lab")
    books.account("other")
    books.member("lab", ALICE, shares=2)
    user = books.member("other", ALICE, default=True, qos=["normal"], limits={"group": {"gpus": 2}})
    assert user == {
        "user": "alice", "uid": ALICE.uid, "default_account": "other", "coordinates": [],
        "accounts": [
            {"account": "lab", "partition": None, "shares": 2, "default_qos": None, "qos": None,
             "limits": {}},
            {"account": "other", "partition": None, "shares": 1, "default_qos": None,
             "qos": ["normal"], "limits": {"group": {"gpus": 2}}},
        ],
    }  # fmt: skip
    with pytest.raises(InUse, match="is already a member of account"):
        books.member("lab", ALICE)
    with pytest.raises(UnknownUser, match='user bob is not a member of account "lab"'):
        books.member("lab", BOB, new=False)
    with pytest.raises(UnknownPartition):
        books.member("lab", BOB, partition="big")
    books.call("remove_member", ROOT, "other", "alice", None)
    [user] = json.loads(books.queue.sql.value("select odc.list_users('alice')"))
    assert (user["default_account"], len(user["accounts"])) == ("lab", 1)
    assert books.queue.sql.rows("select * from odc.resource_limit") == []
    with pytest.raises(UnknownUser):
        books.call("remove_member", ROOT, "other", "alice", None)


def test_a_member_of_one_partition_is_listed_with_it(books: Books) -> None:
    books.account("lab")
    books.member("lab", ALICE, partition="main")
    with pytest.raises(UnknownUser) as refused:
        books.member("lab", ALICE, new=False, shares=2)
    assert refused.value.message == 'user alice is not a member of account "lab" for all partitions'
    assert refused.value.hint == "Name an existing membership: there is one for partition main."


def test_a_user_unknown_to_this_machine_needs_a_uid(books: Books) -> None:
    with pytest.raises(UnknownUser, match='user "carol" is unknown') as refused:
        books.call("put_member", ROOT, "default", "carol", None, True, {})
    assert "--uid" in (refused.value.hint or "")
    books.queue.submit(gpus=1)
    assert books.call("put_member", ROOT, "default", "alice", None, True, {})["uid"] == ALICE.uid


def test_names_and_uids_of_users_are_unique(books: Books) -> None:
    books.call("put_member", ROOT, "default", "ann", 5001, True, {})
    books.account("lab")
    for function in ("put_member", "set_coordinator"):
        more = [{}] if function == "put_member" else []
        with pytest.raises(InUse, match='user ann has uid 5001 in account "default", not 5002'):
            books.call(function, ROOT, "lab", "ann", 5002, True, *more)
        with pytest.raises(
            InUse, match='uid 5001 belongs to user ann in account "default", not to zed'
        ):
            books.call(function, ROOT, "lab", "zed", 5001, True, *more)
    assert books.call("put_member", ROOT, "lab", "ann", None, True, {})["uid"] == 5001
    books.call("remove_member", ROOT, "default", "ann", None)
    books.call("remove_member", ROOT, "lab", "ann", None)
    assert books.call("put_member", ROOT, "lab", "zed", 5001, True, {})["user"] == "zed"


def test_coordinators_change_the_users_of_their_accounts_and_of_those_below(books: Books) -> None:
    books.account("top")
    books.account("lab", parent="top")
    books.qos("urgent", restricted=True)
    for account in ("lab", "default"):
        with pytest.raises(
            NotOwner, match=f'user alice may not change the users of account "{account}"'
        ):
            books.member(account, BOB, who=ALICE)
    assert books.call("set_coordinator", ROOT, "top", "alice", ALICE.uid, True)["coordinators"] == [
        "alice"
    ]
    books.member("lab", BOB, who=ALICE, shares=2)
    books.member("lab", BOB, who=ALICE, new=False, limits={"group": {"jobs": 1}})
    with pytest.raises(NotOwner, match="does not have all of these QOS"):
        books.member("lab", BOB, who=ALICE, new=False, qos=["normal", "urgent"])
    with pytest.raises(NotOwner):
        books.member("default", BOB, who=ALICE)
    for kind in ("edit", "delete"):
        with pytest.raises(NotOwner):
            getattr(books, kind)("account", "lab", who=ALICE)
    books.call("remove_member", ALICE, "lab", "bob", None)
    books.call("set_coordinator", ROOT, "top", "alice", None, False)
    with pytest.raises(NotOwner):
        books.member("lab", BOB, who=ALICE)


def test_only_operators_change_accounts_qos_and_settings(books: Books) -> None:
    for change in (
        lambda: books.account("x", who=ALICE),
        lambda: books.qos("x", who=ALICE),
        lambda: books.edit("qos", "normal", who=ALICE, priority=1),
        lambda: books.delete("qos", "normal", who=ALICE),
        lambda: books.call("edit_accounting", ALICE, {"enforce": True}),
        lambda: books.call("set_coordinator", ALICE, "default", "alice", 1, True),
    ):
        with pytest.raises(NotOwner):
            change()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        ({"weights": {"age": -1}}, 'a value of {"weights": {"age": -1}} is out of range'),
        (
            {"weights": {"age": 1_000_001}},
            'a value of {"weights": {"age": 1000001}} is out of range',
        ),
        ({"weights": {"luck": 1}}, 'priority factor "luck" does not exist'),
        ({"half_life_s": 0}, 'a value of {"half_life_s": 0} is out of range'),
        ({"max_age_s": -5}, 'a value of {"max_age_s": -5} is out of range'),
        ({"cpus_per_gpu": 0}, 'a value of {"cpus_per_gpu": 0} is out of range'),
    ],
)
def test_invalid_settings_are_refused(books: Books, ask: dict[str, Any], message: str) -> None:
    before = books.queue.sql.value("select odc.show_accounting()")
    with pytest.raises(BadRequest) as refused:
        books.call("edit_accounting", ROOT, ask)
    assert refused.value.message == message
    assert books.queue.sql.value("select odc.show_accounting()") == before


def test_settings_are_changed_with_an_event(books: Books) -> None:
    after = books.call(
        "edit_accounting", ROOT, {"weights": {"age": 7}, "half_life_s": 60, "enforce": True}
    )
    assert (after["weights"]["age"], after["half_life_s"], after["enforce"]) == (7, 60, True)
    assert books.events() == ["accounting_edited"]
