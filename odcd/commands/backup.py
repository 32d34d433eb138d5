"""odcd backup: the whole queue to a file."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from odcctl.cli.plain import new_app
from odcd.cli.params import FILE, Command, DatabaseHome, Dsn, locate_database
from odcd.errors import OdcError

app = new_app()


@app.command(cls=Command, epilog="odcd backup /backups/queue.odc")
def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", click_type=FILE, help="the file to write")],
    home: DatabaseHome = None,
    dsn: Dsn = None,
) -> int:
    """Write the whole queue at one moment to a file, while the daemon continues."""
    from odcd.clock import SystemClock
    from odcd.database.backup import Summary, write_backup
    from odcd.home.database_access import with_database

    target = Path(file).absolute()
    # Beside the target and renamed when whole, so that a backup is never half there.
    # With a name that no one can guess: other users may write to the folder.
    scratch = target.with_name(f"{target.name}.{secrets.token_hex(8)}.partial")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(scratch, flags, 0o600)
        with os.fdopen(descriptor, "w+b") as opened:
            summary = with_database(
                *locate_database(home, dsn),
                lambda dsn: write_backup(dsn, opened, SystemClock()),
                of=Summary,
            )
            os.fsync(opened.fileno())
        scratch.rename(target)
    except OSError as error:
        raise OdcError(
            f"{target} cannot be written: {error.strerror}", "Choose another file."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
    print(
        f"{target}: {summary.jobs} jobs, {summary.pending} pending, {summary.running} running "
        f"at {summary.made_at:%Y-%m-%dT%H:%M:%SZ}"
    )
    return 0
