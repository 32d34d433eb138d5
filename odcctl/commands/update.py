"""odcctl update: change jobs that wait or run."""

from __future__ import annotations

import os
from typing import Any

from odcctl.changes import tell
from odcctl.http.client import Client, quote
from odcctl.options import Arguments, Command, Option
from odcctl.text.jobs import check_selectors


def run(arguments: Arguments) -> int:
    selectors = check_selectors(arguments.words)
    changes = _changes(arguments)
    if not changes:
        arguments.command.wrong("say what to change")
    client = Client.of(arguments)
    outcomes: list[dict[str, Any]] = []
    for selector in selectors:
        answer = client.patch(f"/v1/jobs/{quote(selector)}", changes).json()
        outcomes += answer["jobs"]
    return tell({"jobs": outcomes}, arguments.form, "not changed")


def _changes(arguments: Arguments) -> dict[str, Any]:
    """The texts go as they are: the daemon reads sbatch's forms, and null takes a thing away."""
    partitions = arguments.joined("partition")
    changes: dict[str, Any] = {
        "time_limit": arguments.value("time"),
        "nice": arguments.number("nice"),
        "partitions": partitions.split(",") if partitions else None,
        "name": arguments.value("name"),
        "account": arguments.value("account"),
        "qos": arguments.value("qos"),
        "begin": arguments.value("begin"),
        "deadline": arguments.value("deadline"),
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    for name in ("comment", "dependency"):
        if arguments.flag(name):
            changes[name] = arguments.value(name) or None
    if arguments.flag("reservation"):
        changes["booking"] = arguments.value("reservation") or None
    if arguments.flag("throttle"):
        changes["array_throttle"] = arguments.number("throttle") or None
    if changes.keys() & {"begin", "deadline"} and os.environ.get("TZ"):
        changes["time_zone"] = os.environ["TZ"]
    return changes


COMMAND = Command(
    name="update",
    summary="Change jobs that wait or run",
    usage="update ID... OPTIONS",
    words=(1, None),
    takes_jobs=True,
    options=(
        Option("time", "t", "TIME", "time limit: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S or UNLIMITED"),
        Option("nice", None, "N", "start after jobs with a lower value; below 0 is for operators"),
        Option("partition", "p", "NAMES", "partitions that may run it"),
        Option("account", "A", "NAME", "the account it is charged to"),
        Option("qos", "q", "NAME", "the QOS it runs under"),
        Option("name", "n", "NAME", "name"),
        Option("comment", None, "TEXT", "comment; '' for none"),
        Option("dependency", "d", "LIST", "jobs to wait for, as sbatch writes them; '' for none"),
        Option("throttle", None, "N", "how many tasks of an array run at once; 0 for all"),
        Option("begin", "b", "MOMENT", "start no earlier: now+1hour, 16:00, 2026-01-20T12:34:00"),
        Option("reservation", None, "NAME", "run inside this booking; '' for none"),
        Option("deadline", None, "MOMENT", "end it when it cannot be done by then"),
    ),
    example="odcctl update 7 --time 2-00:00:00\nodcctl update 8 --throttle 4 --nice 100",
    run=run,
    what="nothing changed",
)
