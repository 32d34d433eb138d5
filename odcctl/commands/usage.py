"""odcctl usage: GPU-hours, waits and early ends, by user, account or type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from odcctl.caller import me as caller_name
from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.cli.params import Accounts, GpuTypes, Me, Users, joined, past
from odcctl.exits import DONE
from odcctl.text import render

GROUPS = {"user": "user", "account": "account", "qos": "qos", "partition": "partition",
          "type": "gpu_type", "kind": "kind"}  # fmt: skip
"""The name on the command line, and the name in the API."""
HEADER = ("JOBS", "GPU-H", "CPU-H", "WAIT", "LONGEST", "FAILED", "EARLY", "GAVE BACK")
EXAMPLE = "odcctl usage --since 30d --by account,type\nodcctl usage --me --reservations"

Since = Annotated[
    str | None,
    typer.Option(
        "--since", "-S", metavar="TIME", parser=past,
        help="the start of the report: 2h, 7d, today, yesterday, 2026-07-01T12:00",
    ),
]  # fmt: skip
Until = Annotated[
    str | None,
    typer.Option(
        "--until", "-E", metavar="TIME", parser=past, help="the end of the report; default: now"
    ),
]  # fmt: skip
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by", metavar="WORDS", autocompletion=lambda: list(GROUPS),
        help=f"one line for each: {', '.join(GROUPS)}; default: user",
    ),
]  # fmt: skip
Reservations = Annotated[
    bool, typer.Option("--reservations", help="only reservations")
]  # fmt: skip
Batch = Annotated[bool, typer.Option("--batch", help="only batch jobs")]


app = new_app()


@app.command(cls=Listing, epilog=EXAMPLE)
def usage(
    ctx: typer.Context,
    since: Since = None,
    until: Until = None,
    by: By = None,
    user: Users = None,
    me: Me = False,
    account: Accounts = None,
    gpu_type: GpuTypes = None,
    reservations: Reservations = False,
    batch: Batch = False,
) -> int:  # fmt: skip
    """Show GPU-hours, waits and early ends, by user, account or GPU type.

    The default is the last seven days. The largest usage comes first, and running jobs count
    with their usage so far. WAIT is the median and LONGEST the maximum wait of jobs that
    started in that time. EARLY counts reservations that ended early, and GAVE BACK the
    GPU-hours that this released.
    """
    call = Call.of(ctx)
    groups = (joined(by) or "user").split(",")
    for group in groups:
        if group not in GROUPS:
            call.wrong(f'--by accepts {", ".join(GROUPS)}, not "{group}"')
    call.exclude(me=me, user=user)
    call.exclude(reservations=reservations, batch=batch)
    client = call.client()
    params = {
        "by": ",".join(GROUPS[group] for group in groups),
        "since": since,
        "until": until,
        "user": caller_name(client) if me else joined(user),
        "account": joined(account),
        "gpu_type": joined(gpu_type),
        "kind": "batch" if batch else "reservation" if reservations else None,
    }
    reply = client.get("/v1/usage", params)
    answer: dict[str, Any] = reply.json()
    keys: Sequence[str] = answer["by"]
    first = (render.clean(_key(row, keys[0])) for row in answer["usage"])
    header = (*(group.upper() for group in groups), *HEADER)
    call.put_list(reply, first, header, [_row(row, keys) for row in answer["usage"]])
    if call.form == "table":
        begin, end = render.when(answer["since"]), render.when(answer["until"])
        render.note(f"odcctl: from {begin} to {end}")
    return DONE


def _row(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    wait = row["wait_s"]
    return (
        *(render.clean(_key(row, key)) for key in keys), str(row["jobs"]), _hours(row["gpu_s"]),
        _hours(row["cpu_s"]), render.duration(wait["median"]) if wait else "-",
        render.duration(wait["most"]) if wait else "-", str(row["failed"] or "-"),
        str(row["early"] or "-"), _hours(row["early_gpu_s"]) if row["early"] else "-",
    )  # fmt: skip


def _key(row: Mapping[str, Any], key: str) -> str:
    return str(row["group"].get(key) or "-")


def _hours(seconds: int) -> str:
    return f"{seconds / 3600:.1f}"
