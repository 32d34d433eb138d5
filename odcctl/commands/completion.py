"""odcctl completion: the script by which a shell completes odcctl's arguments."""

from __future__ import annotations

from typing import Annotated

import click
import typer
from click import shell_completion

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.completion_scripts import RC_LINES, script_of, variable_of
from odcctl.exits import DONE
from odcctl.text import render

app = new_app()


@app.command(
    cls=Verb, epilog='eval "$(odcctl completion bash)"',
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)  # fmt: skip
def completion(
    ctx: typer.Context,
    shell: Annotated[
        str,
        typer.Argument(
            metavar="bash|zsh|fish", help="the shell", autocompletion=lambda: list(RC_LINES)
        ),
    ],
) -> int:
    """Print the completion script for bash, zsh or fish.

    It completes commands, options, states, the ids of your jobs, and the names of reservations,
    disks, partitions, nodes, users and accounts. The first line of the script says where to put
    it.
    """
    call = Call.of(ctx)
    root = ctx.find_root().command
    if shell == "words":
        _put_completions(root, call, ctx.args or [""])
    elif shell in RC_LINES and not ctx.args:
        render.put(script_of(shell, "odcctl"))
    else:
        call.wrong(f'"{" ".join([shell, *ctx.args])}" is not bash, zsh or fish')
    return DONE


def _put_completions(root: click.Command, call: Call, line: list[str]) -> None:
    """For scripts of older versions: print completions of the last word, with descriptions."""
    *before, partial = line
    shell = shell_completion.ShellComplete(root, {"obj": call}, "odcctl", variable_of("odcctl"))
    for item in shell.get_completions(before, partial):
        if item.type == "plain":
            render.put(f"{item.value}\t{item.help}\n" if item.help else f"{item.value}\n")
