"""odcd simulate --history: the policy lab on a site's own jobs, or on those of a shared file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from odcd.cli.params import locate_database
from odcd.errors import BadRequest

if TYPE_CHECKING:
    from odcd.simulate.runs import Arguments
    from odcd.simulate.site.records import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """The options for a history. window_s: None without --history."""

    window_s: int | None
    add: tuple[str, ...]
    remove: tuple[str, ...]
    settings: tuple[str, ...]
    home: str | None
    dsn: str | None


def wanted(args: Arguments, options: HistoryOptions) -> bool:
    """Whether a history is replayed: of the database, or of a file.

    Raises BadRequest for options that need a history when there is none.
    """
    from odcd.simulate.site.files import is_site

    if options.window_s is not None:
        return True
    if options.home is not None or options.dsn is not None:
        raise BadRequest("--home and --dsn are for --history", "For example --history 30d.")
    files = [text for text in args.traces if is_site(Path(text))]
    if files and len(args.traces) > 1:
        raise BadRequest(
            f"{files[0]} is a site's history, which is replayed alone", "Name one trace."
        )
    changes = (("--add", options.add), ("--remove", options.remove), ("--set", options.settings))
    for option, value in changes:
        if value and not files:
            raise BadRequest(
                f"{option} is for a site's history",
                "Use --history 30d, or name a file that `odcd history export --anonymise` wrote.",
            )
    return bool(files)


def run(args: Arguments, options: HistoryOptions) -> int:
    """Replay, compare and print."""
    from odcd.simulate.site.lab import run_lab
    from odcd.simulate.site.output import report
    from odcd.simulate.site.scenario import Scenario

    _check(args, options)
    scenario = Scenario(
        policy=args.policies[0], add=options.add, remove=options.remove, settings=options.settings
    )
    out = None if args.out is None else Path(args.out).absolute()
    found = run_lab(_site(args, options), scenario, out)
    print(json.dumps(found) if args.as_json else report(found))
    return 0


def _check(args: Arguments, options: HistoryOptions) -> None:
    """Raises BadRequest for options that a history does not have."""
    if options.window_s is not None and args.traces:
        raise BadRequest(
            "--history replays the jobs of the database, not a trace", "Give one of them."
        )
    given = {
        "--cluster": args.cluster is not None,
        "--estimates": args.estimates != "user",
        "--no-eta": not args.predict,
        "--jobs": args.jobs is not None,
        "--shake": args.shake is not None,
        "--processes": args.processes is not None,
        "--generate": args.generate is not None,
        "--save": args.save is not None,
        "--picture": args.picture is not None,
    }
    for option, used in given.items():
        if used:
            raise BadRequest(f"{option} is not for a site's history", f"Leave {option} out.")
    if len(args.policies) > 1:
        raise BadRequest("a history is replayed under one policy", "Name one with --policy.")
    if args.out is not None and not Path(args.out).absolute().parent.is_dir():
        raise BadRequest(f"--out {args.out}: the folder does not exist", "Create it first.")


def _site(args: Arguments, options: HistoryOptions) -> Site:
    from odcd.clock import SystemClock
    from odcd.home.database_access import with_database
    from odcd.simulate.site.files import read_site_file
    from odcd.simulate.site.reading import last, read_site
    from odcd.simulate.site.records import Site

    if options.window_s is None:
        return read_site_file(Path(args.traces[0]))
    start, end = last(timedelta(seconds=options.window_s), SystemClock().now())
    return with_database(
        *locate_database(options.home, options.dsn), lambda dsn: read_site(dsn, start, end), of=Site
    )
