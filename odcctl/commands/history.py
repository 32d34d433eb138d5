"""odcctl history: jobs that have ended, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.caller import me
from odcctl.exits import DONE
from odcctl.http.client import Client
from odcctl.listing import fetch_jobs
from odcctl.options import Arguments, Command, Option
from odcctl.text import gpu_use, jobs, render
from odcctl.text.hostlist import fold
from odcctl.text.time_args import past

HEADER = ("JOB", "NAME", "USER", "PARTITION", "GPUS", "STATE", "EXIT", "ELAPSED", "ENDED", "NODES")
FIELDS = (
    "id,array_job_id,array_task_id,array_tasks,name,user,partition,gpus_per_node,node_count,state,"
    "reason,exit_code,signal,started_at,ended_at,node_names"
)
LIMIT = 50


def run(arguments: Arguments) -> int:
    client = Client.of(arguments)
    since = past(arguments, "since")
    limit = arguments.number("limit", None if since else LIMIT)
    if limit is not None and limit < 1:
        arguments.command.wrong("--limit is at least 1")
    states = jobs.parse_states(arguments.joined("state"))[0] or ",".join(jobs.ENDED)
    if set(states.split(",")) - set(jobs.ENDED):
        arguments.command.wrong("--state takes states of ended jobs; odcctl queue shows the others")
    if arguments.flag("me") and arguments.flag("user"):
        arguments.command.wrong("--me and --user exclude each other")
    chosen = arguments.joined("job")
    efficiency = arguments.flag("efficiency")
    params = {
        "job": ",".join(jobs.check_selectors([chosen])) if chosen else None,
        "user": me(client) if arguments.flag("me") else arguments.joined("user"),
        "name": arguments.joined("name"),
        "partition": arguments.joined("partition"),
        "account": arguments.joined("account"),
        "qos": arguments.joined("qos"),
        "state": states,
        "ended": "true",
        "ended_since": since,
        "fields": None
        if arguments.form == "json"
        else f"{FIELDS},gpu_use"
        if efficiency
        else FIELDS,
    }
    listing = fetch_jobs(client, params, limit)
    if arguments.form == "json":
        render.put(listing.text)
        return DONE
    oldest_first = listing.jobs[::-1]
    if arguments.form == "quiet":
        render.put("".join(f"{jobs.job_id(job)}\n" for job in oldest_first))
        return DONE
    now_s = listing.reply.now_s
    if efficiency:
        _put_efficiency(oldest_first, with_header=not arguments.flag("no-header"))
        _note_unknown(client, oldest_first)
        return DONE
    head = () if arguments.flag("no-header") else HEADER
    rows = [_row(job, now_s) for job in oldest_first]
    render.put(render.table(head, rows, render.terminal_width()))
    return DONE


def _put_efficiency(listed: Sequence[Mapping[str, Any]], *, with_header: bool) -> None:
    """GPU usage by job, then totals by user."""
    width = render.terminal_width()
    head = gpu_use.HEADER if with_header else ()
    text = render.table(head, gpu_use.rows(listed), width)
    totals = gpu_use.totals(listed)
    if totals:
        text += "\n" + render.table(gpu_use.TOTALS if with_header else (), totals, width)
    render.put(text)


def _note_unknown(client: Client, listed: Sequence[Mapping[str, Any]]) -> None:
    """Why there are no figures, where there are none at all."""
    if not listed or any(job.get("gpu_use") for job in listed):
        return
    if not any(job["gpus_per_node"] for job in listed):
        render.note("odcctl: none of these jobs had GPUs; nothing else of a job is measured")
        return
    source = client.get("/v1/idle", {}).json()["source"]
    if source is None:
        render.note(f"odcctl: what GPUs do is not measured here{gpu_use.UNMEASURED}")
    else:
        render.note(
            f"odcctl: what GPUs do is measured here ({source}), but not of these jobs: they ended "
            "before that, or on nodes that are declared only (docs/operating/gpu-use.md)"
        )


def _row(job: Mapping[str, Any], now_s: float) -> tuple[str, ...]:
    ended = job.get("ended_at")
    return (
        jobs.job_id(job), render.clean(job["name"]), job["user"], job["partition"] or "-",
        jobs.gpus(job), job["state"], jobs.exit_code(job),
        render.duration(render.seconds_between(job.get("started_at"), ended)),
        render.clock(ended, now_s) if ended else "-", fold(job.get("node_names") or ()) or "-",
    )  # fmt: skip


COMMAND = Command(
    name="history",
    summary="Show jobs that have ended, and how",
    usage="history [OPTIONS]",
    notes=(
        "Newest last. EXIT is the exit code and, after the colon, the signal that ended the job. "
        "With --efficiency: GPU-H were held; BUSY of what was SEEN of them; MEMORY is the most "
        "that was used of one GPU. CPUs are not measured. The sums are of the jobs shown."
    ),
    options=(
        Option(
            "since", "S", "TIME", "all that ended since: 2h, 7d, today, yesterday, 2026-07-01T12:00"
        ),
        Option("limit", None, "N", f"the last N jobs; {LIMIT} when left out without --since"),
        Option("user", "u", "NAMES", "only jobs of these users"),
        Option("me", None, None, "only my jobs"),
        Option("state", "t", "STATES", "only these states, as FAILED,TIMEOUT or F,TO"),
        Option("partition", "p", "NAMES", "only jobs that ran in these partitions"),
        Option("job", "j", "IDS", "only these jobs: 7, 7_3, 7_[1-4]"),
        Option("account", "A", "NAMES", "only jobs of these accounts"),
        Option("qos", "q", "NAMES", "only jobs under these QOS"),
        Option("name", "n", "NAMES", "only jobs with these names"),
        Option("efficiency", None, None, "what their GPUs did, as seff; then sums by user"),
        Option("no-header", None, None, "leave the header line out"),
    ),
    example="odcctl history --me --state FAILED --limit 10",
    run=run,
)
