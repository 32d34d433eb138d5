"""odcctl events: who did what to what, and why."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, cast

from odcctl.exits import DONE
from odcctl.follow import Patience, outages
from odcctl.http.client import Client, quote
from odcctl.http.sse import Events
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.jobs import check_selector

LAGGED = "lagged"
"""The daemon's word that this client was too slow: it comes again, after the last event it got."""


def run(arguments: Arguments) -> int:
    job, follow = arguments.value("job"), arguments.flag("follow")
    after = arguments.number("after", None if follow and not job else 0)
    path = f"/v1/jobs/{quote(check_selector(job))}/events" if job else "/v1/events"
    client, patience = Client.of(arguments), Patience()
    show = _SHOW[arguments.form]
    while True:
        with outages(patience):
            params = {"after": after, "follow": "true" if follow else "false"}
            events = Events(client.stream("GET", path, params))
            patience.reached()
            for event in events:
                after = event["id"]
                if event["kind"] == LAGGED:
                    break
                render.put(show(event) + "\n")
                sys.stdout.flush()
            if not follow:
                return DONE
            events.close()


def line(event: Mapping[str, Any]) -> str:
    about = f"job {event['job_id']}" if event.get("job_id") is not None else ""
    if event.get("node"):
        about = f"{about} node {event['node']}".strip()
    detail = render.local_moments(
        " ".join(f"{key}={_plain(value)}" for key, value in (event.get("detail") or {}).items())
    )
    parts = [render.when(event["at"]), str(event["kind"]), about, f"by {event['actor']}", detail]
    return "  ".join(render.clean(part) for part in parts if part)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(_plain(item) for item in cast("list[object]", value))
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _json(event: Mapping[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def _id(event: Mapping[str, Any]) -> str:
    return str(event["id"])


_SHOW = {"table": line, "json": _json, "quiet": _id}

COMMAND = Command(
    name="events",
    summary="Show who did what to what, and why",
    usage="events [OPTIONS]",
    notes="The audit log, oldest first. --json prints one value a line, as the stream has them.",
    options=(
        Option("job", "j", "ID", "only events of this job"),
        Option("follow", "f", None, "go on with new events; without --job, only those"),
        Option("after", None, "ID", "only events after this one"),
    ),
    example="odcctl events --job 7\nodcctl events --follow",
    run=run,
)
