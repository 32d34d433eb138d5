"""The options of odcctl reserve."""

from __future__ import annotations

from typing import Annotated

import typer

from odcctl.cli import complete

GpuType = Annotated[
    str | None,
    typer.Option(
        "--gpu-type", "-t", metavar="TYPE", autocompletion=complete.gpu_types,
        help="the GPU type, for example h100, l4 or cpu-x86; `odcctl avail` lists them",
    ),
]  # fmt: skip
Gpus = Annotated[
    int | None,
    typer.Option(
        "--gpus", "-g", metavar="N",
        help="total GPUs: up to those of one node, or whole nodes; 0 for a CPU type",
    ),
]  # fmt: skip
Hours = Annotated[
    str | None,
    typer.Option(
        "--hours", "-h", metavar="HOURS",
        help="the duration: 0.0833 (5 minutes) to 24, for example 0.5"
    ),
]  # fmt: skip
Name = Annotated[
    str | None,
    typer.Option("--name", "-n", metavar="NAME", help="a name; the default is made from the GPUs"),
]  # fmt: skip
Distributed = Annotated[
    bool, typer.Option("--distributed", "-d", help="confirm that you want more than one node")
]  # fmt: skip
Disk = Annotated[
    str | None,
    typer.Option(
        "--disk", metavar="NAME", autocompletion=complete.disks_or_none,
        help="the disk to use as the home folder; none: no disk",
    ),
]  # fmt: skip
NoPersist = Annotated[
    bool,
    typer.Option(
        "--no-persist", help="use a temporary home folder, deleted with the reservation"
    )
]  # fmt: skip
IgnoreNoPersist = Annotated[
    bool,
    typer.Option("--ignore-no-persist", help="if the disk is in use, wait without asking"),
]  # fmt: skip
RecreateEnv = Annotated[
    bool,
    typer.Option("--recreate-env", help="copy the image's shell startup files to the disk again"),
]  # fmt: skip
Jupyter = Annotated[bool, typer.Option("--jupyter", help="start Jupyter Lab in it")]
Image = Annotated[
    str | None, typer.Option("--dockerimage", metavar="REF", help="run this image")
]  # fmt: skip
Dockerfile = Annotated[
    str | None,
    typer.Option(
        "--dockerfile", metavar="PATH",
        help="build an image from this Dockerfile and its folder, and run it; respects "
        ".dockerignore",
    ),
]  # fmt: skip
Rebuild = Annotated[
    bool, typer.Option("--rebuild", help="build the image again, even if it was built before")
]  # fmt: skip
PreserveEntrypoint = Annotated[
    bool,
    typer.Option("--preserve-entrypoint", help="keep the image's own ENTRYPOINT and CMD"),
]  # fmt: skip
NodeLabel = Annotated[
    list[str] | None,
    typer.Option(
        "--node-label", "-l", metavar="KEY=VALUE",
        help="use only nodes with this label; may be repeated",
    ),
]  # fmt: skip
GithubUser = Annotated[
    str | None,
    typer.Option(
        "--github-user", metavar="NAME", help="use this GitHub user's SSH keys instead of yours"
    ),
]  # fmt: skip
Account = Annotated[
    str | None,
    typer.Option(
        "--account", metavar="NAME", help="the account to charge",
        autocompletion=complete.accounts,
    ),
]  # fmt: skip
Qos = Annotated[
    str | None,
    typer.Option(
        "--qos", metavar="NAME", help="the QOS to use", autocompletion=complete.qos
    ),
]  # fmt: skip
Partition = Annotated[
    str | None,
    typer.Option(
        "--partition", metavar="NAME", help="the partition to use",
        autocompletion=complete.partitions,
    ),
]  # fmt: skip
Booking = Annotated[
    str | None,
    typer.Option(
        "--booking", metavar="NAME", help="use only the nodes of this booking",
        autocompletion=complete.bookings,
    ),
]  # fmt: skip
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="print the request and every step")
]  # fmt: skip
NoInteractive = Annotated[bool, typer.Option("--no-interactive", help="do not ask questions")]
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
        help="with a command: send this whole folder, at most 1 GiB",
    ),
]  # fmt: skip
NoFetch = Annotated[
    bool, typer.Option("--no-fetch", help="with --send: do not fetch new files afterwards")
]  # fmt: skip
KeepAlive = Annotated[
    bool,
    typer.Option("--keep-alive", help="do not cancel the reservation after the command"),
]  # fmt: skip
Timeout = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="TIME",
        help="the time limit for the wait and the command; default 24:00:00"
    ),
]  # fmt: skip
Trace = Annotated[
    bool, typer.Option("--trace", help="print how long each phase took, at the end")
]  # fmt: skip
