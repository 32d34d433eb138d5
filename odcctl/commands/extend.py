"""odcctl extend: more hours for an active reservation, once, and whom that makes wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.admin_actions import tell
from odcctl.exits import DONE, INTERRUPTED, REFUSED
from odcctl.http.client import Client
from odcctl.options import Arguments, HoursCommand, Option
from odcctl.reservations.lookup import named_or_only
from odcctl.text import render
from odcctl.text.hours import ask_hours, hours_of
from odcctl.text.prompts import agree, on_terminal

MOST_DELAYS = 5
YES = Option("yes", "y", None, "do not ask; elsewhere than on a terminal: though jobs start later")
TEST_ONLY = Option("test-only", None, None, "only say whom it would delay")


def run(arguments: Arguments) -> int:
    hours = hours_of(arguments, "hours", 0.0)
    if hours is None and not on_terminal(arguments):
        arguments.command.wrong("say for how long: -h HOURS")
    client = Client.of(arguments)
    one = named_or_only(client, arguments, ("active",))
    return extend(client, arguments, one, hours)


def extend(
    client: Client, arguments: Arguments, one: Mapping[str, Any], hours: float | None
) -> int:
    """Ask what it would delay, then for it. hours None: asked for, on a terminal."""
    try:
        if hours is None:
            hours = ask_hours(f"Hours more for reservation {one['id']}", "", 0.0)
        path = f"/v1/reservations/{one['id']}/extend"
        preview = client.post(path, {"hours": hours, "dry_run": True})
        told = _would(one, preview.json(), hours, preview.now_s)
        if arguments.flag("test-only"):
            text = preview.text.rstrip("\n") if arguments.form == "json" else told
            render.put(f"{text}\n")
            return DONE
        if on_terminal(arguments) and not arguments.flag("yes"):
            render.note(told)
            if not agree("Extend it? It can be done once", default=not preview.json()["delays"]):
                render.note("odcctl: nothing extended")
                return REFUSED
        elif preview.json()["delays"] and not arguments.flag("yes"):
            render.note(f"odcctl: nothing extended: {told}\n  --yes extends it all the same.")
            return REFUSED
        elif arguments.form == "table" or preview.json()["delays"]:
            render.note(f"odcctl: {told}")
    except KeyboardInterrupt:
        render.note("odcctl: nothing extended")
        return INTERRUPTED
    reply = client.post(path, {"hours": hours, "dry_run": False})
    until = render.when(reply.json()["expires_at"])
    return tell(
        arguments, reply, str(one["id"]), f"reservation {one['id']} extended: it expires {until}"
    )


def _would(one: Mapping[str, Any], preview: Mapping[str, Any], hours: float, now_s: float) -> str:
    """The effect of the extension on the reservation and on queued jobs."""
    delays: list[dict[str, Any]] = preview["delays"]
    text = (
        f"{hours:g} {'hour' if hours == 1 else 'hours'} more: reservation {one['id']} expires "
        f"{render.when(preview['expires_at'])} instead of {render.when(one['expires_at'])}"
    )
    if not delays:
        return f"{text}; no planned start moves"
    number = "1 job starts" if len(delays) == 1 else f"{len(delays)} jobs start"
    lines = [text, f"  {number} later:"]
    lines += [f"    {_delay(delay, now_s)}" for delay in delays[:MOST_DELAYS]]
    if len(delays) > MOST_DELAYS:
        lines.append(f"    and {len(delays) - MOST_DELAYS} more")
    return "\n".join(lines)


def _delay(delay: Mapping[str, Any], now_s: float) -> str:
    who = f"{delay['job_id']} {render.clean(delay['name'])} of {delay['user']}"
    if not delay["to"]:
        return f"{who} loses its planned start {render.clock(delay['from'], now_s)}"
    late = render.duration(render.seconds_between(delay["from"], delay["to"]))
    return f"{who} by {late}, to {render.clock(delay['to'], now_s)}"


COMMAND = HoursCommand(
    name="extend",
    summary="Give an active reservation more hours, once",
    usage="extend [ID] -h HOURS [--yes | --test-only]",
    words=(0, 1),
    takes_jobs=True,
    notes=(
        "ID is that of the reservation, the start of it, or its name; without one it is the only "
        "active reservation. Once, by up to 24 hours, to 48 in all. Tells whose planned starts it "
        "moves, and on a terminal asks then; elsewhere one that delays others needs --yes. -h is "
        "hours here: help is --help."
    ),
    options=(
        Option("hours", "h", "HOURS", "how long: above 0 and up to 24, as 0.5; asked when missing"),
        YES,
        TEST_ONLY,
    ),
    example="odcctl extend 12 -h 4\nodcctl extend 12 -h 4 --test-only",
    run=run,
    what="nothing extended",
)
