"""The app `odcctl`: a Typer app that imports the module of a command only when it is called."""

from __future__ import annotations

from typing import Annotated, cast

import click
import typer

from odcctl import __version__
from odcctl.cli import plain
from odcctl.cli.commands import FORMS, common_options
from odcctl.cli.verbs import ALIASES, ELSEWHERE, GROUPS, VERBS
from odcctl.exits import DONE, USAGE, WrongUsage

EXITS = """\
Exit codes: 0 done, 1 refused, 2 wrong usage, 3 daemon not reached, 130 interrupted. `wait`, `run`
and `submit --wait` return the job's exit code: 128+n for signal n, 4 if it ended without one."""


class Root(plain.LazyGroup):
    package = "odcctl.commands"
    groups = GROUPS
    aliases = ALIASES

    def unknown(self, name: str) -> WrongUsage:
        return unknown(name)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("Usage: odcctl [--server ADDRESS] [--json] COMMAND [ARGUMENTS]\n\n")
        formatter.write(f"{self.help}\n")
        self.format_commands(ctx, formatter)
        with formatter.section("Options of every command"):
            records = [option.get_help_record(ctx) for option in common_options(FORMS)]
            formatter.write_dl([record for record in records if record])
        formatter.write("\nHelp for one command: odcctl COMMAND --help\n\n")
        formatter.write(f"{EXITS}\n\n")
        formatter.write("Example:\n  odcctl submit --gpus 1 --wrap 'python train.py'\n")
        formatter.write("  odcctl queue --me\n")


def unknown(verb: str) -> WrongUsage:
    import difflib  # only needed after a typing error

    near = [ELSEWHERE.get(verb), *difflib.get_close_matches(verb, VERBS, n=1)]
    meant = next(filter(None, near), None)
    hint = f"Did you mean: odcctl {meant}" if meant else "See: odcctl --help"
    return WrongUsage(f'no command "{verb}"', hint)


def new_root() -> Root:
    """The command line of odcctl."""
    root = cast(Root, plain.new_root(Root, "odcctl", _odcctl))
    root.params += common_options(FORMS)
    return root


def _odcctl(
    ctx: typer.Context,
    show_help: Annotated[bool, typer.Option("--help", "-h")] = False,
    version: Annotated[bool, typer.Option("--version", "-V")] = False,
) -> int | None:
    """Submit jobs to odcd, show the queue, and change pending and running jobs."""
    if ctx.invoked_subcommand is not None:
        return None
    if version:
        click.echo(f"odcctl {__version__}")
        return DONE
    click.echo(ctx.get_help(), err=not show_help)
    return DONE if show_help else USAGE
