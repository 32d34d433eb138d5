"""odcctl queue: running and waiting jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from odcctl.caller import me as caller_name
from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.cli.params import Accounts, AsOf, JobNames, Me, Partitions, Qos, Users, joined
from odcctl.exits import DONE
from odcctl.listing import Listing as Jobs
from odcctl.listing import fetch_jobs
from odcctl.text import jobs, render

HEADER = ("JOB", "USER", "PARTITION", "QOS", "GPUS", "STATE", "LIMIT", "NODES / WHY")
START_HEADER = (
    "JOB", "USER", "PARTITION", "QOS", "GPUS", "LIMIT", "START", "EXPECTED BETWEEN", "WHY",
)  # fmt: skip
FIELDS = (
    "id,array_job_id,array_task_id,array_tasks,user,partition,qos,gpus_per_node,node_count,"
    "node_count_max,state,time_limit_s,node_names,reason,why,planned_start_at"
)
EXAMPLE = "odcctl queue --partition h100 --state PENDING,RUNNING\nodcctl queue 17 18_[1-3]"

Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID...", help="only these jobs: 7, 7_3, 7_[1-4]", autocompletion=complete.jobs
    ),
]  # fmt: skip
State = Annotated[
    list[str] | None,
    typer.Option(
        "--state", "-t", metavar="STATES", autocompletion=complete.states,
        help="only these states, as PENDING or PD; all includes ended jobs",
    ),
]  # fmt: skip
Job = Annotated[
    list[str] | None,
    typer.Option("--job", "-j", metavar="IDS", help="the same as ID", autocompletion=complete.jobs),
]  # fmt: skip
Start = Annotated[
    bool, typer.Option("--start", help="list pending jobs by their expected starts")
]  # fmt: skip
Watch = Annotated[
    bool, typer.Option("--watch", help="update the table as it changes; Ctrl-C stops")
]  # fmt: skip


app = new_app()


@app.command(cls=Listing, epilog=EXAMPLE)
def queue(
    ctx: typer.Context,
    ids: Ids = None,
    user: Users = None,
    me: Me = False,
    state: State = None,
    partition: Partitions = None,
    job: Job = None,
    account: Accounts = None,
    qos: Qos = None,
    name: JobNames = None,
    start: Start = False,
    as_of: AsOf = None,
    watch: Watch = False,
) -> int:  # fmt: skip
    """Show running and pending jobs, and why pending jobs wait."""
    call = Call.of(ctx)
    call.exclude(me=me, user=user)
    states, ended = jobs.parse_states(joined(state))
    if start:
        if states is not None:
            call.wrong("--start shows pending jobs; it takes no --state")
        states, ended = "PENDING", False
    chosen = jobs.check_selectors([*(ids or ()), *(job or ())])
    client = call.client()
    params = {
        "job": ",".join(chosen) or None,
        "user": caller_name(client) if me else joined(user),
        "name": joined(name),
        "partition": joined(partition),
        "account": joined(account),
        "qos": joined(qos),
        "state": states,
        "ended": "true" if ended else None,
        "as_of": as_of,
        "fields": None if call.form == "json" else f"{FIELDS},eta" if start else FIELDS,
    }
    if watch:
        call.exclude(watch=watch, as_of=as_of)
        return call.watch_table(lambda: lines(fetch_jobs(client, params), start=start))
    listing = fetch_jobs(client, params)
    if call.form == "json":
        render.put(listing.text)
    elif call.form == "quiet":
        call.put_ids(map(jobs.job_id, listing.jobs))
    else:
        call.put_table(*lines(listing, start=start))
    return DONE


def lines(listing: Jobs, *, start: bool) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """The header and the rows. start: pending jobs by expected start."""
    now_s = listing.reply.now_s
    if not start:
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
