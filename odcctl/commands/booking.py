"""odcctl booking create | list | show | edit | delete: nodes set aside for windows to come."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from odcctl.exits import DONE
from odcctl.http.client import Client, Reply, quote
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.hostlist import fold, unfold

HEADER = ("BOOKING", "KIND", "STATE", "STARTS", "ENDS", "REPEATS", "NODES", "OWNERS / LACKS")
TERMS = (
    "name", "start", "duration", "end", "repeat", "until", "nodes", "type", "count", "partition",
    "all", "users", "accounts", "maintenance", "force", "ignore-running", "comment",
)  # fmt: skip
TEXTS = {
    "name": "name", "start": "starts_at", "duration": "duration", "end": "ends_at",
    "repeat": "repeats", "type": "gpu_type", "partition": "partition", "comment": "comment",
}  # fmt: skip
MOMENTS = ("start", "end", "until")


def run(arguments: Arguments) -> int:
    action, *names = arguments.words
    if action not in ACTIONS:
        arguments.command.wrong(f'"{action}" is not {", ".join(ACTIONS)}')
    if (action == "list") == bool(names) or len(names) > 1:
        arguments.command.wrong(
            "list takes no name" if action == "list" else f"{action} takes one name"
        )
    allowed = {"create": (*TERMS[1:],), "edit": TERMS, "list": ("ended", "no-header")}
    for option in arguments.command.options:
        if arguments.flag(option.long) and option.long not in allowed.get(action, ()):
            arguments.command.wrong(f"{action} takes no --{option.long}")
    return ACTIONS[action](arguments, *names)


def _create(arguments: Arguments, name: str) -> int:
    if not arguments.flag("start"):
        arguments.command.wrong("create needs a --start")
    body = {"name": name, **_terms(arguments)}
    if arguments.flag("maintenance"):
        body["kind"] = "maintenance"
    reply = Client.of(arguments).post_once("/v1/bookings", body)
    return _tell(arguments, reply, f"booking {name} made:")


def _edit(arguments: Arguments, name: str) -> int:
    if arguments.flag("maintenance"):
        arguments.command.wrong("the kind of a booking stays; delete it and create another")
    terms = _terms(arguments)
    if not terms:
        arguments.command.wrong("say what to change")
    reply = Client.of(arguments).patch(f"/v1/bookings/{quote(name)}", terms)
    return _tell(arguments, reply, f"booking {name} changed:")


def _delete(arguments: Arguments, name: str) -> int:
    reply = Client.of(arguments).delete(f"/v1/bookings/{quote(name)}")
    return _tell(arguments, reply, f"booking {name} deleted")


def _show(arguments: Arguments, name: str) -> int:
    reply = Client.of(arguments).get(f"/v1/bookings/{quote(name)}")
    if arguments.form != "table":
        return _tell(arguments, reply, "")
    render.put(describe(reply.json()))
    return DONE


def _list(arguments: Arguments) -> int:
    params = {"all": "true"} if arguments.flag("ended") else None
    reply = Client.of(arguments).get("/v1/bookings", params)
    bookings: list[dict[str, Any]] = reply.json()["bookings"]
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put("".join(f"{booking['name']}\n" for booking in bookings))
    else:
        head = () if arguments.flag("no-header") else HEADER
        rows = [_row(booking, reply.now_s) for booking in bookings]
        render.put(render.table(head, rows, render.terminal_width()))
    return DONE


def _terms(arguments: Arguments) -> dict[str, Any]:
    """The options as the API takes them; the daemon reads the times."""
    terms: dict[str, Any] = {
        field: arguments.value(option) or None
        for option, field in TEXTS.items()
        if arguments.flag(option)
    }
    if arguments.flag("until"):
        terms["until"] = arguments.value("until") or None
    if arguments.flag("nodes"):
        terms["node_list"] = unfold(arguments.joined("nodes") or "")
    if arguments.flag("count"):
        terms["node_count"] = arguments.number("count")
    for option in ("users", "accounts"):
        if arguments.flag(option):
            terms[option] = [name for name in (arguments.joined(option) or "").split(",") if name]
    if arguments.flag("all"):
        terms["all_nodes"] = True
    if arguments.flag("force") or arguments.flag("ignore-running"):
        terms["ignore_running"] = True
    if any(arguments.flag(option) for option in MOMENTS):
        terms["time_zone"] = os.environ.get("TZ", "")
    return terms


def _tell(arguments: Arguments, reply: Reply, said: str) -> int:
    booking: dict[str, Any] = reply.json()
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put(f"{booking['name']}\n")
    elif said.endswith(":"):
        render.put(f"{said} {_when(booking)} on {fold(booking['node_names']) or 'no node'}\n")
    else:
        render.put(f"{said}\n")
    return DONE


def describe(booking: Mapping[str, Any]) -> str:
    pairs = [
        ("kind", booking["kind"]),
        ("state", booking["state"]),
        ("window", _when(booking)),
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
    return (
        booking["name"], booking["kind"], booking["state"],
        render.clock(booking["starts_at"], now_s), render.clock(booking["ends_at"], now_s),
        booking["repeats"].replace("none", "-"), fold(booking["node_names"]) or "-",
        render.clean(f"{owners} / {lacks}" if owners and lacks else owners or lacks),
    )  # fmt: skip


def _when(booking: Mapping[str, Any]) -> str:
    return f"{render.when(booking['starts_at'])} to {render.when(booking['ends_at'])}"


def _repeats(booking: Mapping[str, Any]) -> str:
    if booking["repeats"] == "none":
        return ""
    until = f" until {render.when(booking['until'])}" if booking.get("until") else ""
    return f"{booking['repeats']}{until}"


def _asks(booking: Mapping[str, Any]) -> str:
    if booking["node_list"]:
        return fold(booking["node_list"])
    count = booking.get("node_count")
    words = ["all nodes" if count is None else "1 node" if count == 1 else f"{count} nodes"]
    if booking.get("gpu_type"):
        words.append(f"of type {booking['gpu_type']}")
    if booking.get("partition"):
        words.append(f"of partition {booking['partition']}")
    return " ".join(words)


def _owners(booking: Mapping[str, Any]) -> str:
    accounts = ",".join(booking["accounts"])
    return " ".join([",".join(booking["users"]), f"@{accounts}" if accounts else ""]).strip()


ACTIONS: dict[str, Callable[..., int]] = {
    "create": _create,
    "list": _list,
    "show": _show,
    "edit": _edit,
    "delete": _delete,
}

COMMAND = Command(
    name="booking",
    summary="Set nodes aside for a window to come: create, list, show, edit, delete",
    usage="booking create|show|edit|delete NAME [OPTIONS] | booking list [OPTIONS]",
    words=(1, None),
    notes=(
        "Nodes are named, or chosen by type, partition and count. Jobs of the owners run there "
        "with submit --reservation NAME; no other job starts that would reach into the window. "
        "Moments are as of submit --begin, in your zone; a booking repeats at the same time in UTC."
    ),
    options=(
        Option("start", None, "MOMENT", "when it begins: now+2h, 18:00, 2026-01-20T09:00:00"),
        Option("duration", None, "TIME", "how long it lasts: M, H:M:S, D-H, D-H:M:S"),
        Option("end", None, "MOMENT", "when it ends, instead of a duration"),
        Option("repeat", None, "HOW", "daily, weekly, weekdays or none"),
        Option("until", None, "MOMENT", "no repetition starts after this; '' for no end"),
        Option("nodes", None, "NAMES", "these nodes, as gpu-[01-04]"),
        Option("type", "t", "TYPE", "nodes of this GPU type"),
        Option("partition", "p", "NAME", "nodes of this partition"),
        Option("count", None, "N", "so many of them; all of them when left out"),
        Option("all", None, None, "every node there is"),
        Option("users", None, "NAMES", "whose jobs may use it"),
        Option("accounts", None, "NAMES", "and of which accounts, those below included"),
        Option("maintenance", None, None, "for maintenance: no jobs run in it"),
        Option("force", None, None, "with --maintenance: although running jobs reach into it"),
        Option("ignore-running", None, None, "as --force"),
        Option("comment", None, "TEXT", "a text kept with it; '' for none"),
        Option("name", None, "NAME", "of edit: another name"),
        Option("ended", None, None, "of list: those that are over, too"),
        Option("no-header", None, None, "of list: leave the header line out"),
    ),
    example=(
        "odcctl booking create driver --maintenance --start 18:00 --duration 2:00:00 \\\n"
        "    --nodes gpu-[01-04]\n"
        "odcctl booking create course --type h100 --count 2 --accounts ml101 \\\n"
        "    --start 2026-02-02T09:00 --duration 3:00:00 --repeat weekly --until 2026-04-30\n"
        "odcctl booking list"
    ),
    run=run,
    what="nothing booked or changed",
)
