"""odcd history: ended jobs to a folder or bucket, and back for reading."""

from __future__ import annotations

import argparse
import os
import re
from argparse import Namespace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from odcd.commands import Subparsers, add_database, describe
from odcd.errors import BadRequest, shown
from odcd.settings import find_home

if TYPE_CHECKING:
    from odcd.history.manifest import Manifest

MAX_KEEP_DAYS = 3650


def add(subparsers: Subparsers) -> None:
    parser = describe(
        subparsers,
        "history",
        "Export ended jobs to compressed files, list exports, restore one",
        "odcd history export /backups/history --before 2026-01-01",
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    export = describe(
        verbs,
        "export",
        "Write ended jobs to a folder or bucket; nothing is deleted",
        "odcd history export s3://backups/odc --ids 1-500000",
    )
    export.add_argument("--before", metavar="DATE", help="only jobs that ended before it, UTC")
    export.add_argument("--ids", metavar="A-B", help="only jobs with these ids")
    export.set_defaults(run=run_export)
    listing = describe(
        verbs, "list", "Print the exports in a folder or bucket", "odcd history list /backups/h"
    )
    listing.set_defaults(run=run_list)
    restore = describe(
        verbs,
        "restore",
        "Restore an export, so that odcctl shows its jobs again",
        "odcd history restore /backups/history jobs-1-500000-20260101T000000000000Z",
    )
    restore.add_argument(
        "--keep-days", metavar="N", type=int, default=30,
        help="days for which retention keeps its jobs; default 30",
    )  # fmt: skip
    restore.set_defaults(run=run_restore)
    for verb in (export, listing, restore):
        verb.add_argument("target", metavar="TARGET", help="a folder, or s3://BUCKET/PREFIX")
        verb.add_argument("--endpoint", metavar="URL", help="the address of an S3-compatible store")
    restore.add_argument("name", metavar="NAME", help="as `odcd history list` prints it")
    for verb in (export, restore):
        add_database(verb)


def run_export(args: Namespace) -> int:
    from odcd.clock import SystemClock
    from odcd.history.export import Selection, export
    from odcd.history.manifest import Manifest
    from odcd.history.targets import open_target
    from odcd.home.database_access import with_database

    low, high = _ids(args.ids)
    selection = Selection(low=low, high=high, before=_date(args.before))
    target = _target(args)

    async def work(dsn: str) -> Manifest | None:
        async with open_target(target, args.endpoint) as opened:
            return await export(dsn, opened, selection, SystemClock())

    done = with_database(find_home(args.home, os.environ), args.dsn, work, of=Manifest | None)
    if done is None:
        print("no ended job matches: nothing was written")
        return 0
    print(f"{done.name}: {_summary(done)}")
    return 0


def run_list(args: Namespace) -> int:
    import asyncio

    asyncio.run(_list(_target(args), args.endpoint))
    return 0


async def _list(target: str, endpoint: str | None) -> None:
    import tempfile

    from odcd.history.manifest import read_manifest
    from odcd.history.targets import open_target

    with tempfile.TemporaryDirectory(prefix="odc-history-") as scratch:
        async with open_target(target, endpoint) as opened:
            for name in await opened.exports():
                manifest = await read_manifest(opened, name, Path(scratch))
                summary = "incomplete, not usable" if manifest is None else _summary(manifest)
                print(f"{shown(name)}: {summary}")


def run_restore(args: Namespace) -> int:
    from odcd.clock import SystemClock
    from odcd.history.manifest import Manifest
    from odcd.history.restore import restore
    from odcd.history.targets import open_target
    from odcd.home.database_access import with_database

    if not 1 <= args.keep_days <= MAX_KEEP_DAYS:
        raise BadRequest(
            f"--keep-days {args.keep_days} is out of range", f"Give 1 to {MAX_KEEP_DAYS}."
        )
    target, keep = _target(args), timedelta(days=args.keep_days)

    async def work(dsn: str) -> tuple[Manifest, int]:
        async with open_target(target, args.endpoint) as opened:
            return await restore(dsn, opened, args.name, SystemClock(), keep=keep)

    manifest, rows = with_database(
        find_home(args.home, os.environ), args.dsn, work, of=tuple[Manifest, int]
    )
    print(f"{manifest.name}: {_summary(manifest)}; {rows} missing rows were restored")
    return 0


def _summary(manifest: Manifest) -> str:
    size = sum(table.bytes for table in manifest.tables.values())
    return shown(
        f"{manifest.rows} {manifest.kind}, ids {manifest.low}-{manifest.high - 1}, "
        f"{size / 1e6:.1f} MB, made {manifest.made_at[:19]}Z"
    )


def _target(args: argparse.Namespace) -> str:
    target: str = args.target
    return target if target.startswith("s3://") else str(Path(target).absolute())


def _ids(text: str | None) -> tuple[int, int]:
    """Return the range of ids, from low to below high."""
    if text is None:
        return 0, 2**62
    found = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", text)
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise BadRequest(f'--ids "{text}" is not a range', "For example --ids 1-500000.")
    return int(found[1]), int(found[2] or found[1]) + 1


def _date(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadRequest(
            f'--before "{text}" is not a date', "For example --before 2026-01-31."
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
