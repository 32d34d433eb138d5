"""The classes of odcctl's commands: every one has the common options, and help in plain text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from typer.core import TyperOption

from odcctl.cli.call import Call
from odcctl.cli.plain import PlainCommand, PlainGroup, new_app

__all__ = [
    "FORMS", "HOURS_CONTEXT", "Actions", "Listing", "PassThrough", "Verb", "common_options",
    "new_app",
]  # fmt: skip

FORMS = ("table", "json", "quiet")
LIST_FORMS = (*FORMS, "csv")
HOURS_CONTEXT = {"help_option_names": ["--help"]}
"""The context of commands whose -h means hours."""


class Verb(PlainCommand):
    """A command of odcctl."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **settings)
        self.params += self.common_options()

    def common_options(self) -> list[click.Parameter]:
        return common_options(FORMS)


class Listing(Verb):
    """A command that prints a table: its columns can be chosen, and it can be CSV."""

    def common_options(self) -> list[click.Parameter]:
        return [
            _option(
                "--format", "-o", metavar="COLUMNS", set="columns",
                help="print only these columns, for example job,user,state",
            ),
            _option("--no-header", is_flag=True, set="header", value=lambda _: False,
                    help="omit the header line"),
            *common_options(LIST_FORMS),
        ]  # fmt: skip

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        call = ctx.ensure_object(Call)
        if call.form in ("json", "quiet") and not ctx.resilient_parsing:
            if call.columns is not None:
                ctx.fail(f"--format chooses columns of a table or CSV; {call.form} has none")
            if call.form == "json" and not call.header:
                ctx.fail("--no-header is for a table or CSV; json has no header")
        return rest


class PassThrough(Verb):
    """A command whose arguments the daemon parses: odcctl's own options stand only before them.

    Click's ignore_unknown_options would still find -h in -Jhello, and --json anywhere.
    """

    about_options = "Its options are [sbatch's](submit-options.md); before them may stand:"

    def common_options(self) -> list[click.Parameter]:
        return common_options(None)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.ensure_object(Call).output is not None and not ctx.resilient_parsing:
            ctx.fail(
                "--output cannot be used before it; use --json before it, or --parsable after it"
            )
        at = 0
        while at < len(args) and (length := self._own_length(args[at])):
            at += length
        super().parse_args(ctx, args[:at])
        ctx.args = args[at:]
        return ctx.args

    def _own_length(self, word: str) -> int:
        """How many words the option takes, if it is one of odcctl's own; otherwise 0."""
        if word in ("--json", "--help", "-h"):
            return 1
        takes_value = {
            name for param in self.params
            if isinstance(param, click.Option) and not param.is_flag for name in param.opts
        }  # fmt: skip
        name, equals, _ = word.partition("=")
        return (1 if equals else 2) if name in takes_value else 0


class Actions(PlainGroup):
    """A verb with actions: odcctl account list. Options may also stand before the action."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.params += common_options(FORMS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and not ctx.resilient_parsing:
            action = next((word for word in args if word in self.commands), None)
            if action is not None:
                args.remove(action)
                args.insert(0, action)
        return super().parse_args(ctx, args)


def common_options(forms: tuple[str, ...] | None) -> list[click.Parameter]:
    """forms: the values of --output; None if the command has no such option."""
    json = _option("--json", is_flag=True, set="json",
                   help="print the API's answer as one JSON value")  # fmt: skip
    server = _option(
        "--server", metavar="ADDRESS", set="server",
        help="a socket's path, or http(s)://HOST[:PORT]",
    )  # fmt: skip
    if forms is None:
        return [json, server]
    more = ", csv" if "csv" in forms else ""
    output = _option(
        "--output", metavar="FORM", set="output", value=_one_of(forms),
        complete=lambda ctx, args, incomplete: list(forms),
        help=f"table (the default), json{more}, or quiet (one id per line)",
    )  # fmt: skip
    return [json, output, server]


def _option(
    *names: str,
    set: str,
    help: str,
    is_flag: bool = False,
    metavar: str | None = None,
    value: Callable[[Any], Any] = lambda given: given,
    complete: Callable[[click.Context, list[str], str], list[str]] | None = None,
) -> TyperOption:
    """An option that sets an attribute of the Call."""

    def keep(ctx: click.Context, param: click.Parameter, given: Any) -> None:
        if given is not None and given is not False:
            setattr(ctx.ensure_object(Call), set, value(given))

    return TyperOption(
        param_decls=list(names), metavar=metavar, help=help, expose_value=False, callback=keep,
        is_flag=is_flag, default=False if is_flag else None, autocompletion=complete,
    )  # fmt: skip


def _one_of(forms: tuple[str, ...]) -> Callable[[str], str]:
    def check(form: str) -> str:
        if form not in forms:
            named = f"{', '.join(forms[:-1])} or {forms[-1]}"
            raise click.BadParameter(f'must be {named}, not "{form}"')
        return form

    return check
