"""odcctl booking create | list | show | edit | delete: nodes set aside for future windows."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Listing, Verb, new_app
from odcctl.cli.params import duration, joined
from odcctl.exits import DONE
from odcctl.http.client import Reply, quote
from odcctl.text import render
from odcctl.text.bookings import describe, local_window_of, row_of, window_of
from odcctl.text.hostlist import fold, unfold

HEADER = ("BOOKING", "KIND", "STATE", "STARTS", "ENDS", "REPEATS", "NODES", "OWNERS / LACKS")
FAILING = "bookings not changed"
CREATE = (
    "odcctl booking create driver --maintenance --start 18:00 --duration 2:00:00 \\\n"
    "    --nodes gpu-[01-04]\n"
    "odcctl booking create course --type h100 --count 2 --accounts ml101 \\\n"
    "    --start 2026-02-02T09:00 --duration 3h --repeat weekly --until 2026-04-30 \\\n"
    "    --zone Europe/Berlin"
)

app = new_app(
    Actions,
    "Set nodes aside for a future window: create, list, show, edit, delete.\n\n"
    "Name the nodes, or choose them by type, partition and count. Owners run jobs there with "
    "submit --reservation NAME. Other jobs start there only if they end before the window. Times "
    "are those of submit --begin, in your time zone; a booking repeats at the same time in UTC, or "
    "in the zone of --zone.",
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="the booking", autocompletion=complete.bookings)
]

Start = Annotated[
    str | None,
    typer.Option(
        "--start", metavar="MOMENT", help="when it begins: now+2h, 18:00, 2026-01-20T09:00:00"
    ),
]  # fmt: skip
Lasts = Annotated[
    str | None,
    typer.Option(
        "--duration", metavar="TIME", parser=duration,
        help="how long it lasts: 30 (minutes), 4h, 1:30:00, 1-0",
    ),
]  # fmt: skip
End = Annotated[
    str | None,
    typer.Option("--end", metavar="MOMENT", help="when it ends, instead of a duration"),
]  # fmt: skip
Repeat = Annotated[
    str | None,
    typer.Option("--repeat", metavar="HOW", help="daily, weekly, weekdays or none"),
]  # fmt: skip
Until = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="MOMENT", help="no repetition starts after this; '' for no end"
    ),
]  # fmt: skip
Zone = Annotated[
    str | None,
    typer.Option(
        "--zone", metavar="ZONE",
        help="repeat at the same local time, for example in Europe/Berlin; times without a zone "
        "are there, too; '' for UTC",
    ),
]  # fmt: skip
Nodes = Annotated[
    list[str] | None,
    typer.Option(
        "--nodes", metavar="NAMES", help="these nodes, for example gpu-[01-04]",
        autocompletion=complete.nodes,
    ),
]  # fmt: skip
GpuType = Annotated[
    str | None,
    typer.Option(
        "--type", "-t", metavar="TYPE", help="nodes of this GPU type",
        autocompletion=complete.gpu_types,
    ),
]  # fmt: skip
Partition = Annotated[
    str | None,
    typer.Option(
        "--partition", "-p", metavar="NAME", help="nodes of this partition",
        autocompletion=complete.partitions,
    ),
]  # fmt: skip
Count = Annotated[
    int | None,
    typer.Option("--count", metavar="N", help="how many of them; default: all"),
]  # fmt: skip
Every = Annotated[bool, typer.Option("--all", help="all nodes")]
Users = Annotated[
    list[str] | None,
    typer.Option(
        "--users", metavar="NAMES", help="the users whose jobs may use it",
        autocompletion=complete.users,
    ),
]  # fmt: skip
Accounts = Annotated[
    list[str] | None,
    typer.Option(
        "--accounts", metavar="NAMES",
        help="the accounts whose jobs may use it, including the accounts below them",
        autocompletion=complete.accounts,
    ),
]  # fmt: skip
Maintenance = Annotated[
    bool, typer.Option("--maintenance", help="a maintenance booking: no jobs run in it")
]  # fmt: skip
Force = Annotated[
    bool,
    typer.Option(
        "--force", "--ignore-running",
        help="with --maintenance: create it even if running jobs overlap it",
    ),
]  # fmt: skip
Comment = Annotated[
    str | None, typer.Option("--comment", metavar="TEXT", help="a comment; '' for none")
]  # fmt: skip
NewName = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="edit: the new name")
]  # fmt: skip


@app.command("create", cls=Verb, epilog=CREATE, help="Book nodes.")
@app.command(
    "edit", cls=Verb, epilog="odcctl booking edit driver --start 19:00", help="Change a booking."
)
def create_or_edit(
    ctx: typer.Context,
    name: Name,
    start: Start = None,
    lasts: Lasts = None,
    end: End = None,
    repeat: Repeat = None,
    until: Until = None,
    zone: Zone = None,
    nodes: Nodes = None,
    gpu_type: GpuType = None,
    partition: Partition = None,
    count: Count = None,
    every: Every = False,
    users: Users = None,
    accounts: Accounts = None,
    maintenance: Maintenance = False,
    force: Force = False,
    comment: Comment = None,
    new_name: NewName = None,
) -> int:  # fmt: skip
    call = Call.of(ctx, failing=FAILING)
    # The daemon reads the times.
    texts = {
        "name": new_name, "starts_at": start, "duration": lasts, "ends_at": end,
        "repeats": repeat, "until": until, "gpu_type": gpu_type, "partition": partition,
        "comment": comment, "zone": zone,
    }  # fmt: skip
    terms: dict[str, Any] = {
        field: text or None for field, text in texts.items() if text is not None
    }
    if nodes is not None:
        terms["node_list"] = unfold(joined(nodes) or "")
    if count is not None:
        terms["node_count"] = count
    for field, names in (("users", users), ("accounts", accounts)):
        if names is not None:
            terms[field] = [one for one in (joined(names) or "").split(",") if one]
    terms |= {"all_nodes": True} if every else {}
    terms |= {"ignore_running": True} if force else {}
    if (start, end, until) != (None, None, None):
        terms["time_zone"] = zone or os.environ.get("TZ", "")
    if ctx.info_name == "edit":
        return _edit(call, name, terms, maintenance=maintenance)
    if new_name is not None:
        call.wrong("create does not accept --name")
    if start is None:
        call.wrong("create requires --start")
    body = {"name": name, **terms, **({"kind": "maintenance"} if maintenance else {})}
    reply = call.client().post_once("/v1/bookings", body)
    return _put_outcome(call, reply, f"booking {name} created:")


def _edit(call: Call, name: str, terms: dict[str, Any], *, maintenance: bool) -> int:
    if maintenance:
        call.wrong("the kind of a booking cannot be changed; delete it and create another")
    if not terms:
        call.wrong("name at least one setting to change")
    reply = call.client().patch(f"/v1/bookings/{quote(name)}", terms)
    return _put_outcome(call, reply, f"booking {name} changed:")


@app.command("list", cls=Listing, epilog="odcctl booking list")
def list_bookings(
    ctx: typer.Context,
    ended: Annotated[bool, typer.Option("--ended", help="include ended bookings")] = False,
) -> int:
    """List the bookings."""
    call = Call.of(ctx)
    reply = call.client().get("/v1/bookings", {"all": "true"} if ended else None)
    found: list[dict[str, Any]] = reply.json()["bookings"]
    rows = [row_of(booking, reply.now_s) for booking in found]
    return call.put_list(reply, (booking["name"] for booking in found), HEADER, rows)


@app.command(cls=Verb, epilog="odcctl booking show driver")
def show(ctx: typer.Context, name: Name) -> int:
    """Show all details of a booking."""
    call = Call.of(ctx)
    reply = call.client().get(f"/v1/bookings/{quote(name)}")
    if call.form != "table":
        return call.put_outcome(reply, reply.json()["name"], "")
    render.put(describe(reply.json()))
    return DONE


@app.command(cls=Verb, epilog="odcctl booking delete driver")
def delete(ctx: typer.Context, name: Name) -> int:
    """Delete a booking."""
    call = Call.of(ctx, failing=FAILING)
    reply = call.client().delete(f"/v1/bookings/{quote(name)}")
    return call.put_outcome(reply, reply.json()["name"], f"booking {name} deleted")


def _put_outcome(call: Call, reply: Reply, outcome: str) -> int:
    booking = reply.json()
    where = fold(booking["node_names"]) or "no node"
    there = f" ({local_window_of(booking)})" if local_window_of(booking) else ""
    text = f"{outcome} {window_of(booking)}{there} on {where}"
    return call.put_outcome(reply, booking["name"], text)
