"""The options of odcctl reserve."""

from __future__ import annotations

from typing import Annotated

import typer

from odcctl.cli import complete

GpuType = Annotated[
    str | None,
    typer.Option(
        "--gpu-type", "-t", metavar="TYPE", autocompletion=complete.gpu_types,
        help="the GPU type, as listed by odcctl avail: h100, l4, cpu-x86",
    ),
]  # fmt: skip
Gpus = Annotated[
    int | None,
    typer.Option(
        "--gpus", "-g", metavar="N",
        help="GPUs in all: up to a node's, or whole nodes; 0 of a CPU type",
    ),
]  # fmt: skip
Hours = Annotated[
    str | None,
    typer.Option(
        "--hours", "-h", metavar="HOURS", help="how long: 0.0833 (5 minutes) to 24, as 0.5"
    ),
]  # fmt: skip
Name = Annotated[
    str | None,
    typer.Option("--name", "-n", metavar="NAME", help="a name; generated when left out"),
]  # fmt: skip
Distributed = Annotated[
    bool, typer.Option("--distributed", "-d", help="accept more than one node")
]  # fmt: skip
Disk = Annotated[
    str | None,
    typer.Option(
        "--disk", metavar="NAME", autocompletion=complete.disks_or_none,
        help="the named disk that is the home folder; none: no disk",
    ),
]  # fmt: skip
NoPersist = Annotated[
    bool, typer.Option("--no-persist", help="a home folder that ends with the reservation")
]  # fmt: skip
IgnoreNoPersist = Annotated[
    bool,
    typer.Option("--ignore-no-persist", help="if the disk is in use, wait and do not ask"),
]  # fmt: skip
RecreateEnv = Annotated[
    bool,
    typer.Option("--recreate-env", help="recreate the shell's start files on the disk"),
]  # fmt: skip
Jupyter = Annotated[bool, typer.Option("--jupyter", help="start Jupyter Lab in it")]
Image = Annotated[
    str | None, typer.Option("--dockerimage", metavar="REF", help="run this image")
]  # fmt: skip
Dockerfile = Annotated[
    str | None,
    typer.Option(
        "--dockerfile", metavar="PATH",
        help="build and run this Dockerfile with its folder, less what .dockerignore excludes",
    ),
]  # fmt: skip
Rebuild = Annotated[
    bool, typer.Option("--rebuild", help="build it again, even if it was built before")
]  # fmt: skip
PreserveEntrypoint = Annotated[
    bool,
    typer.Option("--preserve-entrypoint", help="keep the image's own ENTRYPOINT and CMD"),
]  # fmt: skip
NodeLabel = Annotated[
    list[str] | None,
    typer.Option(
        "--node-label", "-l", metavar="KEY=VALUE",
        help="on nodes with this label; may be repeated",
    ),
]  # fmt: skip
GithubUser = Annotated[
    str | None,
    typer.Option(
        "--github-user", metavar="NAME", help="whose SSH keys may connect, instead of mine"
    ),
]  # fmt: skip
Account = Annotated[
    str | None,
    typer.Option(
        "--account", metavar="NAME", help="the account it is charged to",
        autocompletion=complete.accounts,
    ),
]  # fmt: skip
Qos = Annotated[
    str | None,
    typer.Option(
        "--qos", metavar="NAME", help="the QOS it runs under", autocompletion=complete.qos
    ),
]  # fmt: skip
Partition = Annotated[
    str | None,
    typer.Option(
        "--partition", metavar="NAME", help="the partition it runs in",
        autocompletion=complete.partitions,
    ),
]  # fmt: skip
Booking = Annotated[
    str | None,
    typer.Option(
        "--booking", metavar="NAME", help="inside this booking of nodes only",
        autocompletion=complete.bookings,
    ),
]  # fmt: skip
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="print the request, and every step")
]  # fmt: skip
NoInteractive = Annotated[bool, typer.Option("--no-interactive", help="ask nothing")]
TestOnly = Annotated[
    bool, typer.Option("--test-only", help="print when it would start, and reserve nothing")
]  # fmt: skip
NoWait = Annotated[
    bool, typer.Option("--no-wait", help="do not wait until it is active")
]  # fmt: skip
Send = Annotated[
    str | None,
    typer.Option(
        "--send", metavar="DIR",
        help="for a command: send this whole folder, at most 1 GiB",
    ),
]  # fmt: skip
NoFetch = Annotated[
    bool, typer.Option("--no-fetch", help="do not fetch new files of that folder")
]  # fmt: skip
KeepAlive = Annotated[
    bool,
    typer.Option("--keep-alive", help="do not cancel the reservation after the command"),
]  # fmt: skip
Timeout = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="TIME", help="limit for waiting and the command; default 24:00:00"
    ),
]  # fmt: skip
Trace = Annotated[
    bool, typer.Option("--trace", help="print at the end how long each phase took")
]  # fmt: skip
