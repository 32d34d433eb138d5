"""The app `odcctl`: a Typer app that imports the module of a command only when it is called."""

from __future__ import annotations

import importlib
from typing import Annotated, cast

import click
import typer
import typer.main
from typer.core import TyperGroup

from odcctl import __version__
from odcctl.cli.call import Call
from odcctl.cli.commands import CONTEXT, FORMS, common_options, summary_of
from odcctl.cli.verbs import ALIASES, ELSEWHERE, GROUPS, VERBS
from odcctl.exits import DONE, USAGE, WrongUsage

EXITS = """\
Exit codes: 0 done, 1 refused, 2 wrong usage, 3 daemon not reached, 130 interrupted. `wait`, `run`
and `submit --wait` return the job's exit code: 128+n for signal n, 4 if it ended without one."""


class LazyGroup(TyperGroup):
    """Finds a command's module by the command's name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        return load(name) if name in VERBS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Also `help VERB`, and `--help VERB`."""
        if args == ["help"]:
            click.echo(ctx.get_help())
            ctx.exit()
        if args[0] == "help":
            args = [*args[1:], "--help"]
        elif ctx.params.get("show_help"):
            args = [args[0], "--help"]
        command = self.get_command(ctx, args[0])
        if command is None and not ctx.resilient_parsing:
            raise unknown(args[0])
        return (command.name if command else None), command, args[1:]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("Usage: odcctl [--server ADDRESS] [--json] COMMAND [ARGUMENTS]\n\n")
        formatter.write(f"{self.help}\n")
        for group, verbs in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(verb, _lower(summary_of(load(verb)))) for verb in verbs])
        with formatter.section("Options of every command"):
            records = [option.get_help_record(ctx) for option in common_options(FORMS)]
            formatter.write_dl([record for record in records if record])
        formatter.write("\nHelp for one command: odcctl COMMAND --help\n\n")
        formatter.write(f"{EXITS}\n\n")
        formatter.write("Example:\n  odcctl submit --gpus 1 --wrap 'python train.py'\n")
        formatter.write("  odcctl queue --me\n")


def load(verb: str) -> click.Command:
    """Import the command and build it."""
    module = importlib.import_module(f"odcctl.commands.{verb.replace('-', '_')}")
    command = typer.main.get_command(module.app)
    command.name = verb
    return command


def unknown(verb: str) -> WrongUsage:
    import difflib  # only needed after a typing error

    near = [ELSEWHERE.get(verb), *difflib.get_close_matches(verb, VERBS, n=1)]
    meant = next(filter(None, near), None)
    hint = f"Did you mean: odcctl {meant}" if meant else "See: odcctl --help"
    return WrongUsage(f'no command "{verb}"', hint)


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def new_root() -> LazyGroup:
    """The command line of odcctl."""
    app = typer.Typer(
        name="odcctl", cls=LazyGroup, add_completion=False, rich_markup_mode=None,
        pretty_exceptions_enable=False, add_help_option=False, context_settings=CONTEXT,
    )  # fmt: skip
    app.callback(invoke_without_command=True)(_odcctl)
    root = cast(LazyGroup, typer.main.get_command(app))
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


def call_app(root: click.Command, argv: list[str], call: Call) -> int:
    """Run the command that argv names; return its exit code. Raises Failure, click.UsageError."""
    try:
        with root.make_context("odcctl", argv, obj=call) as context:
            code = root.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return code if isinstance(code, int) else DONE
