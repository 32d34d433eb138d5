"""odcctl show: all facts about a job or a reservation."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import AsOf
from odcctl.exits import DONE, Failure, Refused
from odcctl.http.client import Client, quote
from odcctl.listing import Listing, fetch_job
from odcctl.reservation_states import LIVE, OVER
from odcctl.reservations import lookup as reservations
from odcctl.reservations.describe import describe as describe_reservation
from odcctl.text import gpu_use, jobs, render, resource_use
from odcctl.text.hostlist import fold

_LIKE_A_JOB = re.compile(r"[\d_.,:%+\[\]-]+", re.ASCII)
"""Text that is meant as an id, valid or not."""

app = new_app()


@app.command(cls=Verb, epilog="odcctl show 4130\nodcctl show 7_3 --script\nodcctl show")
def show(
    ctx: typer.Context,
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID...", help="7, 7_3, 7_[1-4], or the name of one of your reservations",
            autocompletion=complete.jobs,
        ),
    ] = None,
    script: Annotated[
        bool, typer.Option("--script", help="print the script as it was submitted")
    ] = False,
    as_of: AsOf = None,
) -> int:  # fmt: skip
    """Show all details of a job or a reservation.

    The id of an array shows its started and waiting tasks. Without an id, shows your active and
    waiting reservations. You can name your own reservation by its name, or by the beginning of
    its id if no job has that id.
    """
    call = Call.of(ctx)
    selectors = [_check(word) for word in ids or ()]
    client = call.client()
    if not selectors:
        if as_of or script:
            call.wrong("give a job id")
        return _show_mine(call)
    if script:
        if as_of:
            call.wrong("--script and --as-of cannot be used together: scripts never change")
        for selector in selectors:
            text = client.get(f"/v1/jobs/{quote(selector)}/script").text
            # Unchanged, so that it can be saved and run; but operators read scripts of others.
            sys.stdout.write(render.harmless(text) if sys.stdout.isatty() else text)
        return DONE
    listings = [_look(client, selector, as_of) for selector in selectors]
    found = [job for listing in listings for job in listing.jobs]
    _put(call, listings, found, {} if as_of else _reservations(client, found), as_of)
    return DONE


def _put(
    call: Call, listings: list[Listing], found: list[dict[str, Any]],
    of_jobs: Mapping[int, Mapping[str, Any]], as_of: str | None,
) -> None:  # fmt: skip
    """of_jobs: the reservations among the jobs, by id."""
    if call.form == "json":
        if len(listings) == 1 and not of_jobs:
            render.put(listings[0].text)
        else:
            shown = [{**of_jobs.get(job["id"], {}), **job} for job in found]
            render.put_json({"jobs": shown, "next": None})
    elif call.form == "quiet":
        call.put_ids(map(jobs.job_id, found))
    else:
        now_s = render.moment(as_of).timestamp() if as_of else listings[0].reply.now_s
        blocks: list[str] = []
        for job in found:
            blocks.append(describe(job, now_s))
            if job["id"] in of_jobs:
                blocks.append(describe_reservation(of_jobs[job["id"]], now_s, whole=False))
        render.put("\n".join(blocks))


def _check(word: str) -> str:
    """A valid job id; any other text may be the name of a reservation."""
    return jobs.check_selector(word) if _LIKE_A_JOB.fullmatch(word) else word


def _look(client: Client, selector: str, moment: str | None) -> Listing:
    """The job with this id; if there is none, the caller's reservation with this name."""
    if not _LIKE_A_JOB.fullmatch(selector):
        found = reservations.starting(client, selector)
        if not found:
            raise Failure(
                f'"{render.clean(selector)}" is not a job id, and you have no live reservation of '
                "that name",
                "`odcctl queue --me` lists your jobs, and `odcctl list --all` your reservations.",
            )
        selector = str(found[0]["id"])
    path, params = f"/v1/jobs/{quote(selector)}", {"as_of": moment}
    try:
        return fetch_job(client, path, params)
    except Refused as refused:
        if refused.status != 404 or moment:
            raise
        try:
            mine = reservations.starting(client, selector)
        except Refused:
            mine = ()  # Report the refusal of the job instead.
        if not mine:
            raise
        return fetch_job(client, f"/v1/jobs/{mine[0]['id']}", {})


def _reservations(client: Client, found: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The reservations among the jobs, by job id, for the fields that only they have."""
    numbers = [job["id"] for job in found if job["kind"] == "reservation"]
    live = {number: client.get(f"/v1/reservations/{number}").json() for number in numbers}
    if any(one.get("connect") == "ssh" or one["status"] in OVER for one in live.values()):
        from odcctl.ssh import host_files as ssh

        for one in live.values():
            ssh.keep_up(client, one)
    return live


def _show_mine(call: Call) -> int:
    """Show the caller's live reservations."""
    reply = call.client().get("/v1/reservations", {"status": ",".join(LIVE)})
    mine: list[dict[str, Any]] = reply.json()["reservations"]
    if call.form == "json":
        call.put_reply(reply)
    elif call.form == "quiet":
        call.put_ids(one["id"] for one in mine)
    elif mine:
        render.put("\n".join(describe_reservation(one, reply.now_s) for one in mine))
    else:
        render.note(
            "odcctl: you have no active or waiting reservation; for a job, give its id: odcctl "
            "show ID"
        )
    return DONE


def describe(job: Mapping[str, Any], now_s: float) -> str:
    """One job as a block of keys and values; empty values are left out."""
    pairs = [
        ("name", job["name"]),
        ("state", _state(job)),
        ("why", _why(job, now_s)),
        ("end", render.local_moments(job.get("end_detail") or "")),
        ("preempted", _preemption(job, now_s)),
        ("nodes", fold(job.get("node_names") or ())),
        ("exit code", jobs.exit_code(job) if job["state"] in jobs.ENDED else ""),
        ("user", f"{job['user']} (uid {job['uid']})"),
        ("account", job.get("account")),
        ("partition", job.get("partition")),
        ("qos", job.get("qos")),
        ("asks for", _asks(job)),
        ("in", _wish(job)),
        ("time limit", render.limit(job.get("time_limit_s"))),
        ("submitted", render.when(job.get("submitted_at"))),
        ("eligible", render.when(job.get("eligible_at"))),
        ("begins after", render.when(job.get("begin_at"))),
        ("planned start", render.when(job.get("planned_start_at"))),
        ("expected", _expected(job, now_s)),
        ("started", render.when(job.get("started_at"))),
        ("checkpoint", render.when(job.get("checkpoint_at"))),
        ("ended", render.when(job.get("ended_at"))),
        ("elapsed", _elapsed(job, now_s)),
        ("ends by", _ends_by(job)),
        ("used", resource_use.describe(job)),
        ("gpu use", gpu_use.describe(job, now_s)),
        ("attempt", _attempt(job)),
        ("array task", _task(job)),
        ("tasks at once", job.get("array_throttle")),
        ("depends on", job.get("dependency")),
        ("booking", job.get("booking")),
        ("licences", _licences(job)),
        ("nice", job.get("nice")),
        ("work dir", job.get("work_dir")),
        ("stdout", job.get("stdout")),
        ("stderr", job.get("stderr")),
        ("comment", job.get("comment")),
    ]
    kept = [(key, _clean(value)) for key, value in pairs if value]
    return render.block(f"job {jobs.job_id(job)}", kept)


def _preemption(job: Mapping[str, Any], now_s: float) -> str:
    preemption = job.get("preemption")
    if not preemption or preemption["text"] == job.get("end_detail"):
        return ""
    what = str(preemption["text"]).removeprefix("preempted ")
    then = "requeued" if preemption["mode"] == "requeue" else "not requeued"
    at = jobs.local_times(preemption["at"], now_s)
    rule = f"QOS {preemption['qos']} preempts {preemption['victim_qos']}: {then}"
    return f"{what}\nattempt {preemption['attempt']}, {at}; {rule}"


def _clean(value: object) -> str:
    return "\n".join(render.clean(line) for line in str(value).split("\n"))


def _state(job: Mapping[str, Any]) -> str:
    reason = job.get("reason")
    return f"{job['state']} ({reason})" if reason and reason != "None" else job["state"]


def _why(job: Mapping[str, Any], now_s: float) -> str:
    return "\n".join(jobs.cause_text(cause, now_s) for cause in job.get("why") or ())


def _expected(job: Mapping[str, Any], now_s: float) -> str:
    start, between = jobs.expected_start(job, now_s)
    return f"{start}; 8 of 10 such jobs start from {between}" if between else ""


def _asks(job: Mapping[str, Any]) -> str:
    """The nodes, GPUs, CPUs and memory of the request; of components, each in a line."""
    if job.get("components"):
        parts = [{"state": job["state"], **one} for one in job["components"]]
        named = any(one["name"] for one in parts)
        return "\n".join(
            f"{number}: " + (f"{one['name'] or job['name']}: " if named else "") + _asks(one)
            for number, one in enumerate(parts)
        )
    nodes, gpus = jobs.nodes(job, " to "), job.get("gpus_per_node") or 0
    noun = "GPU" if gpus == 1 else "GPUs"
    kind = job.get("gpu_type")
    each = [f"{gpus} {kind} {noun}" if kind else f"{gpus} {noun} of any type"] if gpus else []
    cpus = job.get("cpus_per_node")
    if cpus:
        each.append(f"{cpus} CPUs" if cpus > 1 else "1 CPU")
    if job.get("mem_per_node_mib") is not None:
        mib = job["mem_per_node_mib"]
        each.append(render.memory(mib) if mib else "all memory")
    return ", ".join(each) if nodes == "1" else f"{nodes} nodes, on each: {', '.join(each)}"


def _wish(job: Mapping[str, Any]) -> str:
    max_blocks, wait_s = job.get("switches"), job.get("switches_wait_s")
    if not max_blocks or job["state"] != "PENDING":
        return ""
    until = "for as long as it takes" if wait_s is None else f"for up to {render.duration(wait_s)}"
    return (
        f"at most {max_blocks} topology {'block' if max_blocks == 1 else 'blocks'}; waits {until}"
    )


def _licences(job: Mapping[str, Any]) -> str:
    held: Mapping[str, int] = job.get("licences") or {}
    return ", ".join(f"{count} {name}" for name, count in sorted(held.items()))


def _elapsed(job: Mapping[str, Any], now_s: float) -> str:
    seconds = render.seconds_between(job.get("started_at"), job.get("ended_at") or now_s)
    return "" if seconds is None else render.duration(seconds)


def _ends_by(job: Mapping[str, Any]) -> str:
    """When its time limit ends it, if it has one. A dev server's block shows its own end."""
    limit_s = job.get("time_limit_s")
    if job["state"] != "RUNNING" or job.get("kind") == "reservation" or limit_s is None:
        return ""
    return render.when((render.moment(job["started_at"]) + timedelta(seconds=limit_s)).isoformat())


def _attempt(job: Mapping[str, Any]) -> str:
    restarts = job.get("restarts") or 0
    if not restarts:
        return ""
    return f"{job['attempt']} (restarted {restarts} {'times' if restarts > 1 else 'time'})"


def _task(job: Mapping[str, Any]) -> str:
    task = job.get("array_task_id")
    return (
        "" if task is None else f"{task} of array {job['array_job_id']}; its own id is {job['id']}"
    )
