"""odcctl idle: allocated but idle GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from odcctl.caller import me as caller_name
from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.cli.params import Accounts, GpuTypes, Me, Users, joined
from odcctl.exits import DONE
from odcctl.text import gpu_use, jobs, render
from odcctl.text.hostlist import fold

HEADER = ("JOB", "NAME", "USER", "ACCOUNT", "TYPE", "IDLE", "BUSY", "SINCE", "LOST GPU-H", "ENDS",
          "NODES")  # fmt: skip

app = new_app()


@app.command(cls=Listing, epilog="odcctl idle --gpu-type h100\nodcctl idle --me --json")
def idle(
    ctx: typer.Context,
    me: Me = False,
    user: Users = None,
    account: Accounts = None,
    gpu_type: GpuTypes = None,
    reservations: Annotated[bool, typer.Option("--reservations", help="only reservations")] = False,
    batch: Annotated[bool, typer.Option("--batch", help="only batch jobs")] = False,
) -> int:
    """Show allocated but idle GPUs, and the jobs waiting for that type.

    IDLE counts the GPUs of a job that have been idle for 15 minutes (operators can set another
    time and threshold). BUSY is the mean utilization of all its GPUs, SINCE the time at which
    the first of them became idle, and LOST GPU-H the sum of their idle hours. Time without
    measurements counts as use.
    """
    call = Call.of(ctx)
    call.exclude(me=me, user=user)
    call.exclude(reservations=reservations, batch=batch)
    client = call.client()
    reply = client.get(
        "/v1/idle",
        {
            "user": caller_name(client) if me else joined(user),
            "account": joined(account),
            "gpu_type": joined(gpu_type),
            "kind": "batch" if batch else "reservation" if reservations else None,
        },
    )
    answer: dict[str, Any] = reply.json()
    rows = [_row(job, reply.now_s) for job in answer["jobs"]]
    if rows or call.form != "table":
        call.put_list(reply, map(jobs.job_id, answer["jobs"]), HEADER, rows)
    if call.form == "table":
        for wait in answer["waiting"]:
            render.put(_waiting(wait, reply.now_s) + "\n")
        _note(answer)
    return DONE


def _row(job: Mapping[str, Any], now_s: float) -> tuple[str, ...]:
    ends = job["ends_at"]
    return (
        jobs.job_id(job), render.clean(job["name"]), job["user"], job["account"] or "-",
        job["gpu_type"], f"{job['idle_gpus']} of {job['gpus']}", gpu_use.percent(job["util_ratio"]),
        render.clock(job["idle_since"], now_s), gpu_use.hours(job["lost_gpu_s"]),
        render.clock(ends, now_s) if ends else "-", fold(job["node_names"]) or "-",
    )  # fmt: skip


def _waiting(wait: Mapping[str, Any], now_s: float) -> str:
    users = ", ".join(render.clean(user) for user in wait["users"])
    since = render.clock(wait["since"], now_s)
    return (
        f"{render.counted(wait['jobs'], 'job')} could take {wait['gpu_type']} and "
        f"{'asks' if wait['jobs'] == 1 else 'ask'} for {render.counted(wait['gpus'], 'GPU')}, "
        f"the first since {since}: {users}"
    )


def _note(answer: Mapping[str, Any]) -> None:
    """The thresholds, and the nodes without measurements."""
    if answer["source"] is None:
        render.note(
            "odcctl: GPU usage is not measured here, except in dev servers whose QOS checks for "
            f"idleness{gpu_use.UNMEASURED}"
        )
    elif not answer["jobs"]:
        minutes = round(answer["idle_after_s"] / 60)
        limit = gpu_use.percent(answer["idle_ratio"])
        render.note(f"odcctl: no allocated GPU was below {limit} for {minutes} minutes")
