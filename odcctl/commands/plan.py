"""odcctl plan: planned starts, the events that moved them, and what-if."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.cli.params import AsOf, joined
from odcctl.commands import _plan_options as params
from odcctl.exits import DONE, REFUSED
from odcctl.text import render
from odcctl.text.durations import for_daemon
from odcctl.text.hostlist import fold
from odcctl.text.jobs import expected_start, gpus, job_id, local_times
from odcctl.text.time_args import moment_of

HEADER = ("JOB", "USER", "PARTITION", "GPUS", "LIMIT", "PLANNED", "EXPECTED", "NODES")
MOVES = ("JOB", "USER", "CHANGE", "PLANNED", "NOW", "PASS", "BECAUSE")
GANTT_HOURS = 24
WHAT_IF = ("GPUS", "TYPE", "LIMIT", "STARTS", "NODES", "DELAYS")
COLUMNS = {
    "nodes": "COUNT", "cpus-per-task": "CPUS", "mem": "MEM", "qos": "QOS", "account": "ACCOUNT"
}  # fmt: skip
GRID = ("nodes", "gres", "gpus-per-node", "gpus", "time", "cpus-per-task", "mem", "qos", "account")
"""Comma-separated values of these options are alternatives. In the others, such as -p, a comma has
sbatch's meaning."""
EXAMPLE = (
    "odcctl plan\nodcctl plan --gantt --hours 12\nodcctl plan --diff 2h\n"
    "odcctl plan --what-if -N 1,2,4 --gres gpu:h100:8 -t 1h,4h"
)

Job = Mapping[str, str | None]
"""The options of --what-if that were given: "" for a flag."""

app = new_app()


@app.command(cls=Listing, epilog=EXAMPLE)
def plan(
    ctx: typer.Context,
    ends: params.Ends = None,
    as_of: AsOf = None,
    diff: params.Diff = False,
    gantt: params.Gantt = False,
    hours: params.Hours = None,
    node: params.OnNodes = None,
    gpu_type: params.OfTypes = None,
    what_if: params.WhatIf = False,
    nodes: params.Nodes = None,
    gres: params.Gres = None,
    gpus_per_node: params.GpusPerNode = None,
    gpus: params.Gpus = None,
    time: params.Times = None,
    cpus_per_task: params.Cpus = None,
    mem: params.Mem = None,
    qos: params.Qos = None,
    account: params.Account = None,
    partition: params.Partition = None,
    constraint: params.Constraint = None,
    nodelist: params.NodeList = None,
    exclude: params.Exclude = None,
    exclusive: params.Exclusive = False,
    licenses: params.Licenses = None,
) -> int:
    """Show planned starts, the causes of changes, and what-if plans.

    PLANNED is the start if every job uses its whole time limit, EXPECTED the predicted start.
    --diff compares two passes (by number) or times, and names the event that moved each planned
    start. --what-if accepts sbatch's options. Values separated by commas are alternatives; every
    combination is planned as if it alone were submitted now. Nothing is submitted.
    """
    call = Call.of(ctx)
    job = {
        "nodes": joined(nodes), "gres": joined(gres), "gpus-per-node": joined(gpus_per_node),
        "gpus": joined(gpus), "time": joined(time), "cpus-per-task": joined(cpus_per_task),
        "mem": joined(mem), "qos": joined(qos), "account": joined(account),
        "partition": joined(partition), "constraint": joined(constraint),
        "nodelist": joined(nodelist), "exclude": joined(exclude),
        "exclusive": "" if exclusive else None, "licenses": joined(licenses),
    }  # fmt: skip
    call.exclude(what_if=what_if, diff=diff, as_of=as_of, gantt=gantt)
    _refuse_without(call, "what-if", what_if, job)
    _refuse_without(call, "gantt", gantt, {"hours": hours, "node": node, "type": gpu_type})
    if diff:
        return _diff(call, ends or ())
    if ends:
        call.wrong(f'unexpected argument "{ends[0]}"')
    if gantt:
        return _gantt(call, hours or GANTT_HOURS, joined(node), joined(gpu_type))
    return _what_if(call, job) if what_if else _show(call, as_of)


def _refuse_without(call: Call, mode: str, on: bool, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value is not None and not on:
            call.wrong(f"--{name} requires --{mode}")


def _show(call: Call, as_of: str | None) -> int:
    reply = call.client().get("/v1/plan", {"as_of": as_of})
    jobs: list[dict[str, Any]] = reply.json()["jobs"]
    rows = [
        (
            job_id(job), render.clean(job["user"]), job["partition"] or "-",
            gpus({**job, "state": "PENDING"}), render.limit(job["time_limit_s"]),
            _at(job["planned_start_at"], reply.now_s) or "unknown",
            expected_start(job, reply.now_s)[0] or "-", fold(job["node_names"]) or "-",
        )
        for job in jobs
    ]  # fmt: skip
    return call.put_list(reply, (job["id"] for job in jobs), HEADER, rows)


def _gantt(call: Call, hours: int, nodes: str | None, types: str | None) -> int:
    """Print the chart; as JSON one answer with the nodes of all pages."""
    from odcctl.text.gantt import draw

    query = {"hours": hours, "node": nodes, "gpu_type": types, "limit": 1000}
    client = call.client()
    whole: dict[str, Any] = client.get("/v1/plan/gantt", query).json()
    following = whole["next"]
    while following is not None:
        more: dict[str, Any] = client.get("/v1/plan/gantt", {**query, "cursor": following}).json()
        whole["nodes"] += more["nodes"]
        following = more["next"]
    whole["next"] = None
    if call.form == "json":
        render.put(json.dumps(whole) + "\n")
    elif call.form == "quiet":
        bars = (bar for node in whole["nodes"] for bar in node["bars"])
        call.put_ids(sorted({bar["job_id"] for bar in bars if bar["job_id"]}))
    elif call.form == "csv" or call.columns is not None:
        call.wrong("--gantt draws a picture and has no other output format")
    else:
        blocks = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        lines = draw(whole, render.terminal_width() or _columns_variable(), blocks=blocks)
        render.put("\n".join(lines) + "\n")
    return DONE


def _columns_variable() -> int | None:
    """The variable COLUMNS, which sets the width even if the output is not a terminal."""
    text = os.environ.get("COLUMNS", "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _diff(call: Call, given: Sequence[str]) -> int:
    if not 1 <= len(given) <= 2:
        call.wrong("--diff takes two passes or times, or one to compare with now")
    ends = [
        end if end.isdecimal() else moment_of(end) or call.wrong(
            f'"{end}" is neither a pass nor a time such as 2h or 2026-07-01T12:00'
        )
        for end in given
    ]  # fmt: skip
    query: dict[str, str | int | None] = dict(zip(("from", "to"), ends, strict=False))
    reply = call.client().get("/v1/plan/diff", query)
    answer: dict[str, Any] = reply.json()
    rows: list[tuple[str, ...]] = []
    for job in answer["jobs"]:
        head = (
            str(job["id"]),
            render.clean(job["user"]),
            job["change"],
            *(
                "-" if job["change"] in nowhere else _at(job[end], reply.now_s) or "unknown"
                for end, nowhere in (("from", ("new",)), ("to", ("gone", "started")))
            ),
        )
        for move in job["moves"] or [{"pass_id": None, "text": "-"}]:
            cause = local_times(str(move["text"]), reply.now_s)
            rows.append((*head, str(move["pass_id"] or "-"), cause))
            head = head if call.form == "csv" else ("", "", "", "", "")
    call.put_list(reply, (job["id"] for job in answer["jobs"]), MOVES, rows)
    if call.form == "table":
        first, last = answer["from"], answer["to"]
        render.note(
            f"from pass {first['pass_id']} ({render.when(first['at'])}) "
            f"to pass {last['pass_id']} ({render.when(last['at'])})"
        )
    return DONE


def _what_if(call: Call, job: Job) -> int:
    argv = [list(itertools.chain(*arguments)) for arguments in itertools.product(*_axes(call, job))]
    reply = call.client().post("/v1/plan/what-if", {"argv": argv})
    answer: dict[str, Any] = reply.json()
    jobs: list[dict[str, Any]] = answer["jobs"]
    if call.form == "json":
        call.put_reply(reply)
    elif call.form == "quiet":
        call.put_ids(one["start_at"] or "-" for one in jobs)
    else:
        columns = _columns(job)
        rows: list[tuple[str, ...]] = []
        notes: list[str] = []
        for arguments, one in zip(argv, jobs, strict=True):
            request = " ".join(argument.removeprefix("--") for argument in arguments)
            if (refused := one["refused"]) is not None:
                notes.append(f"refused: {request}: {local_times(refused['message'], reply.now_s)}")
                if refused["hint"]:
                    notes.append(f"  {local_times(refused['hint'], reply.now_s)}")
                continue
            if one["start_at"] is None and not one["limit"]:
                notes.append(f"{request}: {local_times(one['text'], reply.now_s)}")
            extra = [_value_of(name, arguments) for name in columns]
            rows.append((*extra, *_alternative(one, answer["at"], reply.now_s)))
        if rows:
            call.put_table((*columns.values(), *WHAT_IF), rows)
        for line in notes:
            render.note(line)
    return DONE if any(one["refused"] is None for one in jobs) else REFUSED


def _value_of(option: str, arguments: Sequence[str]) -> str:
    prefix = f"--{option}="
    return next(text.removeprefix(prefix) for text in arguments if text.startswith(prefix))


def _columns(job: Job) -> dict[str, str]:
    """The options that distinguish alternatives with equal GPUS, TYPE and LIMIT."""
    values = {name: (job[name] or "").split(",") for name in GRID if job[name] is not None}
    shown = {"time", "gres", "gpus", "gpus-per-node"}
    if shown.intersection(values).difference({"time"}) and all(
        count.isdecimal() for count in values.get("nodes", ())
    ):
        shown.add("nodes")
    return {
        name: COLUMNS[name]
        for name, alternatives in values.items()
        if name not in shown and (len(alternatives) > 1 or name in ("qos", "account"))
    }


def _axes(call: Call, job: Job) -> list[list[list[str]]]:
    """For each option, the arguments of each of its alternatives; times vary fastest."""
    axes: list[list[list[str]]] = []
    for name in sorted(GRID, key=lambda name: name == "time"):
        text = job[name]
        if text is None:
            continue
        values = [value for value in text.split(",") if value]
        if not values:
            call.wrong(f"--{name} is empty")
        if name == "time":
            values = [for_daemon(value) for value in values]
        axes.append([[f"--{name}={value}"] for value in values])
    for name, value in job.items():
        if name not in GRID and value is not None:
            axes.append([[f"--{name}={value}" if name != "exclusive" else "--exclusive"]])
    return axes


def _alternative(job: Mapping[str, Any], at: str, now_s: float) -> tuple[str, ...]:
    start = job["start_at"]
    if start is None:
        starts = f"limit {job['limit']}" if job["limit"] else "unknown"
    else:
        starts = "now" if render.moment(start) <= render.moment(at) else _at(start, now_s)
    each, count = job["gpus_per_node"], job["node_count"]
    delays = [
        f"{delay['job_id']} by "
        + render.duration(render.seconds_between(delay["from"], delay["to"]))
        if delay["to"]
        else f"{delay['job_id']} loses its planned start"
        for delay in job["delays"]
    ]
    delays += [f"{victim['job_id']} (preempted)" for victim in job["victims"]]
    return (
        "-" if not each else str(each) if count == 1 else f"{count}x{each}",
        job["gpu_type"] or "-", render.limit(job["time_limit_s"]), starts,
        fold(job["node_names"]) or "-", ", ".join(delays) or "-",
    )  # fmt: skip


def _at(text: str | None, now_s: float) -> str:
    return render.clock(text, now_s) if text else ""
