"""odcd config: check the settings file, print a daemon's settings, or a file for logrotate."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated

import typer

from odcctl.cli.plain import PlainGroup, new_app
from odcd.cli.params import Command, Config, Home
from odcd.records.fields import shown

app = new_app(
    PlainGroup, "Check the settings file, and print the settings in use, or a file for logrotate."
)


@app.command(cls=Command, epilog="odcd config check --config /etc/odc/odcd.toml")
def check(
    home: Home = None,
    config: Config = None,
    set_only: Annotated[
        bool, typer.Option("--set", help="only settings that the file or the environment sets")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> int:
    """Check the settings; print each with its source. Nothing is started."""
    from odcd.configuration.effective import configured
    from odcd.configuration.faults import read_all
    from odcd.configuration.report import effective, notes
    from odcd.settings import Arguments

    mistakes: list[str] = []
    found = configured(config, home, os.environ, mistakes=mistakes)
    served = found.environment.get("ODC_EXECUTOR") == "kubernetes"
    args = Arguments(embedded=not served, home=home, config=config)
    settings = read_all(found, args, mistakes)
    rows = [row for row in effective(found, settings) if not set_only or row.source != "default"]
    remarks = list(notes(found))
    if as_json:
        answer = {
            "file": str(found.file) if found.file else None,
            "settings": [
                {"setting": row.name, "value": row.value, "source": row.source} for row in rows
            ],
            "notes": remarks,
        }
        json.dump(answer, sys.stdout, indent=2)
        print()
        return 0
    names = max((len(row.name) for row in rows), default=0)
    values = max((min(len(row.value), 40) for row in rows), default=0)
    for row in rows:
        print(shown(f"{row.name:<{names}}  {row.value:<{values}}  {row.source}"))
    for remark in remarks:
        print(shown(f"note: {remark}"), file=sys.stderr)
    what = f"{found.file} is valid" if found.file else "there is no settings file"
    print(f"odcd: {what}", file=sys.stderr)
    return 0


@app.command(cls=Command, epilog="odcd config logrotate > /etc/logrotate.d/odc")
def logrotate(home: Home = None, config: Config = None) -> int:
    """Print a file for logrotate, for the audit log of the settings."""
    from odcd.configuration.effective import configured
    from odcd.configuration.logrotate import logrotate_file
    from odcd.variables import read_audit

    environment = configured(config, home, os.environ).environment
    print(logrotate_file(read_audit(environment, detached=False)), end="")
    return 0
