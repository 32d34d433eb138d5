"""Typer commands with plain help, and groups that import a command when it is called.

odcd's command line is made of them, too: they know nothing of odcctl.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, cast

import click
import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

HELP_WIDTH = 100
CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH}


def new_app(cls: type[TyperGroup] | None = None, help: str | None = None) -> typer.Typer:
    """A Typer app with plain help and Python's own tracebacks: Rich is not imported for them."""
    about: dict[str, Any] = {} if help is None else {"help": help}
    return typer.Typer(
        cls=cls, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
        **about,
    )  # fmt: skip


class PlainCommand(TyperCommand):
    """A command whose help is plain text. The epilog is an example."""

    about_options: ClassVar[str] = ""
    """A sentence about the options, for the reference page."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _in_context(ctx):
            return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.epilog:
            formatter.write_paragraph()
            formatter.write("Example:\n")
            for line in self.epilog.splitlines():
                formatter.write(f"  {line}\n")

    def get_short_help_str(self, limit: int = 0) -> str:
        """The first line of the docstring, whole."""
        return summary_of(self)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _named_plainly(super().get_help_option(ctx))


class PlainGroup(TyperGroup):
    """A command with actions, as `account list`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.subcommand_metavar = "ACTION ..."

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _in_context(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not ctx.resilient_parsing:
            ctx.fail(f'"{args[0]}" is none of: {", ".join(self.commands)}')
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Actions"):
            formatter.write_dl([(name, summary_of(one)) for name, one in self.commands.items()])
        formatter.write_paragraph()
        formatter.write(f"Help for one action: {ctx.command_path} ACTION --help\n")

    def get_short_help_str(self, limit: int = 0) -> str:
        return summary_of(self)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _named_plainly(super().get_help_option(ctx))


class LazyGroup(TyperGroup):
    """The root of a program, which finds a command's module by the command's name."""

    package: ClassVar[str]
    """The package of the modules; each has a Typer app."""
    groups: ClassVar[Mapping[str, Sequence[str]]]
    """The names of the commands, by the headings of the overview."""
    aliases: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in self.groups.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = self.aliases.get(cmd_name, cmd_name)
        return self.load(name) if name in self.list_commands(ctx) else None

    def load(self, name: str) -> click.Command:
        """Import the command and build it."""
        module = importlib.import_module(f"{self.package}.{name.replace('-', '_')}")
        command = typer.main.get_command(module.app)
        command.name = name
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Also `help COMMAND`, and `--help COMMAND`."""
        if args == ["help"]:
            click.echo(ctx.get_help())
            ctx.exit()
        if args[0] == "help":
            args = [*args[1:], "--help"]
        elif ctx.params.get("show_help"):
            args = [args[0], "--help"]
        command = self.get_command(ctx, args[0])
        if command is None and not ctx.resilient_parsing:
            raise self.unknown(args[0])
        return (command.name if command else None), command, args[1:]

    def unknown(self, name: str) -> Exception:
        """The error for a name that is no command."""
        raise NotImplementedError

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, names in self.groups.items():
            with formatter.section(group):
                formatter.write_dl([(name, _lower(summary_of(self.load(name)))) for name in names])


def new_root(cls: type[LazyGroup], program: str, callback: Callable[..., int | None]) -> LazyGroup:
    """The command line of a program. callback: what it does without a command; its parameters are
    the options, show_help among them."""
    app = typer.Typer(
        name=program, cls=cls, add_completion=False, rich_markup_mode=None,
        pretty_exceptions_enable=False, add_help_option=False, context_settings=CONTEXT,
    )  # fmt: skip
    app.callback(invoke_without_command=True)(callback)
    return cast(LazyGroup, typer.main.get_command(app))


def call_app(root: click.Command, program: str, argv: list[str], obj: object = None) -> int:
    """Run the command that argv names; its exit code. Raises click.UsageError, and what the
    command raises."""
    try:
        with root.make_context(program, argv, obj=obj) as context:
            code = root.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return code if isinstance(code, int) else 0


def summary_of(command: click.Command) -> str:
    """The first line of its help, without the full stop."""
    return (command.help or "").partition("\n")[0].removesuffix(".")


@contextmanager
def _in_context(ctx: click.Context) -> Generator[None]:
    """Click's parser raises some errors without their context, which has the usage."""
    try:
        yield
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


def _named_plainly(option: click.Option | None) -> click.Option | None:
    if option is not None:
        option.help = "show this help"
    return option


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]
