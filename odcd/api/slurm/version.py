"""--version, --help and --usage of the commands that list things."""

from __future__ import annotations

from collections.abc import Iterable

from odcd import __version__
from odcd.api.slurm.remote import Finished, Remote
from odcd.slurm.commands.getopt import Flag

SLURM_VERSION = "24.11.4"
"""The version of Slurm whose output odc's commands have; clients read the second word."""


def version_line() -> str:
    return f"slurm {SLURM_VERSION} (odc {__version__})\n"


def help_text(name: str, options: Iterable[Flag]) -> str:
    rows: list[str] = [f"Usage: {name} [OPTIONS]\n"]
    for flag in options:
        short = f"-{flag.short}" if flag.short else ""
        long = f"--{flag.long}" if flag.long else ""
        value = {"none": "", "optional": "[=VALUE]", "required": "=VALUE"}[flag.argument]
        about = f"refused: {flag.refused}" if flag.refused else flag.help
        rows.append(f"  {', '.join(filter(None, (short, long)))}{value}".ljust(34) + f"{about}\n")
    return "".join(rows)


def answer_about(remote: Remote, options: Iterable[Flag]) -> Finished | None:
    """The answer if the arguments ask only about the command."""
    words = set(remote.request.argv)
    if words & {"--version", "-V"}:
        return Finished(out=version_line())
    if words & {"--help", "--usage"}:
        return Finished(out=help_text(remote.name, options))
    return None
