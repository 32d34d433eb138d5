"""A command as a section of a reference page. odcd's page is made of them, too."""

from __future__ import annotations

from collections.abc import Iterator

import click

from odcctl.cli.plain import LazyGroup, summary_of


def contexts_of(
    root: LazyGroup, program: str, name: str, obj: object = None
) -> Iterator[click.Context]:
    """The context of a command, then those of its actions."""
    top = root.make_context(program, [], resilient_parsing=True, obj=obj)
    command = root.load(name)
    context = command.make_context(name, [], top, resilient_parsing=True)
    yield context
    for action_name, action in getattr(command, "commands", {}).items():
        yield action.make_context(action_name, [], context, resilient_parsing=True)


def section(context: click.Context) -> str:
    command = context.command
    depth = "###" if context.parent and context.parent.parent is None else "####"
    summary, *notes = (command.help or "").split("\n\n")
    lines = [f"{depth} {context.command_path}", "", summary.replace("\n", " "), ""]
    lines += ["```", context.get_usage().removeprefix("Usage: "), "```", ""]
    for note in notes:
        lines += [note.replace("\n", " "), ""]
    if about := getattr(command, "about_options", ""):
        lines += [about, ""]
    if isinstance(command, click.Group):
        lines += ["| action | |", "|---|---|"]
        lines += [f"| `{name}` | {summary_of(one)} |" for name, one in command.commands.items()]
    elif rows := [_row(context, param) for param in command.get_params(context)]:
        lines += ["| option | |", "|---|---|", *rows]
    if command.epilog:
        lines += ["", "```", command.epilog, "```"]
    return "\n".join([*lines, ""])


def _row(context: click.Context, param: click.Parameter) -> str:
    if isinstance(param, click.Option):
        label, text = param.get_help_record(context) or ("", "")
    else:
        label, text = param.make_metavar(context), getattr(param, "help", None) or ""
    return f"| `{_cell(label)}` | {_cell(text)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
