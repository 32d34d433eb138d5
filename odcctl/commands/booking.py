"""odcctl booking create | list | show | edit | delete: nodes set aside for future windows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Listing, Verb, new_app
from odcctl.cli.params import duration, joined
from odcctl.exits import DONE
from odcctl.http.client import Reply, quote
from odcctl.text import render
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
    rows = [_row(booking, reply.now_s) for booking in found]
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
    there = f" ({_in_zone(booking)})" if _in_zone(booking) else ""
    return call.put_outcome(reply, booking["name"], f"{outcome} {_when(booking)}{there} on {where}")


def describe(booking: Mapping[str, Any]) -> str:
    pairs = [
        ("kind", booking["kind"]),
        ("state", booking["state"]),
        ("window", _when(booking)),
        ("local", _in_zone(booking)),
        ("repeats", _repeats(booking)),
        ("nodes", fold(booking["node_names"])),
        ("asks for", _asks(booking)),
        ("owners", _owners(booking)),
        ("lacks", booking.get("reason") or ""),
        ("running jobs", "are ignored" if booking["ignore_running"] else ""),
        ("jobs", " ".join(str(job) for job in booking["jobs"])),
        ("comment", booking.get("comment") or ""),
        ("created", f"{render.when(booking['created_at'])} by {booking['created_by']}"),
    ]
    return render.block(
        f"booking {booking['name']}", [(key, render.clean(value)) for key, value in pairs]
    )


def _row(booking: Mapping[str, Any], now_s: float) -> tuple[str, ...]:
    owners, lacks = _owners(booking), booking.get("reason") or ""
    repeats = f"{booking['repeats']} {booking.get('zone') or ''}".rstrip()
    return (
        booking["name"], booking["kind"], booking["state"],
        render.clock(booking["starts_at"], now_s), render.clock(booking["ends_at"], now_s),
        repeats.replace("none", "-"), fold(booking["node_names"]) or "-",
        render.clean(f"{owners} / {lacks}" if owners and lacks else owners or lacks),
    )  # fmt: skip


def _when(booking: Mapping[str, Any]) -> str:
    return f"{render.when(booking['starts_at'])} to {render.when(booking['ends_at'])}"


def _in_zone(booking: Mapping[str, Any]) -> str:
    """The window at the local time of the booking's zone; nothing if it has none, or if this
    machine does not know it."""
    try:
        zone = ZoneInfo(booking.get("zone") or "")
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return ""
    start, end = (
        f"{render.moment(booking[name]).astimezone(zone):%Y-%m-%d %H:%M:%S}"
        for name in ("starts_at", "ends_at")
    )
    return f"{start} to {end} in {booking['zone']}"


def _repeats(booking: Mapping[str, Any]) -> str:
    if booking["repeats"] == "none":
        return ""
    until = f" until {render.when(booking['until'])}" if booking.get("until") else ""
    zone = f" at the same time in {booking['zone']}" if booking.get("zone") else ""
    return f"{booking['repeats']}{zone}{until}"


def _asks(booking: Mapping[str, Any]) -> str:
    if booking["node_list"]:
        return fold(booking["node_list"])
    count = booking.get("node_count")
    parts = ["all nodes" if count is None else "1 node" if count == 1 else f"{count} nodes"]
    if booking.get("gpu_type"):
        parts.append(f"of type {booking['gpu_type']}")
    if booking.get("partition"):
        parts.append(f"of partition {booking['partition']}")
    return " ".join(parts)


def _owners(booking: Mapping[str, Any]) -> str:
    accounts = ",".join(booking["accounts"])
    return " ".join([",".join(booking["users"]), f"@{accounts}" if accounts else ""]).strip()
