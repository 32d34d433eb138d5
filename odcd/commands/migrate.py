"""odcd migrate: bring a database to this version."""

from __future__ import annotations

import os
from argparse import Namespace

from odcd.commands import Subparsers, add_database, describe
from odcd.errors import shown
from odcd.settings import find_home


def add(subparsers: Subparsers) -> None:
    parser = describe(
        subparsers,
        "migrate",
        "Upgrade a database to this version; run it before the first new replica of a rolling "
        "upgrade",
        "odcd migrate --dsn postgresql://odc@db/odc",
    )
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    from odcd import logs
    from odcd.clock import SystemClock
    from odcd.database import schema
    from odcd.home.database_access import with_database

    logs.configure("text")
    source = schema.read_source(schema.sql_folder())
    done = with_database(
        find_home(args.home, os.environ),
        args.dsn,
        lambda dsn: schema.install(dsn, SystemClock(), source, beside="compatible"),
        of=schema.Installed,
    )
    print(f"the database is at version {done.version}")
    if done.version > source.version:
        print(
            f"  a newer odc wrote it; this odc, of version {source.version}, can use it unchanged"
        )
    for name in done.migrations:
        print(f"  applied {shown(name)}")
    if done.loaded:
        print(f"  loaded {done.loaded} files of functions and views")
    for name in done.dropped:
        print(f"  dropped {shown(name)}")
    return 0
