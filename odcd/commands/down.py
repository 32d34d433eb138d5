"""odcd down: stop the daemon, the runner and the PostgreSQL of a home."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odcctl.cli.plain import new_app
from odcd.cli.params import Command, Home
from odcd.errors import OdcError
from odcd.records.fields import shown

if TYPE_CHECKING:
    from odcd.home.postgres import EmbeddedPostgres

app = new_app()


@app.command(cls=Command, epilog="odcd down --home /tmp/queue")
def down(
    home: Home = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="stop even if jobs are running: they are requeued if allowed, otherwise cancelled",
        ),
    ] = False,
) -> int:
    """Stop everything that `odcd up` started."""
    from odcd.home.lock import holder
    from odcd.home.postgres import EmbeddedPostgres
    from odcd.home.shutdown import end_daemon, end_runner, runner_lives
    from odcd.settings import GRACE, find_home

    folder = find_home(home, os.environ)
    postgres = EmbeddedPostgres(folder) if (folder / "data").exists() else None
    daemon = holder(folder / "odcd.lock")
    if postgres is None and daemon is None and not runner_lives(folder / "runner"):
        print(f"nothing runs in {folder}")
        return 0
    if (count := _running(folder, postgres)) and not force:
        raise OdcError(
            f"{_jobs(count)} running",
            "Wait until no job runs, use `odcctl cancel`, or stop everything: odcd down --force",
        )
    end_daemon(folder / "odcd.lock")
    # With jobs running the daemon ends alone; some may have started since we looked.
    if count := _running(folder, postgres):
        if not force:
            raise OdcError(
                f"{_jobs(count)} running now, so only the daemon was stopped",
                "They continue. Adopt them with `odcd up`, or stop them: odcd down --force",
            )
        _give_up(folder, postgres)
    gone = end_runner(folder / "runner", GRACE.total_seconds() if force else None)
    if postgres is not None:
        postgres.stop()
    if not gone:
        raise OdcError(
            "the runner does not stop: jobs still have processes",
            "List them: ps -ef | grep odcd.runner",
        )
    print(f"stopped {folder}")
    return 0


def _running(home: Path, postgres: EmbeddedPostgres | None) -> int:
    """The number of running jobs: the larger of the database's and the runner's."""
    from odcd.home.database_access import with_database
    from odcd.home.shutdown import count_running, running_attempts

    known = 0
    if postgres is not None and postgres.is_running():
        known = with_database(home, None, count_running, of=int)
    return max(known, running_attempts(home / "runner"))


def _give_up(home: Path, postgres: EmbeddedPostgres | None) -> None:
    from odcd.clock import SystemClock
    from odcd.home.database_access import with_database
    from odcd.home.shutdown import give_up_running
    from odcd.records.job import Identity

    if postgres is None or not postgres.is_running():
        return
    uid = os.getuid()
    who = Identity(user=pwd.getpwuid(uid).pw_name, uid=uid, gid=os.getgid(), operator=True)
    try:
        with_database(home, None, lambda dsn: give_up_running(dsn, who, SystemClock()))
    except OdcError as error:
        # Force means force: the next daemon then finds them ended by a signal.
        why = shown(error.message)
        print(f"odcd: the reason why the jobs end could not be recorded: {why}", file=sys.stderr)


def _jobs(count: int) -> str:
    return "1 job is" if count == 1 else f"{count} jobs are"
