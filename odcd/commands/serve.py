"""odcd serve: the daemon on an external PostgreSQL."""

from __future__ import annotations

import os
from argparse import Namespace

from odcd import logs
from odcd.commands import Subparsers, add_cluster, add_serving, describe
from odcd.errors import BadRequest
from odcd.settings import read_settings


def add(subparsers: Subparsers) -> None:
    parser = describe(
        subparsers,
        "serve",
        "Start the daemon on an external PostgreSQL",
        "odcd serve --dsn postgresql://odc@db/odc --executor kubernetes --listen 0.0.0.0:7070",
    )
    add_serving(parser)
    parser.add_argument("--dsn", metavar="DSN", help="PostgreSQL 16 or newer; default $ODC_DSN")
    add_cluster(parser)
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    from odcd import daemon

    # With --home, too: that is where its socket is.
    args.dsn = args.dsn or os.environ.get("ODC_DSN")
    if not args.dsn:
        raise BadRequest(
            "odcd serve needs a database",
            "Give --dsn or ODC_DSN; `odcd up` has its own PostgreSQL.",
        )
    settings = read_settings(args, os.environ)
    logs.configure(settings.log_format)
    daemon.run(settings, lambda s, _p, _a: print(f"odcd is ready: {s.socket}", flush=True))
    return 0
