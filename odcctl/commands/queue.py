"""odcctl queue: what runs and what waits, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odcctl.caller import me
from odcctl.exits import DONE
from odcctl.http.client import Client
from odcctl.listing import Listing, fetch_jobs
from odcctl.options import Arguments, Command, Option
from odcctl.text import jobs, render
from odcctl.text.time_args import AS_OF, past

HEADER = ("JOB", "USER", "PARTITION", "QOS", "GPUS", "STATE", "LIMIT", "NODES / WHY")
START_HEADER = (
    "JOB", "USER", "PARTITION", "QOS", "GPUS", "LIMIT", "START", "LIKELY BETWEEN", "WHY",
)  # fmt: skip
FIELDS = (
    "id,array_job_id,array_task_id,array_tasks,user,partition,qos,gpus_per_node,node_count,"
    "node_count_max,state,time_limit_s,node_names,reason,why,planned_start_at"
)


def run(arguments: Arguments) -> int:
    client = Client.of(arguments)
    params = filters(arguments, client)
    if arguments.flag("watch"):
        from odcctl.live_table import watch

        if arguments.form != "table":
            arguments.command.wrong("--watch shows a table; read events for a stream of JSON")
        if params["as_of"]:
            arguments.command.wrong("--watch and --as-of exclude each other")
        return watch(
            client, "odcctl queue --watch", lambda: lines(arguments, fetch_jobs(client, params))
        )
    listing = fetch_jobs(client, params)
    if arguments.form == "json":
        render.put(listing.text)
    elif arguments.form == "quiet":
        render.put("".join(f"{jobs.job_id(job)}\n" for job in listing.jobs))
    else:
        header, rows = lines(arguments, listing)
        head = () if arguments.flag("no-header") else header
        render.put(render.table(head, rows, render.terminal_width()))
    return DONE


def filters(arguments: Arguments, client: Client) -> dict[str, str | int | None]:
    states, ended = jobs.parse_states(arguments.joined("state"))
    start = arguments.flag("start")
    if start:
        if states is not None:
            arguments.command.wrong("--start shows pending jobs; it takes no --state")
        states, ended = "PENDING", False
    if arguments.flag("me") and arguments.flag("user"):
        arguments.command.wrong("--me and --user exclude each other")
    chosen = arguments.joined("job")
    return {
        "job": ",".join(jobs.check_selectors([chosen])) if chosen else None,
        "user": me(client) if arguments.flag("me") else arguments.joined("user"),
        "name": arguments.joined("name"),
        "partition": arguments.joined("partition"),
        "account": arguments.joined("account"),
        "qos": arguments.joined("qos"),
        "state": states,
        "ended": "true" if ended else None,
        "as_of": past(arguments, "as-of"),
        "fields": None if arguments.form == "json" else f"{FIELDS},eta" if start else FIELDS,
    }


def lines(arguments: Arguments, listing: Listing) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    now_s = listing.reply.now_s
    if not arguments.flag("start"):
        return HEADER, [_row(job, now_s) for job in listing.jobs]
    ordered = sorted(listing.jobs, key=_expected_at)
    return START_HEADER, [_start_row(job, now_s) for job in ordered]


def _expected_at(job: dict[str, Any]) -> str:
    """The sort key by expected start; jobs without one come last."""
    eta = job.get("eta")
    return eta["p50"] if eta else "9999"


def _row(job: dict[str, Any], now_s: float) -> tuple[str, ...]:
    return (
        jobs.job_id(job), job["user"], job["partition"] or "-", job["qos"] or "-", jobs.gpus(job),
        job["state"], render.limit(job["time_limit_s"]), jobs.place(job, now_s),
    )  # fmt: skip


def _start_row(job: dict[str, Any], now_s: float) -> tuple[str, ...]:
    return (
        jobs.job_id(job), job["user"], job["partition"] or "-", job["qos"] or "-", jobs.gpus(job),
        render.limit(job["time_limit_s"]),
        *(text or "-" for text in jobs.expected_start(job, now_s)),
        jobs.place({**job, "planned_start_at": None}, now_s),
    )  # fmt: skip


COMMAND = Command(
    name="queue",
    summary="Show what runs and what waits, and why",
    usage="queue [OPTIONS]",
    options=(
        Option("user", "u", "NAMES", "only jobs of these users"),
        Option("me", None, None, "only my jobs"),
        Option(
            "state", "t", "STATES", "only these states, as PENDING or PD; all includes ended jobs"
        ),
        Option("partition", "p", "NAMES", "only jobs that these partitions may run"),
        Option("job", "j", "IDS", "only these jobs: 7, 7_3, 7_[1-4]"),
        Option("account", "A", "NAMES", "only jobs of these accounts"),
        Option("qos", "q", "NAMES", "only jobs under these QOS"),
        Option("name", "n", "NAMES", "only jobs with these names"),
        Option("start", None, None, "show pending jobs by expected start"),
        AS_OF,
        Option("watch", None, None, "keep showing it, as it changes; Ctrl-C ends it"),
        Option("no-header", None, None, "leave the header line out"),
    ),
    example="odcctl queue --partition h100 --state PENDING,RUNNING",
    run=run,
)
