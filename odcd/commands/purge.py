"""odcd purge: delete the history that is older than an age, once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import click
import typer

from odcctl.cli.plain import new_app
from odcctl.text.durations import seconds_of
from odcd.cli.params import Command, DatabaseHome, Dsn, environment_of, locate_database

if TYPE_CHECKING:
    from odcd.history.purge import Count
    from odcd.history.retention import Deleted

MIN_S, MAX_S = 86_400, 36_500 * 86_400

app = new_app()


def read_age(text: str) -> int:
    """Seconds; a bare number would be ambiguous."""
    seconds = 0 if text.isdecimal() else seconds_of(text) or 0
    if not MIN_S <= seconds <= MAX_S:
        raise click.BadParameter(f'takes an age from 1d to 36500d, as 180d, not "{text}"')
    return seconds


@app.command(cls=Command, epilog="odcd purge --older-than 180d --dry-run")
def purge(
    age_s: Annotated[
        int,
        typer.Option(
            "--older-than", metavar="AGE", parser=read_age,
            help="jobs that ended, and events that happened, longer ago than this, as 180d",
        ),
    ],
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="only print how much would be deleted, and check --export's target"
        ),
    ] = False,
    export: Annotated[
        str | None,
        typer.Option(
            "--export", metavar="TARGET",
            help="export the jobs first: a folder, or s3://BUCKET/PREFIX; "
            "default $ODC_HISTORY_TARGET",
        ),
    ] = None,
    home: DatabaseHome = None,
    dsn: Dsn = None,
) -> int:  # fmt: skip
    """Delete ended jobs of an age once, with their attempts, events, scripts, output and past.

    Live jobs, and jobs that live ones need, are kept. So is the used time that limits and fair
    share count. A daemon may run meanwhile.
    """
    from odcd.audit.command import CommandAudit
    from odcd.clock import SystemClock
    from odcd.history import purge as work
    from odcd.history.retention import Deleted
    from odcd.history.settings import HistorySettings
    from odcd.history.targets import check_target, open_target
    from odcd.home.database_access import with_database

    environment, clock, age = environment_of(home), SystemClock(), timedelta(seconds=age_s)
    target = export or environment.get("ODC_HISTORY_TARGET") or None
    if target is not None:
        check_target(target)
    settings = HistorySettings(
        export_target=target, endpoint=environment.get("ODC_HISTORY_ENDPOINT") or None
    )
    place = locate_database(home, dsn)
    if dry_run:
        now = clock.now()

        async def look(dsn: str) -> Count:
            if target is not None:
                async with open_target(target, settings.endpoint) as opened:
                    await opened.check()
            return await work.count(dsn, now - age, now)

        print(_would(with_database(*place, look, of=work.Count)))
        return 0
    audit = CommandAudit(environment, "odcd purge", {"older_than_s": age_s, "export": target})

    async def delete(dsn: str) -> Deleted:
        with audit.noting():
            return await work.purge(dsn, age, settings, clock)

    print(_did(with_database(*place, delete, of=Deleted)))
    return 0


def _would(found: Count) -> str:
    kept = f"; {found.kept} of that age are kept, because others need them" if found.kept else ""
    return (
        f"would delete {found.jobs} jobs with their rows, and {found.events} events without a job"
        f"{kept}"
    )


def _did(done: Deleted) -> str:
    parts = f", {done.partitions} whole partitions" if done.partitions else ""
    exports = f"; {done.exports} exports were written" if done.exports else ""
    return (
        f"deleted {done.jobs} jobs with their rows{parts}, {done.events} events, "
        f"{done.texts} scripts and environments, {done.past} rows of the past{exports}"
    )
