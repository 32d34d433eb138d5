"""The commands of odcd, a module each: add(subparsers) describes it, run(args) is its exit code."""

from __future__ import annotations

import argparse
from typing import TypeAlias

from odcd.executor.declared_nodes import NODE_FORM

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # pyright: ignore[reportPrivateUsage]


def describe(subparsers: Subparsers, name: str, help: str, example: str) -> argparse.ArgumentParser:
    """A command's parser: its help starts with a verb and ends in an example."""
    return subparsers.add_parser(
        name,
        help=help,
        description=f"{help}.",
        epilog=f"Example: {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_home(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--home",
        metavar="DIR",
        help="the daemon's folder; default $ODC_HOME, else ~/.odc, or /var/lib/odc for root",
    )


def add_database(parser: argparse.ArgumentParser) -> None:
    """--home and --dsn, of which one may be given; without either, ODC_DSN."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--home", metavar="DIR", help="the embedded PostgreSQL of this home")
    choice.add_argument("--dsn", metavar="DSN", help="an external PostgreSQL; default $ODC_DSN")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Which cluster the Kubernetes executor runs jobs on."""
    parser.add_argument("--executor", choices=["local", "kubernetes"], default="local")
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="with --executor kubernetes; default the pod's own, else $KUBECONFIG, else "
        "~/.kube/config",
    )
    parser.add_argument(
        "--context", metavar="NAME", help="of the kubeconfig; default its current one"
    )


def add_serving(parser: argparse.ArgumentParser) -> None:
    """Options of both up and serve."""
    add_home(parser)
    parser.add_argument(
        "--node",
        action="append",
        metavar=NODE_FORM,
        help="declare a node whose GPUs need not exist, optionally with its zone, placement group "
        "and "
        'network layers; "self" is this machine, the default; may be repeated',
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="serve HTTP over TCP on this address, with API keys; none: do not; default of up: a "
        "free port of "
        "127.0.0.1, from 7070 on",
    )
    parser.add_argument(
        "--tls-cert",
        metavar="FILE",
        help="use TLS on TCP, with this certificate and its chain (PEM); default $ODC_TLS_CERT",
    )
    parser.add_argument(
        "--tls-key",
        metavar="FILE",
        help="its key (PEM, no password); default $ODC_TLS_KEY, else the file of --tls-cert",
    )
    parser.add_argument(
        "--operator",
        action="append",
        metavar="USER",
        help="a user who may act for others; may be repeated",
    )
    parser.add_argument(
        "--allow-root-jobs",
        action="store_true",
        help="also run jobs of root, which are refused by default",
    )
    parser.add_argument("--log-format", choices=["text", "json"], default="text")
