"""odcctl list: reservations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.cli.params import joined
from odcctl.http.client import Client, Reply
from odcctl.reservation_states import OVER, WAITING
from odcctl.reservations.describe import disk, expected_at, status, until
from odcctl.reservations.lookup import parse_statuses
from odcctl.text import render
from odcctl.text.jobs import gpus

HEADER = (
    "ID", "TYPE", "USER", "GPUS", "STATUS", "STORAGE", "QUEUE", "CREATED", "EXPIRES / ETA",
)  # fmt: skip
WATCH_S = 2.0
EXAMPLE = "odcctl list\nodcctl list -u all -s active,queued --watch"

app = new_app()


@app.command("list", cls=Listing, epilog=EXAMPLE)
def list_reservations(
    ctx: typer.Context,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", "-u", metavar="NAME", help="reservations of this user; all: of all users",
            autocompletion=complete.users,
        ),
    ] = None,
    of_status: Annotated[
        list[str] | None,
        typer.Option(
            "--status", "-s", metavar="STATUSES",
            help="only these statuses, for example active,queued",
            autocompletion=complete.statuses,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="include ended reservations")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="update the table every 2 seconds; Ctrl-C stops")
    ] = False,
) -> int:  # fmt: skip
    """List reservations: your live ones, and those that failed within the last hour.

    A status is pending, queued, preparing, active, expired, cancelled or failed. QUEUE is the
    place in the queue for the GPU type and the expected wait. The last column is the time at
    which the reservation expires or ended; for a queued reservation it is the expected start.
    """
    call = Call.of(ctx)
    params = {
        "user": user,
        "status": parse_statuses(joined(of_status)),
        "all": "true" if every else None,
    }
    client = call.client()
    if watch:
        return call.watch_table(
            lambda: (HEADER, _rows(client.get("/v1/reservations", params))), WATCH_S
        )
    reply = client.get("/v1/reservations", params)
    _tidy(client, reply)
    ids = (one["id"] for one in reply.json()["reservations"])
    return call.put_list(reply, ids, HEADER, _rows(reply))


def _tidy(client: Client, reply: Reply) -> None:
    """Remove the ssh configuration of reservations that are over."""
    over = [one for one in reply.json()["reservations"] if one["status"] in OVER]
    if over and os.path.isdir(os.path.expanduser("~/.odc/ssh")):
        from odcctl.ssh import host_files as ssh

        ssh.tidy(client, over)


def _rows(reply: Reply) -> Sequence[tuple[str, ...]]:
    now_s = reply.now_s
    return [_row(one, now_s) for one in reply.json()["reservations"]]


def _row(one: dict[str, Any], now_s: float) -> tuple[str, ...]:
    waits = one["status"] in WAITING
    return (
        str(one["id"]), one["gpu_type"] or "-", render.clean(one["user"]), gpus(one), status(one),
        disk(one), _queue(one, now_s) if waits else "-",
        render.clock(one["created_at"], now_s), _ends(one),
    )  # fmt: skip


def _queue(one: dict[str, Any], now_s: float) -> str:
    """#3 in 2:10:00"""
    place = f"#{one['queue_position']}" if one.get("queue_position") is not None else ""
    at = expected_at(one) if one["status"] != "preparing" else None
    wait = f"in {until(at, now_s)}" if at else ""
    return f"{place} {wait}".strip() or "-"


def _ends(one: dict[str, Any]) -> str:
    if one["status"] in WAITING:
        at = expected_at(one) if one["status"] != "preparing" else None
        return f"starts about {render.when(at)}" if at else "-"
    return render.when(one.get("ended_at") or one.get("expires_at")) or "-"
