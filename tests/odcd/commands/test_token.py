"""odcd token: keys are created with an expiry, listed without the key, and revoked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from odcd.__main__ import DONE, REFUSED, USAGE, main
from tests.support.harness.database import Sql


@pytest.fixture
def dsn(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ODC_DSN", database_url)
    monkeypatch.setenv("ODC_CONFIG", "none")
    return database_url


@pytest.fixture
def sql(dsn: str) -> Iterator[Sql]:
    with Sql(dsn) as opened:
        yield opened


def call(capsys: pytest.CaptureFixture[str], line: str, code: int = DONE) -> str:
    assert main(line.split()) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def test_a_key_is_created_listed_and_revoked(sql: Sql, capsys: pytest.CaptureFixture[str]) -> None:
    key = call(capsys, "token create ann --uid 5001 --expires 90d").strip()
    old = call(capsys, "token bob --uid 5002 --hours 8").strip()
    lives = sql.rows("select user_name, expires_at - made_at as life from odc.api_key order by 1")
    assert [tuple(row.values()) for row in lives] == [
        ("ann", timedelta(days=90)), ("bob", timedelta(hours=8)),
    ]  # fmt: skip
    header, *rows = call(capsys, "token list").splitlines()
    assert header.split()[:3] == ["PREFIX", "USER", "UID"]
    assert [row.split()[:3] for row in rows] == [
        [old[:12], "bob", "5002"], [key[:12], "ann", "5001"],
    ]  # fmt: skip
    assert key not in str(rows)
    assert call(capsys, "token list --user eve") == "eve has no valid keys\n"
    (only,) = json.loads(call(capsys, "token list --user ann --json"))["keys"]
    assert (only["prefix"], only["page_sessions"]) == (key[4:12], 0)

    # The whole key does, too: that is what leaks.
    assert call(capsys, f"token revoke {key}") == f"ended key {key[4:12]} of ann\n"
    assert "no valid key begins with" in call(capsys, f"token revoke {key[4:12]}", REFUSED)
    assert call(capsys, "token revoke --user bob") == "ended 1 key and 0 page sessions of bob\n"
    assert call(capsys, "token list") == "no valid keys\n"


def test_a_name_and_a_uid_that_do_not_belong_together_are_refused(
    sql: Sql, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: such keys were created."""
    refused = call(capsys, "token create root --uid 7777", USAGE)
    assert "user root has uid 0 on this machine, not 7777" in refused
    call(capsys, "token create ann --uid 5001")
    for line in ("token create ann --uid 5002", "token create bob --uid 5001"):
        assert "conflicts with a valid key of user ann with uid 5001" in call(capsys, line, REFUSED)
    call(capsys, "token create ann --uid 5001")
    assert sql.rows("select distinct user_name, uid from odc.api_key") == [
        {"user_name": "ann", "uid": 5001}
    ]
    sql.execute("update odc.api_key set active = false")
    call(capsys, "token create ann --uid 5002")
    assert main(["token", "create", "eve", "--uid", "1"]) == DONE
    assert "warning: uid 1 is user daemon on this machine" in capsys.readouterr().err


@pytest.mark.usefixtures("dsn")
def test_revoking_the_keys_of_a_user_without_keys_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before: it printed that 0 keys were ended, and exited with 0."""
    message = call(capsys, "token revoke --user nosuch", REFUSED)
    assert message.startswith("odcd: user nosuch has no valid keys and no page sessions\n")


def test_a_key_without_an_expiry_is_valid_for_two_hours(
    sql: Sql, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "token --uid 5001 ann")
    life = sql.value("select expires_at - made_at from odc.api_key")
    assert life == timedelta(hours=2)


@pytest.mark.usefixtures("dsn")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("token create ann --uid 5001 --expires 90", 'with its unit, as 90d, not "90"'),
        ("token create ann --uid 5001 --expires 366d", "up to 365d"),
        ("token create ann --uid 5001 --expires 0d", "up to 365d"),
        ("token create ann --uid 5001 --expires 1d --hours 2", "exclude each other"),
        ("token create ann --gid 3", "--gid needs --uid"),
        ("token create", "USER is missing"),
        ("token revoke", "give a PREFIX or --user USER"),
        ("token revoke abc", "at least 4 of its characters"),
        ("token revoke abcd --user ann", "give a PREFIX or --user USER"),
        ("token revoke ab%d", "not the beginning of a key"),
    ],
)
def test_invalid_requests_change_nothing(
    capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    assert message in call(capsys, line, USAGE)
    assert call(capsys, "token list") == "no valid keys\n"
