"""Tables of recurring jobs, stored by the functions that the daemon calls."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import msgspec

from odcd.jobs.submission import prepare
from odcd.records.job import Identity
from odcd.slurm.cron_job import cron_job, request_of
from odcd.slurm.crontab import CronOrigin, parse_crontab
from tests.support.builders.jobs import ALICE, NOW
from tests.support.harness.database import Sql

BERLIN = "Europe/Berlin"


def actor(who: Identity) -> str:
    return json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator})


def entries_of(text: str, *, zone: str = BERLIN, now: datetime = NOW) -> str:
    origin = CronOrigin(zone=zone, work_dir="/tmp", umask=0o22)
    return json.dumps([
        {**one.schedule.as_json(), "first_line": one.first_line, "line": one.line,
         "schedule": one.written, "zone": one.zone,
         "request": msgspec.to_builtins(one.request)}
        for one in parse_crontab(text, origin, now).entries
    ])  # fmt: skip


def put_cron(
    sql: Sql, text: str, *, who: Identity = ALICE, zone: str = BERLIN, now: datetime = NOW
) -> dict[str, Any]:
    return json.loads(
        sql.value(
            "select odc.put_cron($1::jsonb, $2, $3, $4, $5::jsonb, $6)",
            actor(who), who.gid, text, zone, entries_of(text, zone=zone, now=now), now,
        )
    )  # fmt: skip


def show_cron(sql: Sql, who: Identity = ALICE, user: str | None = None) -> dict[str, Any]:
    return json.loads(sql.value("select odc.show_cron($1::jsonb, $2)", actor(who), user))


def due_crons(sql: Sql, now: datetime) -> list[dict[str, Any]]:
    return sql.rows("select * from odc.due_crons(100, $1)", now)


def run_cron(
    sql: Sql, due: dict[str, Any], now: datetime, *, term: int = 0, **fields: Any
) -> dict[str, Any] | None:
    """As the leader does it, for an occurrence of due_crons. fields: of the job."""
    request, texts = None, {}
    if due["request"] is not None:
        who = Identity(user=due["user_name"], uid=due["uid"], gid=due["gid"], operator=False)
        spec = cron_job(request_of(due["request"]), due["zone"], now)
        prepared = prepare(who, [msgspec.structs.replace(spec, **fields)], key=None, dry_run=False)
        request, texts = json.dumps(prepared.request), prepared.texts
    answer = sql.value(
        "select odc.run_cron($1, $2, $3, $4::jsonb, $5, $6, null, null, $7)",
        term, due["id"], due["due_at"], request, list(texts), list(texts.values()), now,
    )  # fmt: skip
    return None if answer is None else json.loads(answer)


def run_all(sql: Sql, now: datetime) -> list[dict[str, Any] | None]:
    return [run_cron(sql, due, now) for due in due_crons(sql, now)]
