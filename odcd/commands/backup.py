"""odcd backup: the whole queue to a file."""

from __future__ import annotations

import contextlib
import os
import secrets
from argparse import Namespace
from pathlib import Path

from odcd.commands import Subparsers, add_database, describe
from odcd.errors import OdcError
from odcd.settings import find_home


def add(subparsers: Subparsers) -> None:
    parser = describe(
        subparsers,
        "backup",
        "Write the whole queue at one moment to a file, while the daemon continues",
        "odcd backup /backups/queue.odc",
    )
    add_database(parser)
    parser.add_argument("file", metavar="FILE", type=Path)
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    from odcd.clock import SystemClock
    from odcd.database.backup import Summary, write_backup
    from odcd.home.database_access import with_database

    target: Path = args.file.absolute()
    # Beside the target and renamed when whole, so that a backup is never half there.
    # With a name that no one can guess: other users may write to the folder.
    scratch = target.with_name(f"{target.name}.{secrets.token_hex(8)}.partial")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(scratch, flags, 0o600)
        with os.fdopen(descriptor, "w+b") as file:
            summary = with_database(
                find_home(args.home, os.environ),
                args.dsn,
                lambda dsn: write_backup(dsn, file, SystemClock()),
                of=Summary,
            )
            os.fsync(file.fileno())
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
