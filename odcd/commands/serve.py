"""odcd serve: the daemon on an external PostgreSQL."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from odcctl.cli.plain import new_app
from odcd.cli.params import Command, Config, Context, Executor, Home, Kubeconfig
from odcd.cli.serving import (
    AllowRootJobs,
    Listen,
    LogFormat,
    Nodes,
    Operators,
    TlsCert,
    TlsKey,
)
from odcd.errors import BadRequest

if TYPE_CHECKING:
    from odcd.settings import Arguments

EXAMPLE = "odcd serve --dsn postgresql://odc@db/odc --executor kubernetes --listen 0.0.0.0:7070"

app = new_app()

Database = Annotated[
    str | None,
    typer.Option("--dsn", metavar="DSN", help="PostgreSQL 16 or newer; default $ODC_DSN"),
]


@app.command(cls=Command, epilog=EXAMPLE)
def serve(
    home: Home = None,
    config: Config = None,
    node: Nodes = None,
    listen: Listen = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    operator: Operators = None,
    allow_root_jobs: AllowRootJobs = False,
    log_format: LogFormat = None,
    dsn: Database = None,
    executor: Executor = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> int:
    """Start the daemon on an external PostgreSQL."""
    from odcd.settings import Arguments

    return run(
        Arguments(
            embedded=False,
            home=home,
            config=config,
            node=node or (),
            listen=listen,
            tls_cert=tls_cert,
            tls_key=tls_key,
            operator=operator or (),
            allow_root_jobs=allow_root_jobs,
            log_format=log_format,
            dsn=dsn,
            executor=executor,
            kubeconfig=kubeconfig,
            context=context,
        )
    )


def run(args: Arguments) -> int:
    from dataclasses import replace

    from odcd import daemon, logs
    from odcd.commands._starting import look_around
    from odcd.configuration.effective import configured

    found = configured(args.config, args.home, os.environ)
    # With --home, too: that is where its socket is.
    args = replace(args, dsn=args.dsn or found.environment.get("ODC_DSN"))
    if not args.dsn:
        raise BadRequest(
            "odcd serve needs a database",
            "Give --dsn, ODC_DSN or dsn in the settings file; `odcd up` has its own PostgreSQL.",
        )
    settings = found.read(args)
    logs.configure(settings.log_format)
    daemon.run(
        look_around(settings), lambda s, _p, _a: print(f"odcd is ready: {s.socket}", flush=True)
    )
    return 0
