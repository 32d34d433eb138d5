"""odcctl usage: who used how many GPU-hours, waited how long, and gave what back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.caller import me
from odcctl.exits import DONE
from odcctl.http.client import Client
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.time_args import past

GROUPS = {"user": "user", "account": "account", "qos": "qos", "partition": "partition",
          "type": "gpu_type", "kind": "kind"}  # fmt: skip
"""By the word of the command line, what the API calls it."""
HEADER = ("JOBS", "GPU-H", "CPU-H", "WAIT", "LONGEST", "FAILED", "EARLY", "GAVE BACK")


def run(arguments: Arguments) -> int:
    wrong = arguments.command.wrong
    by = (arguments.joined("by") or "user").split(",")
    for word in by:
        if word not in GROUPS:
            wrong(f'--by takes {", ".join(GROUPS)}, not "{word}"')
    if arguments.flag("me") and arguments.flag("user"):
        wrong("--me and --user exclude each other")
    if arguments.flag("reservations") and arguments.flag("batch"):
        wrong("--reservations and --batch exclude each other")
    client = Client.of(arguments)
    kind = "reservation" if arguments.flag("reservations") else None
    params = {
        "by": ",".join(GROUPS[word] for word in by),
        "since": past(arguments, "since"),
        "until": past(arguments, "until"),
        "user": me(client) if arguments.flag("me") else arguments.joined("user"),
        "account": arguments.joined("account"),
        "gpu_type": arguments.joined("gpu-type"),
        "kind": "batch" if arguments.flag("batch") else kind,
    }
    reply = client.get("/v1/usage", params)
    answer: dict[str, Any] = reply.json()
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
        return DONE
    keys: Sequence[str] = answer["by"]
    if arguments.form == "quiet":
        render.put("".join(f"{render.clean(_key(row, keys[0]))}\n" for row in answer["usage"]))
        return DONE
    head = () if arguments.flag("no-header") else (*(word.upper() for word in by), *HEADER)
    rows = [_row(row, keys) for row in answer["usage"]]
    render.put(render.table(head, rows, render.terminal_width()))
    render.note(f"odcctl: from {render.when(answer['since'])} to {render.when(answer['until'])}")
    return DONE


def _row(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    wait = row["wait_s"]
    return (
        *(render.clean(_key(row, key)) for key in keys), str(row["jobs"]), _hours(row["gpu_s"]),
        _hours(row["cpu_s"]), render.duration(wait["median"]) if wait else "-",
        render.duration(wait["most"]) if wait else "-", str(row["failed"] or "-"),
        str(row["early"] or "-"), _hours(row["early_gpu_s"]) if row["early"] else "-",
    )  # fmt: skip


def _key(row: Mapping[str, Any], key: str) -> str:
    return str(row["group"].get(key) or "-")


def _hours(seconds: int) -> str:
    return f"{seconds / 3600:.1f}"


COMMAND = Command(
    name="usage",
    summary="Show GPU-hours, waits and what ended early, by user, account or type",
    usage="usage [OPTIONS]",
    notes=(
        "Of the last seven days when no time is given, the most used first; of what still runs, so "
        "far. WAIT is the median, LONGEST the longest, of the jobs that began then. EARLY counts "
        "reservations that ended before their time, GAVE BACK the GPU-hours they left."
    ),
    options=(
        Option("since", "S", "TIME", "from then on: 2h, 7d, today, yesterday, 2026-07-01T12:00"),
        Option("until", "E", "TIME", "until then; now when left out"),
        Option("by", None, "WORDS", f"a line for each: {', '.join(GROUPS)}; user when left out"),
        Option("user", "u", "NAMES", "only of these users"),
        Option("me", None, None, "only mine"),
        Option("account", "A", "NAMES", "only of these accounts"),
        Option("gpu-type", None, "TYPES", "only of these GPU types"),
        Option("reservations", None, None, "only reservations"),
        Option("batch", None, None, "only batch jobs"),
        Option("no-header", None, None, "leave the header line out"),
    ),
    example="odcctl usage --since 30d --by account,type\nodcctl usage --me --reservations",
    run=run,
)
