"""odcd restore: a queue back from a file."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from odcctl.cli.plain import new_app
from odcd.cli.params import (
    FILE,
    Command,
    DatabaseHome,
    Dsn,
    NewPostgres,
    environment_of,
    locate_database,
)
from odcd.errors import OdcError

app = new_app()


@app.command(cls=Command, epilog="odcd restore /backups/queue.odc --home /var/lib/odc")
def restore(
    file: Annotated[
        str, typer.Argument(metavar="FILE", click_type=FILE, help="a file of `odcd backup`")
    ],
    home: DatabaseHome = None,
    dsn: Dsn = None,
    replace: Annotated[bool, typer.Option("--replace", help="discard the existing jobs")] = False,
    pg: NewPostgres = None,
) -> int:
    """Restore a queue from a file of `odcd backup`, while no daemon uses the database."""
    from odcd.audit.command import CommandAudit
    from odcd.clock import SystemClock
    from odcd.database import schema
    from odcd.database.backup import Summary, restore_backup
    from odcd.home.account import service_account
    from odcd.home.database_access import with_database
    from odcd.home.folder import prepare_home
    from odcd.home.lock import HomeLock

    folder, dsn = locate_database(home, dsn)
    facts = {"file": str(Path(file).absolute()), "replace": replace}
    audit = CommandAudit(environment_of(home), "odcd restore", facts)
    source = schema.read_source(schema.sql_folder())
    # Read here, for the account that logs in may not.
    term = _runner_term(folder)
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(Path(file).open("rb"))
        except OSError as error:
            raise OdcError(f"{file} cannot be read: {error.strerror}", "Check the path.") from error
        if dsn is None:
            account = service_account()
            prepare_home(folder, account)
            stack.enter_context(HomeLock(folder / "odcd.lock", account))

        async def work(dsn: str) -> Summary:
            with audit.noting():
                return await restore_backup(
                    dsn, opened, source, SystemClock(), replace=replace, term=term
                )

        done = with_database(
            folder,
            dsn,
            work,
            of=Summary,
            begin=True,
            version=pg,
        )
    print(
        f"restored {done.jobs} jobs, {done.pending} pending, {done.running} running, "
        f"as of {done.made_at:%Y-%m-%dT%H:%M:%SZ}"
    )
    if done.running:
        print(
            "  Running jobs without a process are requeued or end NODE_FAIL once odcd starts.\n"
            "  If the odcd of the backup still runs, stop it first: its jobs would run twice."
        )
    return 0


def _runner_term(home: Path) -> int:
    """The highest term that the runner of this home has obeyed."""
    try:
        return int((home / "runner" / "term").read_text())
    except (OSError, ValueError):
        return 0
