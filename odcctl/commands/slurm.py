"""odcctl slurm: install Slurm's commands, each a link to one small program."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.exits import DONE, Failure
from odcctl.text.render import put

EXAMPLE = 'export PATH="$(odcctl slurm --path):$PATH"\nodcctl slurm --link /usr/local/bin'

app = new_app()


@app.command(cls=Verb, epilog=EXAMPLE)
def slurm(
    ctx: typer.Context,
    path: Annotated[
        bool, typer.Option("--path", help="print the folder to add to PATH; it is created")
    ] = False,
    link: Annotated[
        str | None,
        typer.Option("--link", metavar="FOLDER", help="put the commands into this folder instead"),
    ] = None,
) -> int:
    """Install sbatch, squeue, scancel and the other commands of Slurm.

    Programs and scripts that use Slurm then use odc without a change. Nothing is installed unless
    you ask: a real Slurm on the same machine is never hidden, and its files are never replaced.
    Jobs find the commands on PATH without this. See docs/operating/slurm-commands.md.
    """
    call = Call.of(ctx, failing="not installed")
    if path == (link is not None):
        call.wrong("give either --path or --link FOLDER")
    folder = os.path.abspath(link) if link is not None else _own_folder()
    from odcctl.remote.folder import Foreign, make_folder

    try:
        made = make_folder(folder)
    except Foreign as error:
        raise Failure(
            f"{error} exists and is not a link of odc",
            "It may belong to a real Slurm. Choose another folder; nothing was changed.",
        ) from None
    except OSError as error:
        raise Failure(f"{folder} cannot be written: {error.strerror}") from None
    put(f"{folder}\n" if path else "".join(f"{one}\n" for one in made))
    return DONE


def _own_folder() -> str:
    """Of this installation: another one must not change the commands of a running shell."""
    from odcctl.remote.folder import install_name

    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return f"{base}/odc/slurm-{install_name()}"
