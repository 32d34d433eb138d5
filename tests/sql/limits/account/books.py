"""Accounts, users, QOS and limits, written as rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from odcd.records.job import Identity
from tests.support.builders.jobs import NOW
from tests.support.harness.database import Sql


def an_account(sql: Sql, name: str, parent: int | None = None, shares: int = 1) -> int:
    return sql.value(
        "insert into odc.account (name, parent, shares) values ($1, $2, $3) returning id",
        name, parent, shares,
    )  # fmt: skip


def a_qos(sql: Sql, name: str, **columns: Any) -> int:
    columns["name"] = name
    places = ", ".join(f"${n}" for n in range(1, len(columns) + 1))
    return sql.value(
        f"insert into odc.qos ({', '.join(columns)}) values ({places}) returning id",
        *columns.values(),
    )


def a_member(
    sql: Sql, account: int, who: Identity, shares: int = 1, partition: int | None = None,
    is_default: bool = False,
) -> int:  # fmt: skip
    return sql.value(
        "insert into odc.association (account_id, uid, user_name, shares, partition_id, "
        "is_default, made_at) values ($1, $2, $3, $4, $5, $6, $7) returning id",
        account, who.uid, who.user, shares, partition, is_default, NOW,
    )  # fmt: skip


def a_user(number: int) -> Identity:
    return Identity(user=f"u{number}", uid=2000 + number, gid=100, operator=False)


def has_used(
    sql: Sql, account: int, who: Identity, used_ms: int, at: datetime = NOW, qos: int = 1
) -> None:
    sql.execute(
        "insert into odc.usage (account_id, uid, qos_id, user_name, used_ms, used_gpu_ms, used_at) "
        "values ($1, $2, $3, $4, $5, $5, $6)",
        account, who.uid, qos, who.user, used_ms, at,
    )  # fmt: skip


def a_limit(sql: Sql, scope: str, scope_id: int, per: str, what: str, value: int) -> None:
    sql.execute(
        "insert into odc.resource_limit values ($1, $2, $3, $4, $5) "
        "on conflict (scope, scope_id, per, what) do update set value = excluded.value",
        scope, scope_id, per, what, value,
    )  # fmt: skip


def fair_share(sql: Sql, now: datetime = NOW) -> dict[tuple[int, int], int]:
    """Factor by account and uid."""
    return {
        (row["account_id"], row["uid"]): row["factor"]
        for row in sql.rows("select * from odc._fair_share($1)", now)
    }
