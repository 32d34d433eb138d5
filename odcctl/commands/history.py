"""odcctl history: jobs that have ended, and how they ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from odcctl.caller import me as caller_name
from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.cli.params import Accounts, JobNames, Me, Partitions, Qos, Users, joined, past
from odcctl.ended import end_text
from odcctl.exits import DONE
from odcctl.http.client import Client
from odcctl.listing import fetch_jobs
from odcctl.text import gpu_use, jobs, render, resource_use
from odcctl.text.hostlist import fold
from odcctl.text.tables import Narrow

HEADER = ("JOB", "NAME", "USER", "PARTITION", "GPUS", "STATE", "EXIT", "ELAPSED", "ENDED", "NODES",
          "WHY")  # fmt: skip
FIELDS = (
    "id,array_job_id,array_task_id,array_tasks,name,user,partition,gpus_per_node,node_count,"
    "components,state,reason,exit_code,signal,end_detail,started_at,ended_at,node_names"
)
EFFICIENCY = ("JOB", "NAME", "USER", "STATE", "ELAPSED", "CPU", "RSS", "GPUS", *gpu_use.HEADER)
NARROW = Narrow({"NAME": 14}, ("PARTITION", "GPUS", "USER", "NODES", "ENDED"))
LIMIT = 50

Since = Annotated[
    str | None,
    typer.Option(
        "--since", "-S", metavar="TIME", parser=past,
        help="jobs that ended since: 2h, 7d, today, yesterday, 2026-07-01T12:00",
    ),
]  # fmt: skip
Until = Annotated[
    str | None,
    typer.Option(
        "--until", "-E", metavar="TIME", parser=past,
        help="jobs that ended before: the same forms as for --since",
    ),
]  # fmt: skip
NoSteps = Annotated[
    bool,
    typer.Option(
        "--allocations", "-X", help="only jobs, without their steps, which is what history shows"
    ),
]  # fmt: skip
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", metavar="N",
        help=f"the last N jobs; default {LIMIT}, unless --since or --until is given",
    ),
]  # fmt: skip
State = Annotated[
    list[str] | None,
    typer.Option(
        "--state", "-t", metavar="STATES",
        help="only these states, for example FAILED,TIMEOUT or F,TO",
        autocompletion=complete.states,
    ),
]  # fmt: skip
Job = Annotated[
    list[str] | None,
    typer.Option("--job", "-j", metavar="IDS", help="only these jobs: 7, 7_3, 7_[1-4]"),
]  # fmt: skip
Efficiency = Annotated[
    bool,
    typer.Option(
        "--efficiency", help="show the usage of each job, like seff, and of GPUs by user"
    )
]  # fmt: skip


app = new_app()


@app.command(cls=Listing, epilog="odcctl history --me --state FAILED --limit 10")
def history(
    ctx: typer.Context,
    since: Since = None,
    until: Until = None,
    limit: Limit = None,
    user: Users = None,
    me: Me = False,
    state: State = None,
    partition: Partitions = None,
    job: Job = None,
    account: Accounts = None,
    qos: Qos = None,
    name: JobNames = None,
    efficiency: Efficiency = False,
    allocations: NoSteps = False,
) -> int:  # fmt: skip
    """Show jobs that have ended, and how they ended.

    The job that ended last comes last. On a narrow terminal, the less important columns are left
    out. EXIT is the exit code and, after the colon, the signal that
    ended the job; WHY is the executor's report about the end. With --efficiency, CPU is the used
    share of the allocated CPU time, and RSS the memory of the largest process, both not measured on
    Kubernetes. GPU-H is the allocated GPU-hours, BUSY the utilization in the part of them that was
    monitored (SEEN), and MEMORY the peak memory of one GPU. The sums include only the jobs shown.
    """
    call = Call.of(ctx)
    if limit is None and since is None and until is None:
        limit = LIMIT
    if limit is not None and limit < 1:
        call.wrong("--limit must be at least 1")
    states = jobs.parse_states(joined(state))[0] or ",".join(jobs.ENDED)
    if set(states.split(",")) - set(jobs.ENDED):
        call.wrong("--state accepts states of ended jobs; `odcctl queue` shows the others")
    call.exclude(me=me, user=user)
    client = call.client()
    fields = f"{FIELDS},gpu_use,resource_use,cpus_per_node" if efficiency else FIELDS
    params = {
        "job": ",".join(jobs.check_selectors(job)) if job else None,
        "user": caller_name(client) if me else joined(user),
        "name": joined(name),
        "partition": joined(partition),
        "account": joined(account),
        "qos": joined(qos),
        "state": states,
        "ended": "true",
        "ended_since": since,
        "ended_before": until,
        "fields": None if call.form == "json" else fields,
    }
    listing = fetch_jobs(client, params, limit)
    oldest_first = sorted(listing.jobs[::-1], key=lambda job: job.get("ended_at") or "")
    if call.form == "json":
        render.put(listing.text)
    elif call.form == "quiet":
        call.put_ids(map(jobs.job_id, oldest_first))
    elif efficiency:
        _put_efficiency(call, oldest_first)
        _note_unknown(client, oldest_first)
    else:
        call.put_table(HEADER, [_row(job, listing.reply.now_s) for job in oldest_first], NARROW)
    return DONE


def _put_efficiency(call: Call, listed: Sequence[Mapping[str, Any]]) -> None:
    """Usage by job, then totals of GPUs by user; as CSV without the totals."""
    call.put_table(EFFICIENCY, [_efficiency(job) for job in listed])
    totals = gpu_use.totals(listed)
    if totals and call.form == "table" and call.columns is None:
        head = gpu_use.TOTALS if call.header else ()
        render.put("\n" + render.table(head, totals, render.terminal_width()))


def _note_unknown(client: Client, listed: Sequence[Mapping[str, Any]]) -> None:
    """Print why no job has measurements of its GPUs, if none has."""
    if not listed or any(job.get("gpu_use") for job in listed):
        return
    if not any(job["gpus_per_node"] for job in listed):
        if not any(job.get("resource_use") for job in listed):
            render.note("odcctl: the usage of these jobs was not measured")
        return
    source = client.get("/v1/idle", {}).json()["source"]
    if source is None:
        render.note(f"odcctl: GPU usage is not measured here{gpu_use.UNMEASURED}")
    else:
        render.note(
            f"odcctl: GPU usage is measured here ({source}), but not for these jobs: they ended "
            "before that, or ran on declared nodes (docs/operating/gpu-use.md)"
        )


def _efficiency(job: Mapping[str, Any]) -> tuple[str, ...]:
    elapsed_s = render.seconds_between(job.get("started_at"), job.get("ended_at"))
    return (
        jobs.job_id(job), render.clean(job["name"]), job["user"], job["state"],
        render.duration(elapsed_s), resource_use.cpu_share(job), resource_use.resident(job),
        jobs.gpus(job), *gpu_use.cells(job),
    )  # fmt: skip


def _row(job: Mapping[str, Any], now_s: float) -> tuple[str, ...]:
    ended = job.get("ended_at")
    return (
        jobs.job_id(job), render.clean(job["name"]), job["user"], job["partition"] or "-",
        jobs.gpus(job), job["state"], jobs.exit_code(job),
        render.duration(render.seconds_between(job.get("started_at"), ended)),
        render.clock(ended, now_s) if ended else "-", fold(job.get("node_names") or ()) or "-",
        end_text(job) or "-",
    )  # fmt: skip
