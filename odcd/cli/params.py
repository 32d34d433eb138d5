"""Parameters that several commands have, as annotated types."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import click
import typer
from click.shell_completion import CompletionItem

from odcctl.cli.plain import PlainCommand
from odcd.errors import BadRequest
from odcd.records.fields import shown


class PathName(click.ParamType):
    """The name of a file or folder, as it was typed; the shell completes it."""

    def __init__(self, name: Literal["file", "dir"]) -> None:
        self.name = name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=self.name)]


FILE, FOLDER = PathName("file"), PathName("dir")


class Command(PlainCommand):
    """A command of odcd. The name of another option is not taken for the value of an option:
    `odcd up --home --detach` would make a home of that name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        known = {name for option in options for name in option.opts}
        valued = {name for one in options if not one.is_flag for name in one.opts}
        for word, after in pairwise(args):
            if word == "--" or ctx.resilient_parsing:
                break
            if word in valued and after in known:
                raise click.BadOptionUsage(word, "", ctx)
        return super().parse_args(ctx, args)


def accounts() -> list[str]:
    """The accounts of this machine, for completion."""
    return sorted(entry.pw_name for entry in pwd.getpwall())


def locate_database(home: str | None, dsn: str | None) -> tuple[Path, str | None]:
    """The home, and the DSN of an external PostgreSQL: of --dsn, without --home of ODC_DSN, and of
    the settings file. With --home, the file's DSN is for a home without a PostgreSQL of its own."""
    from odcd.configuration.effective import configured
    from odcd.settings import find_home

    if home and dsn:
        raise BadRequest("--home and --dsn exclude each other", "Give one of them.")
    if dsn == "":
        raise BadRequest("--dsn is empty", "Name a database, or leave --dsn out.")
    folder = find_home(home, os.environ)
    if dsn is not None:
        return folder, dsn
    found = configured(None, home, os.environ)
    if found.warning:
        click.echo(shown(f"odcd: warning: {found.warning}"), err=True)
    if not home:
        return folder, found.environment.get("ODC_DSN") or None
    embedded = (folder / "data").exists()
    return folder, None if embedded else found.values.get("ODC_DSN") or None


def environment_of(home: str | None = None) -> Mapping[str, str]:
    """The environment, and the settings of the file that it does not set."""
    from odcd.configuration.effective import configured

    return configured(None, home, os.environ).environment


Home = Annotated[
    str | None,
    typer.Option(
        "--home", metavar="DIR", click_type=FOLDER,
        help="the folder for everything the daemon keeps; default $ODC_HOME, else ~/.odc, as root "
        "/var/lib/odc",
    ),
]  # fmt: skip
DatabaseHome = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="DIR",
        click_type=FOLDER,
        help="the embedded PostgreSQL of this home, else the one that its odcd.toml names",
    ),
]
Dsn = Annotated[
    str | None,
    typer.Option("--dsn", metavar="DSN", help="an external PostgreSQL; default $ODC_DSN"),
]
Config = Annotated[
    str | None,
    typer.Option(
        "--config", metavar="FILE", click_type=FILE,
        help="the settings file; none: no file; default $ODC_CONFIG, else odcd.toml in the home, "
        "as root /etc/odc/odcd.toml",
    ),
]  # fmt: skip
Executor = Annotated[
    Literal["local", "kubernetes"] | None,
    typer.Option(
        "--executor", help="run jobs as processes of this machine, or as pods; default local"
    ),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig", metavar="FILE", click_type=FILE,
        help="with --executor kubernetes; default the pod's own, else $KUBECONFIG, else "
        "~/.kube/config",
    ),
]  # fmt: skip
Context = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="of the kubeconfig; default its current one"),
]
NewPostgres = Annotated[
    Literal[16, 18] | None,
    typer.Option("--pg", help="the PostgreSQL version of a new home; default 18"),
]
