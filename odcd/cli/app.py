"""The app `odcd`: a Typer app that imports the module of a command only when it is called."""

from __future__ import annotations

from typing import Annotated

import click
import typer

from odcctl.cli import plain
from odcd import __version__
from odcd.errors import BadRequest

GROUPS = {
    "The daemon": ("up", "down", "serve", "token", "doctor", "config"),
    "Its database": ("migrate", "backup", "restore", "history", "purge"),
    "Without a daemon": ("demo", "simulate"),
    "This program": ("completion",),
}
"""The commands, each a module of odcd.commands."""
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
EXITS = "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted."


class Root(plain.LazyGroup):
    package = "odcd.commands"
    groups = GROUPS

    def unknown(self, name: str) -> BadRequest:
        import difflib  # only for a mistyped command

        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"Did you mean: odcd {near[0]}" if near else "See: odcd --help"
        return BadRequest(f'no command "{name}"', hint)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("Usage: odcd COMMAND [ARGUMENTS]\n\n")
        formatter.write(f"{self.help}\n")
        self.format_commands(ctx, formatter)
        formatter.write("\nHelp for one command: odcd COMMAND --help\n\n")
        formatter.write(f"{EXITS}\n\n")
        formatter.write("Example:\n  odcd up --node n1=h100:8 --detach\n")


def new_root() -> plain.LazyGroup:
    """The command line of odcd."""
    return plain.new_root(Root, "odcd", _odcd)


def _odcd(
    ctx: typer.Context,
    show_help: Annotated[bool, typer.Option("--help", "-h")] = False,
    version: Annotated[bool, typer.Option("--version", "-V")] = False,
) -> int | None:
    """The daemon of odc, a GPU scheduler. People use odcctl."""
    if ctx.invoked_subcommand is not None:
        return None
    if version:
        click.echo(f"odcd {__version__}")
        return 0
    click.echo(ctx.get_help(), err=not show_help)
    return 0 if show_help else 2
