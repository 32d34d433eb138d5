"""odcctl idle: GPUs that are held and rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.caller import me
from odcctl.exits import DONE
from odcctl.http.client import Client
from odcctl.options import Arguments, Command, Option
from odcctl.text import gpu_use, jobs, render
from odcctl.text.hostlist import fold

HEADER = ("JOB", "NAME", "USER", "ACCOUNT", "TYPE", "IDLE", "BUSY", "SINCE", "LOST GPU-H", "ENDS",
          "NODES")  # fmt: skip


def run(arguments: Arguments) -> int:
    wrong = arguments.command.wrong
    if arguments.flag("me") and arguments.flag("user"):
        wrong("--me and --user exclude each other")
    if arguments.flag("reservations") and arguments.flag("batch"):
        wrong("--reservations and --batch exclude each other")
    client = Client.of(arguments)
    kind = "reservation" if arguments.flag("reservations") else None
    reply = client.get(
        "/v1/idle",
        {
            "user": me(client) if arguments.flag("me") else arguments.joined("user"),
            "account": arguments.joined("account"),
            "gpu_type": arguments.joined("gpu-type"),
            "kind": "batch" if arguments.flag("batch") else kind,
        },
    )
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
        return DONE
    told: dict[str, Any] = reply.json()
    if arguments.form == "quiet":
        render.put("".join(f"{jobs.job_id(job)}\n" for job in told["jobs"]))
        return DONE
    head = () if arguments.flag("no-header") else HEADER
    rows = [_row(job, reply.now_s) for job in told["jobs"]]
    if rows:
        render.put(render.table(head, rows, render.terminal_width()))
    for wait in told["waiting"]:
        render.put(_waiting(wait, reply.now_s) + "\n")
    _note(told)
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


def _note(told: Mapping[str, Any]) -> None:
    """The thresholds, and the nodes without measurements."""
    if told["source"] is None:
        render.note(
            "odcctl: what GPUs do is not measured here, but for dev servers whose QOS looks for "
            f"idle ones{gpu_use.UNMEASURED}"
        )
    elif not told["jobs"]:
        minutes = round(told["idle_after_s"] / 60)
        limit = gpu_use.percent(told["idle_ratio"])
        render.note(f"odcctl: no GPU that is held was below {limit} for {minutes} minutes")


COMMAND = Command(
    name="idle",
    summary="Show GPUs that are held and rest: whose, since when, and who waits for such",
    usage="idle [OPTIONS]",
    notes=(
        "IDLE counts the GPUs of a job that have rested for 15 minutes (operators may set another "
        "time, and what counts as use), BUSY is the mean of all its GPUs, SINCE is when the first "
        "of them became idle, LOST GPU-H is the sum of their idle hours. Time without a "
        "measurement counts as use."
    ),
    options=(
        Option("me", None, None, "only mine"),
        Option("user", "u", "NAMES", "only of these users"),
        Option("account", "A", "NAMES", "only of these accounts"),
        Option("gpu-type", None, "TYPES", "only of these GPU types"),
        Option("reservations", None, None, "only reservations"),
        Option("batch", None, None, "only batch jobs"),
        Option("no-header", None, None, "leave the header line out"),
    ),
    example="odcctl idle --gpu-type h100\nodcctl idle --me --json",
    run=run,
)
