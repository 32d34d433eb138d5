"""Options of both `up` and `serve`, as annotated types."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from odcd.cli.params import FILE, accounts
from odcd.executor.declared_nodes import NODE_FORM

Nodes = Annotated[
    list[str] | None,
    typer.Option(
        "--node", metavar=NODE_FORM,
        help="declare a node whose GPUs need not exist, optionally with its zone, placement group "
        'and network layers; "self" is this machine, the default; may be repeated',
    ),
]  # fmt: skip
Listen = Annotated[
    str | None,
    typer.Option(
        "--listen", metavar="HOST:PORT",
        help="serve HTTP over TCP on this address, with API keys; none: do not; default of up: "
        "a free port of 127.0.0.1, from 7070 on",
    ),
]  # fmt: skip
TlsCert = Annotated[
    str | None,
    typer.Option(
        "--tls-cert", metavar="FILE", click_type=FILE,
        help="use TLS on TCP, with this certificate and its chain (PEM); default $ODC_TLS_CERT",
    ),
]  # fmt: skip
TlsKey = Annotated[
    str | None,
    typer.Option(
        "--tls-key", metavar="FILE", click_type=FILE,
        help="its key (PEM, no password); default $ODC_TLS_KEY, else the file of --tls-cert",
    ),
]  # fmt: skip
Operators = Annotated[
    list[str] | None,
    typer.Option(
        "--operator", metavar="USER", autocompletion=accounts,
        help="a user who may act for others; may be repeated; default $ODC_OPERATORS",
    ),
]  # fmt: skip
AllowRootJobs = Annotated[
    bool,
    typer.Option(
        "--allow-root-jobs", help="also run jobs of root, which are refused by default"
    ),
]  # fmt: skip
LogFormat = Annotated[
    Literal["text", "json"] | None,
    typer.Option("--log-format", help="how a line of the log is written; default text"),
]
