"""Replay a site with its own settings and with changed ones, at the same time, and compare."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from odcd.simulate.apart import run_apart
from odcd.simulate.progress import ReplayProgress
from odcd.simulate.server import in_private_database
from odcd.simulate.site.compare import comparison, matched
from odcd.simulate.site.output import write_starts
from odcd.simulate.site.records import Site
from odcd.simulate.site.replay import Sources, read_sources, replay_site
from odcd.simulate.site.scenario import Scenario, applied
from odcd.simulate.site.starts import Done


def run_lab(site: Site, scenario: Scenario, out: Path | None) -> dict[str, Any]:
    """Compare the replays with what really happened. Raises BadRequest for a wrong scenario."""
    sites = [site] if scenario.changes_nothing else [site, applied(site, scenario)]
    sources = read_sources()
    progress = ReplayProgress("replays", sys.stderr)
    works: list[Callable[[], Any]] = [partial(_replayed, one, sources) for one in sites]
    with progress:
        answers = run_apart(works, len(works), progress.show)
    replays = [msgspec.convert(answer, Done, str_keys=True) for answer in answers]
    if out is not None:
        write_starts(out, matched(site, replays))
    return comparison(site, replays, str(scenario))


def _replayed(site: Site, sources: Sources) -> Any:
    work = partial(replay_site, sources=sources, site=site, progress=lambda done, total: None)
    return msgspec.to_builtins(in_private_database(work, Done), str_keys=True)
