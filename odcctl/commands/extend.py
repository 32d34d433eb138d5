"""odcctl extend: more hours for an active reservation, once, and whom that makes wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import HOURS_CONTEXT, Verb, new_app
from odcctl.cli.params import Reservation, Yes
from odcctl.exits import DONE, INTERRUPTED, REFUSED
from odcctl.reservations.lookup import named_or_only
from odcctl.text import render
from odcctl.text.hours import prompt_hours, read_hours
from odcctl.text.prompts import agree

MAX_DELAYS = 5
EXAMPLE = "odcctl extend 12 -h 4\nodcctl extend 12 -h 4 --test-only"

app = new_app()


@app.command(cls=Verb, epilog=EXAMPLE, context_settings=HOURS_CONTEXT)
def extend(
    ctx: typer.Context,
    reservation: Reservation = None,
    hours: Annotated[
        str | None,
        typer.Option(
            "--hours", "-h", metavar="HOURS",
            help="the hours to add: above 0 and up to 24, for example 0.5; asked for if missing",
        ),
    ] = None,
    yes: Yes = False,
    test_only: Annotated[
        bool, typer.Option("--test-only", help="only print which jobs it would delay")
    ] = False,
) -> int:  # fmt: skip
    """Add hours to an active reservation, once.

    Without an ID, extends your only active reservation, by up to 24 hours and to at most 48
    hours in total. odcctl prints which planned starts would move, and asks on a terminal.
    Elsewhere, an extension that delays other jobs requires --yes. -h is hours here; for help
    use --help.
    """
    call = Call.of(ctx, failing="nothing extended")
    number = hours_of(call, "hours", hours)
    if number is None and not call.may_prompt():
        call.wrong("give the hours to add: -h HOURS")
    one = named_or_only(call, reservation, ("active",))
    return give_hours(call, one, number, yes=yes, test_only=test_only)


def hours_of(call: Call, option: str, text: str | None) -> float | None:
    """The hours of an option; None if it was not given."""
    try:
        return None if text is None else read_hours(text, 0.0)
    except ValueError as error:
        call.wrong(f"--{option} takes {error}")


def give_hours(
    call: Call, one: Mapping[str, Any], hours: float | None, *, yes: bool, test_only: bool = False
) -> int:
    """Show which jobs the extension would delay, then extend. hours None: ask on a terminal."""
    client = call.client()
    try:
        if hours is None:
            hours = prompt_hours(f"More hours for reservation {one['id']}", "", 0.0)
        path = f"/v1/reservations/{one['id']}/extend"
        preview = client.post(path, {"hours": hours, "dry_run": True})
        effect = _would(one, preview.json(), hours, preview.now_s)
        if test_only:
            text = preview.text.rstrip("\n") if call.form == "json" else effect
            render.put(f"{text}\n")
            return DONE
        if call.may_prompt() and not yes:
            render.note(effect)
            if not agree(
                "Extend it? A reservation can be extended only once",
                default=not preview.json()["delays"],
            ):
                render.note("odcctl: nothing extended")
                return REFUSED
        elif preview.json()["delays"] and not yes:
            render.note(f"odcctl: nothing extended: {effect}\n  To extend it anyway, use --yes.")
            return REFUSED
        elif call.form == "table" or preview.json()["delays"]:
            render.note(f"odcctl: {effect}")
    except KeyboardInterrupt:
        render.note("odcctl: nothing extended")
        return INTERRUPTED
    reply = client.post(path, {"hours": hours, "dry_run": False})
    until = render.when(reply.json()["expires_at"])
    return call.put_outcome(
        reply, str(one["id"]), f"reservation {one['id']} extended: it expires {until}"
    )


def _would(one: Mapping[str, Any], preview: Mapping[str, Any], hours: float, now_s: float) -> str:
    """The effect of the extension on the reservation and on queued jobs."""
    delays: list[dict[str, Any]] = preview["delays"]
    text = (
        f"{hours:g} {'hour' if hours == 1 else 'hours'} more: reservation {one['id']} expires "
        f"{render.when(preview['expires_at'])} instead of {render.when(one['expires_at'])}"
    )
    if not delays:
        return f"{text}; no planned start changes"
    number = "1 job starts" if len(delays) == 1 else f"{len(delays)} jobs start"
    lines = [text, f"  {number} later:"]
    lines += [f"    {_delay(delay, now_s)}" for delay in delays[:MAX_DELAYS]]
    if len(delays) > MAX_DELAYS:
        lines.append(f"    and {len(delays) - MAX_DELAYS} more")
    return "\n".join(lines)


def _delay(delay: Mapping[str, Any], now_s: float) -> str:
    job = f"{delay['job_id']} {render.clean(delay['name'])} of {delay['user']}"
    if not delay["to"]:
        return f"{job} loses its planned start {render.clock(delay['from'], now_s)}"
    late = render.duration(render.seconds_between(delay["from"], delay["to"]))
    return f"{job} by {late}, to {render.clock(delay['to'], now_s)}"
