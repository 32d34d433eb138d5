"""odcctl notify set | show | remove | test: a webhook for news about your jobs and dev servers."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Listing, Verb, new_app
from odcctl.exits import DONE, REFUSED
from odcctl.text import render

PATH = "/v1/users/me/webhook"
EVENTS = (
    "begin", "end", "fail", "requeue", "invalid_depend", "time_limit", "time_limit_90",
    "time_limit_80", "time_limit_50", "array_tasks", "expiry", "drain",
)  # fmt: skip
HEADER = ("ID", "BY", "EVENT", "JOB", "CREATED", "STATE", "WHY")
FAILING = "nothing changed"
WAIT_S = 20.0
LOOK_S = 0.5

app = new_app(
    Actions,
    "Get news about your jobs and dev servers in a chat: set, show, remove, test.\n\n"
    "A webhook is an address that odc sends JSON to, in the form that Slack and compatible "
    "services accept. For mail, use submit --mail-type.",
)


@app.command("set", cls=Verb, epilog="odcctl notify set https://hooks.slack.com/services/T0/B0/x")
def set_webhook(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="ADDRESS", help="https://HOST/PATH")],
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="EVENT,…",
            help=f"{', '.join(EVENTS)}; default: begin, end, fail, expiry and drain",
        ),
    ] = None,
) -> int:
    """Set your webhook, in place of an earlier one."""
    call = Call.of(ctx, failing=FAILING)
    body: dict[str, Any] = {"url": url}
    if on is not None:
        body["events"] = events = [word.strip().lower() for word in on.split(",") if word.strip()]
        unknown = [word for word in events if word not in EVENTS]
        if unknown or not events:
            call.wrong(
                f'"{unknown[0]}" is not an event: choose among {", ".join(EVENTS)}'
                if unknown
                else "--on names no event"
            )
    reply = call.client().put(PATH, body)
    hook = reply.json()
    return call.put_outcome(
        reply, hook["url"], f"{hook['url']} gets: {', '.join(hook['events'])}. "
        "Try it: odcctl notify test",
    )  # fmt: skip


@app.command(cls=Listing, epilog="odcctl notify show")
def show(ctx: typer.Context) -> int:
    """Show your webhook, and your last notifications, mails included."""
    call = Call.of(ctx)
    reply = call.client().get(PATH)
    hook = reply.json()
    if call.form == "table":
        text = f"{hook['url']}: {', '.join(hook['events'])}" if hook["url"] else "no webhook"
        render.put(f"{render.clean(text)}\n")
        if not hook["recent"]:
            return DONE
    rows = [_row(one) for one in hook["recent"]]
    return call.put_list(reply, (one["id"] for one in hook["recent"]), HEADER, rows)


@app.command(cls=Verb, epilog="odcctl notify remove")
def remove(ctx: typer.Context) -> int:
    """Remove your webhook. Notifications that wait for it are not sent."""
    call = Call.of(ctx, failing=FAILING)
    reply = call.client().delete(PATH)
    return call.put_outcome(reply, "removed", "webhook removed")


@app.command(cls=Verb, epilog="odcctl notify test")
def test(ctx: typer.Context) -> int:
    """Send a test message to your webhook, and wait for the outcome."""
    call = Call.of(ctx, failing="not sent")
    client = call.client()
    number = client.post(f"{PATH}/test", {}).json()["id"]
    give_up_s = time.monotonic() + WAIT_S
    while True:
        reply = client.get(PATH)
        found = [one for one in reply.json()["recent"] if one["id"] == number]
        state = _state(found[0]) if found else "waits"
        if state in ("sent", "given up") or time.monotonic() > give_up_s:
            break
        time.sleep(LOOK_S)
    why = f": {found[0]['trouble']}" if found and found[0]["trouble"] else ""
    call.put_outcome(reply, state, render.clean(f"test message {number}: {state}{why}"))
    return DONE if state == "sent" else REFUSED


def _state(one: dict[str, Any]) -> str:
    if one["sent_at"]:
        return "sent"
    if one["failed_at"]:
        return "given up"
    return f"tried {render.counted(one['tries'], 'time')}" if one["trouble"] else "waits"


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(one["id"]),
        one["channel"],
        one["kind"],
        str(one["job_id"] or ""),
        render.when(one["at"]),
        _state(one),
        one["trouble"] or "",
    )
