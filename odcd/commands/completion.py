"""odcd completion: what makes a shell complete odcd's words."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from odcctl.cli.completion_scripts import script_of
from odcctl.cli.plain import new_app
from odcd.cli.params import Command

app = new_app()


@app.command(cls=Command, epilog='eval "$(odcd completion bash)"')
def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="bash|zsh|fish", help="the shell"),
    ],
) -> int:
    """Print what makes bash, zsh or fish complete odcd's words.

    Completes commands, options, their values, and names of files. The first line of the script says
    where to put it.
    """
    print(script_of(shell, "odcd"), end="")
    return 0
