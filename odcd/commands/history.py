"""odcd history: ended jobs to a folder or bucket, and back for reading."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odcctl.cli.plain import PlainGroup, new_app
from odcd.cli.params import FOLDER, Command, DatabaseHome, Dsn, locate_database
from odcd.errors import BadRequest
from odcd.records.fields import shown

if TYPE_CHECKING:
    from odcd.history.manifest import Manifest

MAX_KEEP_DAYS = 3650
RESTORE = "odcd history restore /backups/history jobs-1-500000-20260101T000000000000Z"

app = new_app(PlainGroup, "Export ended jobs to compressed files, list exports, restore one.")

Target = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="a folder, or s3://BUCKET/PREFIX", click_type=FOLDER),
]
Endpoint = Annotated[
    str | None,
    typer.Option("--endpoint", metavar="URL", help="the address of an S3-compatible store"),
]


def exports_in(ctx: typer.Context) -> list[str]:
    """The exports in the folder that was named, for completion."""
    try:
        return sorted(path.name for path in Path(str(ctx.params.get("target"))).iterdir())
    except OSError:
        return []


@app.command(cls=Command, epilog="odcd history export s3://backups/odc --ids 1-500000")
def export(
    target: Target,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="DATE", help="only jobs that ended before it, UTC"),
    ] = None,
    ids: Annotated[
        str | None, typer.Option("--ids", metavar="A-B", help="only jobs with these ids")
    ] = None,
    endpoint: Endpoint = None,
    anonymise: Annotated[
        bool,
        typer.Option(
            "--anonymise",
            help="write a trace for `odcd simulate` instead, without names and texts; "
            "TARGET is a file: .json or .json.gz",
        ),
    ] = False,
    span: Annotated[
        str | None,
        typer.Option("--last", metavar="30d", help="with --anonymise: its window; default 30d"),
    ] = None,
    home: DatabaseHome = None,
    dsn: Dsn = None,
) -> int:
    """Write ended jobs to a folder or bucket; nothing is deleted."""
    from odcd.clock import SystemClock
    from odcd.history.export import Selection
    from odcd.history.export import export as export_jobs
    from odcd.history.manifest import Manifest
    from odcd.history.targets import open_target
    from odcd.home.database_access import with_database

    if anonymise:
        if ids is not None or endpoint is not None:
            raise BadRequest(
                "--ids and --endpoint are not for --anonymise", "Use --before and --last."
            )
        return _write_trace(target, _date(before), span or "30d", home, dsn)
    if span is not None:
        raise BadRequest("--last is for --anonymise", "Use --before and --ids.")
    low, high = _range_of(ids)
    selection = Selection(low=low, high=high, before=_date(before))
    place = _absolute(target)

    async def work(dsn: str) -> Manifest | None:
        async with open_target(place, endpoint) as opened:
            return await export_jobs(dsn, opened, selection, SystemClock())

    done = with_database(*locate_database(home, dsn), work, of=Manifest | None)
    if done is None:
        print("no ended job matches: nothing was written")
        return 0
    print(f"{done.name}: {_summary(done)}")
    return 0


def _write_trace(
    target: str, before: datetime | None, span: str, home: str | None, dsn: str | None
) -> int:
    """The jobs of a window as a trace to share. before: its end; None: now."""
    from odcd.clock import SystemClock
    from odcd.commands._simulate_options import window
    from odcd.home.database_access import with_database
    from odcd.simulate.site.anonymous import LEFT_OUT, anonymised
    from odcd.simulate.site.files import check_name, write_site
    from odcd.simulate.site.reading import last, read_site
    from odcd.simulate.site.records import Site

    path = Path(target)
    check_name(path)
    start, end = last(timedelta(seconds=window(span, "--last")), before or SystemClock().now())
    site = with_database(
        *locate_database(home, dsn), lambda dsn: read_site(dsn, start, end), of=Site
    )
    write_site(path, anonymised(site))
    print(
        f"{path}: {len(site.jobs)} jobs and {len(site.tables['node'])} nodes, "
        f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC\n"
        f"left out: {LEFT_OUT}; {site.left_out.never_ready} jobs that never became ready, "
        f"{site.left_out.unstarted_tasks} ranges of array tasks that were cancelled before they "
        "started\nkept: GPU types, sizes, limits, shares and priorities"
    )
    return 0


@app.command("list", cls=Command, epilog="odcd history list /backups/history")
def list_exports(target: Target, endpoint: Endpoint = None) -> int:
    """Print the exports in a folder or bucket."""
    import asyncio

    asyncio.run(_list(_absolute(target), endpoint))
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


@app.command(cls=Command, epilog=RESTORE)
def restore(
    target: Target,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="as `odcd history list` prints it", autocompletion=exports_in
        ),
    ],
    keep_days: Annotated[
        int,
        typer.Option(
            "--keep-days", metavar="N", min=1, max=MAX_KEEP_DAYS,
            help="days for which retention keeps its jobs",
        ),
    ] = 30,
    endpoint: Endpoint = None,
    home: DatabaseHome = None,
    dsn: Dsn = None,
) -> int:  # fmt: skip
    """Restore an export, so that odcctl shows its jobs again."""
    from odcd.clock import SystemClock
    from odcd.history.manifest import Manifest
    from odcd.history.restore import restore as restore_jobs
    from odcd.history.targets import open_target
    from odcd.home.database_access import with_database

    place, keep = _absolute(target), timedelta(days=keep_days)

    async def work(dsn: str) -> tuple[Manifest, int]:
        async with open_target(place, endpoint) as opened:
            return await restore_jobs(dsn, opened, name, SystemClock(), keep=keep)

    manifest, rows = with_database(*locate_database(home, dsn), work, of=tuple[Manifest, int])
    print(f"{manifest.name}: {_summary(manifest)}; {rows} missing rows were restored")
    return 0


def _summary(manifest: Manifest) -> str:
    size = sum(table.bytes for table in manifest.tables.values())
    return shown(
        f"{manifest.rows} {manifest.kind}, ids {manifest.low}-{manifest.high - 1}, "
        f"{size / 1e6:.1f} MB, made {manifest.made_at[:19]}Z"
    )


def _absolute(target: str) -> str:
    return target if target.startswith("s3://") else str(Path(target).absolute())


def _range_of(text: str | None) -> tuple[int, int]:
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
