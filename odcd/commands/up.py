"""odcd up: the daemon with an embedded PostgreSQL and the local executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odcctl.cli.plain import new_app
from odcd.cli.params import Command, Config, Home, NewPostgres
from odcd.cli.serving import (
    AllowRootJobs,
    Listen,
    LogFormat,
    Nodes,
    Operators,
    TlsCert,
    TlsKey,
)

if TYPE_CHECKING:
    from odcd.settings import Arguments

app = new_app()


@app.command(cls=Command, epilog="odcd up --node n1=h100:8 --node self --detach")
def up(
    home: Home = None,
    config: Config = None,
    node: Nodes = None,
    listen: Listen = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    operator: Operators = None,
    allow_root_jobs: AllowRootJobs = False,
    log_format: LogFormat = None,
    pg: NewPostgres = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="return when the daemon is ready")
    ] = False,
) -> int:
    """Start the daemon with a PostgreSQL of its own, and run jobs on this machine."""
    from odcd.settings import Arguments

    return run(
        Arguments(
            embedded=True,
            home=home,
            config=config,
            node=node or (),
            listen=listen,
            tls_cert=tls_cert,
            tls_key=tls_key,
            operator=operator or (),
            allow_root_jobs=allow_root_jobs,
            log_format=log_format,
            pg=pg,
            detach=detach,
        )
    )


def run(args: Arguments) -> int:
    from odcd.commands._starting import start

    return start(args)
