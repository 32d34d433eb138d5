"""odcd restore: a queue back from a file."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path

from odcd.commands import Subparsers, add_database, describe
from odcd.errors import OdcError
from odcd.settings import find_home


def add(subparsers: Subparsers) -> None:
    parser = describe(
        subparsers,
        "restore",
        "Restore a queue from a file of `odcd backup`, while no daemon uses the database",
        "odcd restore /backups/queue.odc --home /var/lib/odc",
    )
    add_database(parser)
    parser.add_argument("file", metavar="FILE", type=Path)
    parser.add_argument("--replace", action="store_true", help="discard the existing jobs")
    parser.add_argument(
        "--pg", type=int, choices=[16, 18], help="the PostgreSQL version of a new home"
    )
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    from odcd.audit.command import CommandAudit
    from odcd.clock import SystemClock
    from odcd.database import schema
    from odcd.database.backup import Summary, restore_backup
    from odcd.home.account import service_account
    from odcd.home.database_access import with_database
    from odcd.home.folder import prepare_home
    from odcd.home.lock import HomeLock

    home = find_home(args.home, os.environ)
    facts = {"file": str(args.file.absolute()), "replace": args.replace}
    audit = CommandAudit(os.environ, "odcd restore", facts)
    source = schema.read_source(schema.sql_folder())
    # Read here, for the account that logs in may not.
    term = _runner_term(home)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(args.file.open("rb"))
        except OSError as error:
            raise OdcError(
                f"{args.file} cannot be read: {error.strerror}", "Check the path."
            ) from error
        if args.dsn is None:
            account = service_account()
            prepare_home(home, account)
            stack.enter_context(HomeLock(home / "odcd.lock", account))

        async def work(dsn: str) -> Summary:
            with audit.noting():
                return await restore_backup(
                    dsn, file, source, SystemClock(), replace=args.replace, term=term
                )

        done = with_database(
            home,
            args.dsn,
            work,
            of=Summary,
            begin=True,
            version=args.pg,
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
