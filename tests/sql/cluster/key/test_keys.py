"""Operators list keys and revoke one of them; other keys and page sessions are not affected."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from odcd.errors import NotOwner, WrongState
from tests.support.builders.jobs import NOW
from tests.support.harness.database import Sql

KEEP = "select odc.keep_api_key($1, $2, $3, $3, $4, $5, $6)"
ROOT = json.dumps({"user": "root", "uid": 0, "operator": True})


@pytest.fixture
def keys(sql: Sql) -> Sql:
    hour = timedelta(hours=1)
    for digest, user, uid, ends, prefix in (
        ("a", "ann", 5001, NOW + 3 * hour, "aaaa1111"),
        ("b", "ann", 5001, NOW + 2 * hour, "aaaa2222"),
        ("c", "bob", 5002, NOW + hour, "cccc3333"),
        ("d", "bob", 5002, NOW - hour, "dddd4444"),
        ("e", "bob", 5002, NOW + 4 * hour, None),
    ):
        sql.execute(KEEP, digest, user, uid, NOW - 2 * hour, ends, prefix)
    ticket = "select odc.make_page_ticket($1, 'p', 'ann', 5001, 5001, 'a', $2, $3)"
    assert sql.value(ticket, "t", NOW, NOW + hour)
    begin = "select odc.begin_page_session('t', 's', 'p', $1, $2)"
    assert sql.value(begin, NOW, NOW + hour) is not None
    return sql


def listed(sql: Sql, user: str | None = None) -> list[dict[str, Any]]:
    return json.loads(sql.value("select odc.list_api_keys($1, $2)", user, NOW))


def revoke(sql: Sql, prefix: str, actor: str = ROOT) -> dict[str, Any]:
    return json.loads(sql.value("select odc.revoke_api_key($1, $2, $3)", actor, prefix, NOW))


def test_valid_keys_are_listed_by_their_expiry_without_the_keys(keys: Sql) -> None:
    found = listed(keys)
    assert [(key["user"], key["prefix"]) for key in found] == [
        ("bob", "cccc3333"), ("ann", "aaaa2222"), ("ann", "aaaa1111"), ("bob", None),
    ]  # fmt: skip
    assert [key["page_sessions"] for key in found] == [0, 0, 1, 0]
    assert not any("digest" in key for key in found)
    assert [key["prefix"] for key in listed(keys, "bob")] == ["cccc3333", None]
    assert listed(keys, "eve") == []


def test_a_revoked_key_ends_at_once_with_its_page_sessions_and_no_other_key(keys: Sql) -> None:
    assert revoke(keys, "aaaa1")["prefix"] == "aaaa1111"
    use = "select user_name from odc.use_api_key($1, $2)"
    assert [keys.values(use, digest, NOW) for digest in "asbc"] == [[], [], ["ann"], ["bob"]]
    event = keys.row("select actor, detail from odc.event where kind = 'login_ended'")
    assert event["actor"] == "root"
    assert json.loads(event["detail"]) == {"user": "ann", "keys": 1, "key": "aaaa1111"}
    with pytest.raises(WrongState, match='no valid key begins with "aaaa1111"'):
        revoke(keys, "aaaa1111")


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("aaaa", '2 valid keys begin with "aaaa"'),
        ("dddd4444", "no valid key begins with"),  # expired
        ("", "no valid key begins with"),
        ("aa_%", "no valid key begins with"),
    ],
)
def test_a_prefix_of_no_key_or_of_several_revokes_none(
    keys: Sql, prefix: str, message: str
) -> None:
    with keys.trial(), pytest.raises(WrongState, match=message):
        revoke(keys, prefix)
    assert len(listed(keys)) == 4


def test_only_an_operator_revokes_keys(keys: Sql) -> None:
    ann = json.dumps({"user": "ann", "uid": 5001, "operator": False})
    with pytest.raises(NotOwner, match="may not revoke a key"):
        revoke(keys, "cccc3333", ann)
