"""Parameters that several commands have, as annotated types, and how their values are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import click
import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.text.durations import for_daemon
from odcctl.text.limit_args import read_limits
from odcctl.text.time_args import moment_of

OnOff = Literal["on", "off"]


def joined(values: Sequence[str] | None) -> str | None:
    """All values of an option that may be repeated, separated by commas."""
    return None if values is None else ",".join(values)


def names_of(values: Sequence[str] | None) -> list[str] | None:
    """Comma-separated names; "" is an empty list, "none" is null."""
    text = joined(values) or ""
    return None if text == "none" else [name for name in text.split(",") if name]


def past(text: str) -> str:
    """A time in the past, in the API's format."""
    moment = moment_of(text)
    if moment is None:
        raise click.BadParameter(
            f'must be a time such as 2h, 7d, today or 2026-07-01T12:00, not "{text}"'
        )
    return moment


def is_on(state: OnOff | None) -> bool | None:
    return None if state is None else state == "on"


def duration(text: str) -> str:
    """A duration, in the daemon's format."""
    return for_daemon(text)


AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="TIME", parser=past,
        help="show the state at this time: 90m, 2h, yesterday, 2026-07-01T12:00",
    ),
]  # fmt: skip
JobIds = Annotated[
    list[str],
    typer.Argument(metavar="ID...", help="7, 7_3 or 7_[1-4]", autocompletion=complete.jobs),
]
JobId = Annotated[
    str, typer.Argument(metavar="ID", help="7, or 7_3 of an array", autocompletion=complete.jobs)
]
Reservation = Annotated[
    str | None,
    typer.Argument(
        metavar="ID", help="the reservation's id, the beginning of its id, or its name",
        autocompletion=complete.reservations,
    ),
]  # fmt: skip
Users = Annotated[
    list[str] | None,
    typer.Option(
        "--user", "-u", metavar="NAMES", help="only these users", autocompletion=complete.users
    ),
]
Me = Annotated[bool, typer.Option("--me", help="only mine")]
Accounts = Annotated[
    list[str] | None,
    typer.Option(
        "--account", "-A", metavar="NAMES", help="only these accounts",
        autocompletion=complete.accounts,
    ),
]  # fmt: skip
Partitions = Annotated[
    list[str] | None,
    typer.Option(
        "--partition", "-p", metavar="NAMES", help="only these partitions",
        autocompletion=complete.partitions,
    ),
]  # fmt: skip
Qos = Annotated[
    list[str] | None,
    typer.Option(
        "--qos", "-q", metavar="NAMES", help="only these QOS", autocompletion=complete.qos
    ),
]
JobNames = Annotated[
    list[str] | None,
    typer.Option("--name", "-n", metavar="NAMES", help="only jobs with these names"),
]
GpuTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--gpu-type", metavar="TYPES", help="only these GPU types",
        autocompletion=complete.gpu_types,
    ),
]  # fmt: skip
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit", metavar="PER.WHAT=N",
        help="a limit; PER: group, user, account, job; WHAT: jobs, submitted, gpus, gpu_minutes, "
        "cpus, nodes, wall (a time); N: none removes it; may be repeated",
    ),
]  # fmt: skip
Yes = Annotated[
    bool,
    typer.Option(
        "--yes", "-y", help="do not ask; without a terminal, extend even if other jobs start later"
    ),
]
ALL_JOBS = 1_000_000


def plan_depth(text: str) -> int:
    """How many jobs are protected; `all` is a number above any queue's length."""
    if text == "all":
        return ALL_JOBS
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(f'takes a whole number, not "{text}"') from None


def depth_text(depth: int) -> str:
    return "all" if depth >= ALL_JOBS else str(depth)


PlanDepth = Annotated[
    int | None,
    typer.Option(
        "--plan-depth", metavar="N", parser=plan_depth,
        help="how many jobs are protected at once: 1 (EASY) to all (conservative)",
    ),
]  # fmt: skip


def limits_of(call: Call, texts: Sequence[str]) -> dict[str, dict[str, int | str | None]]:
    try:
        return read_limits(texts)
    except ValueError as error:
        call.wrong(str(error))


def number_or_none(call: Call, option: str, text: str) -> int | None:
    """A whole number, or none."""
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        call.wrong(f'--{option} takes a whole number, not "{text}"')
