"""An occurrence of a recurring job submits one job, whatever other sessions do at that time."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from odcd.jobs.submission import prepare
from odcd.slurm.cron_job import cron_job, request_of
from tests.interleave.programs import cancel, leader, passes, program, take_term
from tests.interleave.stage import Session, Step
from tests.interleave.theatre import Theatre
from tests.support.builders.cron import actor, entries_of, put_cron
from tests.support.builders.jobs import ALICE, NOW, ROOT, a_cluster
from tests.support.harness.database import Sql, TestServer

HOURLY = "#SCRON --dependency=singleton\n0 * * * * every hour\n"
DUE = NOW + timedelta(hours=1)
RUN = (
    "select odc.run_cron($1, $2, $3, $4::jsonb, $5, $6, null, null, greatest($3, $7::timestamptz))"
)


async def occurs(session: Session) -> None:
    """As the leader: read what is due, and submit it."""
    done = False
    for due in await session.fetch("select * from odc.due_crons(9, $1)", DUE):
        if due["request"] is None:
            continue
        made = prepare(
            ALICE, [cron_job(request_of(due["request"]), due["zone"], DUE)],
            key=None, dry_run=False,
        )  # fmt: skip
        [row] = await session.fetch(
            RUN, session.term, due["id"], due["due_at"], json.dumps(made.request),
            list(made.texts), list(made.texts.values()), session.world.now,
        )  # fmt: skip
        outcome = json.loads(row["run_cron"] or "{}")
        done = done or bool(outcome)
        if job := outcome.get("job_id"):
            session.on_commit.append(lambda job=job: session.world.add("every", job))
    session.changed_nothing = not done
    [row] = await session.fetch("select count(*) from odc.job where name = 'every'")
    assert row["count"] <= 1, "an occurrence submitted two jobs"


def puts(text: str) -> Step:
    async def puts(session: Session) -> None:
        await session.fetch(
            "select odc.put_cron($1::jsonb, 100, $2, 'UTC', $3::jsonb, $4)",
            actor(ALICE), text, entries_of(text, zone="UTC"), session.world.now,
        )  # fmt: skip

    return puts


async def disables(session: Session) -> None:
    await session.fetch(
        "select odc.disable_cron($1::jsonb, array(select id from odc.job where name = 'every'), "
        "$2)", actor(ROOT), session.world.now,
    )  # fmt: skip


async def removes(session: Session) -> None:
    await session.fetch(
        "select odc.remove_cron($1::jsonb, null, $2)", actor(ALICE), session.world.now
    )


def play(theatre: Theatre, *others: Any) -> None:
    with theatre.scene() as queue:
        put_cron(queue.sql, HOURLY, zone="UTC")
        theatre.world.add("other", queue.submit(name="other"))
    theatre.play_all(leader("one", [occurs]), *others)
    theatre.no_rollback()


@pytest.mark.long
def test_two_leaders_submit_one_job(theatre: Theatre) -> None:
    play(theatre, leader("two", [occurs], [occurs]), passes())


def test_a_new_leader_and_the_old_one_submit_one_job(theatre: Theatre) -> None:
    play(theatre, program("new", [take_term]), leader("two", [occurs]))


@pytest.mark.long
def test_a_table_that_changes_at_the_time_of_an_occurrence(theatre: Theatre) -> None:
    play(
        theatre, program("user", [puts(f"# moved\n{HOURLY}")], [disables]),
        program("same user", [puts(HOURLY)]),
    )  # fmt: skip


@pytest.mark.long
def test_a_table_that_is_removed_at_the_time_of_an_occurrence(theatre: Theatre) -> None:
    play(theatre, program("user", [removes], [cancel("other")]), passes())


def test_a_daemon_killed_before_its_commit_leaves_the_occurrence_to_the_next(
    postgres_server: TestServer,
) -> None:
    dsn = postgres_server.clone()
    with Sql(dsn) as killed, Sql(dsn) as sql:
        put_cron(sql, "0 * * * * every hour\n", zone="UTC")
        a_cluster(sql, h100=1)
        [due] = sql.rows("select * from odc.due_crons(9, $1)", DUE)
        made = prepare(
            ALICE, [cron_job(request_of(due["request"]), "UTC", DUE)], key=None,
            dry_run=False,
        )  # fmt: skip
        arguments = (
            0, due["id"], due["due_at"], json.dumps(made.request), list(made.texts),
            list(made.texts.values()), DUE,
        )  # fmt: skip
        killed.begin()
        first = json.loads(killed.value(RUN, *arguments))
        assert first["result"] == "submitted"
        sql.value("select pg_terminate_backend($1)", killed.value("select pg_backend_pid()"))
        second = json.loads(sql.value(RUN, *arguments))
        assert second["result"] == "submitted"
        assert sql.values("select id from odc.job") == [second["job_id"]]
        assert sql.value(RUN, *arguments) is None
    postgres_server.drop(dsn)
