"""odcd migrate: bring a database to this version."""

from __future__ import annotations

from odcctl.cli.plain import new_app
from odcd.cli.params import Command, DatabaseHome, Dsn, locate_database
from odcd.records.fields import shown

app = new_app()


@app.command(cls=Command, epilog="odcd migrate --dsn postgresql://odc@db/odc")
def migrate(home: DatabaseHome = None, dsn: Dsn = None) -> int:
    """Bring a database to this version: new migrations, then all functions and views.

    In a rolling upgrade, run it before the first new replica starts.
    """
    from odcd import logs
    from odcd.clock import SystemClock
    from odcd.database import schema
    from odcd.home.database_access import with_database

    logs.configure("text")
    source = schema.read_source(schema.sql_folder())
    done = with_database(
        *locate_database(home, dsn),
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
