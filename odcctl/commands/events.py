"""odcctl events: the audit log."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any, cast

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.exits import DONE
from odcctl.follow import Patience, outages
from odcctl.http.client import quote
from odcctl.http.sse import Events
from odcctl.text import render
from odcctl.text.jobs import check_selector

LAGGED = "lagged"
"""An event that this client was too slow for the stream: it reads on after its last event."""
HEADER = ("ID", "AT", "KIND", "JOB", "NODE", "ACTOR", "DETAIL")

app = new_app()


@app.command(cls=Listing, epilog="odcctl events --job 7\nodcctl events --follow")
def events(
    ctx: typer.Context,
    job: Annotated[
        str | None,
        typer.Option(
            "--job", "-j", metavar="ID", help="only events of this job",
            autocompletion=complete.jobs,
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="keep printing new events; without --job, only new events"
        ),
    ] = False,
    after: Annotated[
        int | None, typer.Option("--after", metavar="ID", help="only events after this one")
    ] = None,
) -> int:  # fmt: skip
    """Show events: each change, the user who made it, and its cause.

    The oldest event comes first. --json prints one JSON value per line, as in the event stream.
    The CSV columns, also for --format, are id, at, kind, job, node, actor and detail.
    """
    call = Call.of(ctx)
    if after is None and (job or not follow):
        after = 0
    path = f"/v1/jobs/{quote(check_selector(job))}/events" if job else "/v1/events"
    client, patience = call.client(), Patience()
    if call.form == "csv":
        call.put_table(HEADER, ())
        call.header = False
    while True:
        with outages(patience):
            params = {"after": after, "follow": "true" if follow else "false"}
            stream = Events(client.stream("GET", path, params))
            patience.reached()
            for event in stream:
                after = event["id"]
                if event["kind"] == LAGGED:
                    break
                _put(call, event)
                sys.stdout.flush()
            if not follow:
                return DONE
            stream.close()


def _put(call: Call, event: Mapping[str, Any]) -> None:
    if call.form == "json":
        render.put_json(event)
    elif call.form == "quiet":
        call.put_ids([event["id"]])
    elif call.form == "csv" or call.columns is not None:
        call.header = False
        call.put_table(HEADER, [_row(event)])
    else:
        render.put(line(event) + "\n")


def _row(event: Mapping[str, Any]) -> tuple[str, ...]:
    cells = (
        event["id"], event["at"], event["kind"], event.get("job_id"), event.get("node"),
        event["actor"], _detail(event),
    )  # fmt: skip
    return tuple("" if cell is None else render.clean(str(cell)) for cell in cells)


def _detail(event: Mapping[str, Any]) -> str:
    facts: Mapping[str, Any] = event.get("detail") or {}
    return render.local_moments(" ".join(f"{key}={_plain(facts[key])}" for key in facts))


def line(event: Mapping[str, Any]) -> str:
    about = f"job {_job(event)}" if event.get("job_id") is not None else ""
    if event.get("node"):
        about = f"{about} node {event['node']}".strip()
    parts = [
        render.when(event["at"]),
        str(event["kind"]),
        about,
        f"by {event['actor']}",
        _detail(event),
    ]
    return "  ".join(render.clean(part) for part in parts if part)


def _job(event: Mapping[str, Any]) -> str:
    """77_1 for an event of an array's task."""
    task = event.get("array_task_id")
    return str(event["job_id"]) if task is None else f"{event['array_job_id']}_{task}"


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(_plain(item) for item in cast("list[object]", value))
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
