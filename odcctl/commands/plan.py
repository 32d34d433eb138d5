"""odcctl plan: who is promised when and where, what moved a promise, when a job would start."""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from odcctl.exits import DONE, REFUSED
from odcctl.http.client import Client
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.hostlist import fold
from odcctl.text.jobs import expected_start, gpus, job_id, local_times
from odcctl.text.time_args import AS_OF, moment_of, past

HEADER = ("JOB", "USER", "PARTITION", "GPUS", "LIMIT", "PLANNED", "LIKELY", "NODES")
MOVES = ("JOB", "USER", "CHANGE", "PLANNED", "NOW", "PASS", "BECAUSE")
GANTT_HOURS = 24
WHAT_IF = ("GPUS", "TYPE", "LIMIT", "STARTS", "NODES", "DELAYS")
COLUMNS = {
    "nodes": "COUNT", "cpus-per-task": "CPUS", "mem": "MEM", "qos": "QOS", "account": "ACCOUNT"
}  # fmt: skip
# Several values, by commas, are alternatives of each other. Those of -p are sbatch's: any of them.
GRID = (
    Option("nodes", "N", "COUNTS", "what-if: so many nodes: 1,2,4; 2-4 for any number between"),
    Option("gres", None, "GRES", "what-if: GPUs per node: gpu:h100:8,gpu:l4:4"),
    Option("gpus-per-node", None, "GPUS", "what-if: GPUs per node: 4,8 or h100:4"),
    Option("gpus", "G", "GPUS", "what-if: GPUs in all: 1,8,16"),
    Option("time", "t", "TIMES", "what-if: time limits: 1h,4h,1-00:00:00"),
    Option("cpus-per-task", "c", "COUNTS", "what-if: CPUs per node: 8,64"),
    Option("mem", None, "SIZES", "what-if: memory per node: 64G,256G"),
    Option("qos", "q", "NAMES", "what-if: under each QOS"),
    Option("account", "A", "NAMES", "what-if: of each account"),
)
REST = (
    Option("partition", "p", "NAMES", "what-if: in any of these partitions"),
    Option("constraint", "C", "FEATURES", "what-if: nodes with these features"),
    Option("nodelist", "w", "NODES", "what-if: on these nodes"),
    Option("exclude", "x", "NODES", "what-if: not on these nodes"),
    Option("exclusive", None, None, "what-if: whole nodes"),
    Option("licenses", "L", "NAMES", "what-if: with all of these licences"),
)
_SPAN = re.compile(r"(\d{1,6})([smhdw])")
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def run(arguments: Arguments) -> int:
    asked = [o for o in ("what-if", "diff", "as-of", "gantt") if arguments.flag(o)]
    if len(asked) > 1:
        arguments.command.wrong(f"--{asked[0]} and --{asked[1]} exclude each other")
    if not arguments.flag("what-if"):
        for option in (*GRID, *REST):
            if arguments.flag(option.long):
                arguments.command.wrong(f"--{option.long} needs --what-if")
    for name in ("hours", "node", "type"):
        if arguments.flag(name) and not arguments.flag("gantt"):
            arguments.command.wrong(f"--{name} needs --gantt")
    if arguments.flag("diff"):
        return _diff(arguments)
    if arguments.words:
        arguments.command.wrong(f'"{arguments.words[0]}" is one word too many')
    if arguments.flag("gantt"):
        return _gantt(arguments)
    return _what_if(arguments) if arguments.flag("what-if") else _show(arguments)


def _put(arguments: Arguments, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    head = () if arguments.flag("no-header") else header
    render.put(render.table(head, rows, render.terminal_width()))


def _show(arguments: Arguments) -> int:
    reply = Client.of(arguments).get("/v1/plan", {"as_of": past(arguments, "as-of")})
    jobs: list[dict[str, Any]] = reply.json()["jobs"]
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put("".join(f"{job['id']}\n" for job in jobs))
    else:
        rows = [
            (
                job_id(job), render.clean(job["user"]), job["partition"] or "-",
                gpus({**job, "state": "PENDING"}), render.limit(job["time_limit_s"]),
                _at(job["planned_start_at"], reply.now_s) or "not in sight",
                expected_start(job, reply.now_s)[0] or "-", fold(job["node_names"]) or "-",
            )
            for job in jobs
        ]  # fmt: skip
        _put(arguments, HEADER, rows)
    return DONE


def _gantt(arguments: Arguments) -> int:
    """All pages; as JSON one answer with the nodes of all of them."""
    from odcctl.text.gantt import draw

    hours = arguments.number("hours", GANTT_HOURS)
    params = {
        "hours": hours, "node": arguments.joined("node"), "gpu_type": arguments.joined("type"),
        "limit": 1000,
    }  # fmt: skip
    client = Client.of(arguments)
    told: dict[str, Any] = client.get("/v1/plan/gantt", params).json()
    following = told["next"]
    while following is not None:
        more: dict[str, Any] = client.get("/v1/plan/gantt", {**params, "cursor": following}).json()
        told["nodes"] += more["nodes"]
        following = more["next"]
    told["next"] = None
    if arguments.form == "json":
        render.put(json.dumps(told) + "\n")
    elif arguments.form == "quiet":
        jobs = {bar["job_id"] for node in told["nodes"] for bar in node["bars"] if bar["job_id"]}
        render.put("".join(f"{job}\n" for job in sorted(jobs)))
    else:
        blocks = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        lines = draw(told, render.terminal_width() or _columns_told(), blocks=blocks)
        render.put("\n".join(lines) + "\n")
    return DONE


def _columns_told() -> int | None:
    """COLUMNS, which sets a width also when the output is no terminal."""
    text = os.environ.get("COLUMNS", "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _diff(arguments: Arguments) -> int:
    if not 1 <= len(arguments.words) <= 2:
        arguments.command.wrong("--diff takes two passes or times, or one to compare with now")
    ends = [
        word if word.isdecimal() else moment_of(word) or arguments.command.wrong(
            f'"{word}" is neither a pass nor a time such as 2h or 2026-07-01T12:00'
        )
        for word in arguments.words
    ]  # fmt: skip
    reply = Client.of(arguments).get("/v1/plan/diff", dict(zip(("from", "to"), ends, strict=False)))
    answer: dict[str, Any] = reply.json()
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
        return DONE
    if arguments.form == "quiet":
        render.put("".join(f"{job['id']}\n" for job in answer["jobs"]))
        return DONE
    rows: list[tuple[str, ...]] = []
    for job in answer["jobs"]:
        head = (
            str(job["id"]),
            render.clean(job["user"]),
            job["change"],
            *(
                "-" if job["change"] in nowhere else _at(job[end], reply.now_s) or "not in sight"
                for end, nowhere in (("from", ("new",)), ("to", ("gone", "started")))
            ),
        )
        for move in job["moves"] or [{"pass_id": None, "text": "-"}]:
            rows.append(
                (*head, str(move["pass_id"] or "-"), local_times(str(move["text"]), reply.now_s))
            )
            head = ("", "", "", "", "")
    _put(arguments, MOVES, rows)
    first, last = answer["from"], answer["to"]
    render.note(
        f"from pass {first['pass_id']} ({render.when(first['at'])}) "
        f"to pass {last['pass_id']} ({render.when(last['at'])})"
    )
    return DONE


def _what_if(arguments: Arguments) -> int:
    argv = [list(itertools.chain(*words)) for words in itertools.product(*_axes(arguments))]
    reply = Client.of(arguments).post("/v1/plan/what-if", {"argv": argv})
    answer: dict[str, Any] = reply.json()
    jobs: list[dict[str, Any]] = answer["jobs"]
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put("".join(f"{job['start_at'] or '-'}\n" for job in jobs))
    else:
        columns = _columns(arguments)
        rows: list[tuple[str, ...]] = []
        notes: list[str] = []
        for words, job in zip(argv, jobs, strict=True):
            asked = " ".join(word.removeprefix("--") for word in words)
            if (refused := job["refused"]) is not None:
                notes.append(f"refused: {asked}: {local_times(refused['message'], reply.now_s)}")
                if refused["hint"]:
                    notes.append(f"  {local_times(refused['hint'], reply.now_s)}")
                continue
            if job["start_at"] is None and not job["limit"]:
                notes.append(f"{asked}: {local_times(job['text'], reply.now_s)}")
            extra = [next(w.partition("=")[2] for w in words if w.startswith(f"--{name}="))
                     for name in columns]  # fmt: skip
            rows.append((*extra, *_alternative(job, answer["at"], reply.now_s)))
        if rows:
            _put(arguments, (*columns.values(), *WHAT_IF), rows)
        for line in notes:
            render.note(line)
    return DONE if any(job["refused"] is None for job in jobs) else REFUSED


def _columns(arguments: Arguments) -> dict[str, str]:
    """The options that distinguish alternatives with equal GPUS, TYPE and LIMIT."""
    values = {
        option.long: (arguments.joined(option.long) or "").split(",")
        for option in GRID
        if arguments.flag(option.long)
    }
    told = {"time", "gres", "gpus", "gpus-per-node"}
    if told.intersection(values).difference({"time"}) and all(
        word.isdecimal() for word in values.get("nodes", ())
    ):
        told.add("nodes")
    return {
        name: COLUMNS[name]
        for name, words in values.items()
        if name not in told and (len(words) > 1 or name in ("qos", "account"))
    }


def _axes(arguments: Arguments) -> list[list[list[str]]]:
    """Per option, the words of each of its alternatives; times vary fastest."""
    axes: list[list[list[str]]] = []
    for option in sorted(GRID, key=lambda option: option.long == "time"):
        text = arguments.joined(option.long)
        if text is None:
            continue
        values = [value for value in text.split(",") if value]
        if not values:
            arguments.command.wrong(f"--{option.long} is empty")
        if option.long == "time":
            values = [_limit(value) for value in values]
        axes.append([[f"--{option.long}={value}"] for value in values])
    for option in REST:
        if arguments.flag(option.long):
            value = arguments.joined(option.long)
            axes.append([[f"--{option.long}={value}" if option.value else f"--{option.long}"]])
    return axes


def _limit(text: str) -> str:
    """sbatch's time limit; it does not know 90s, 45m, 4h, 2d and 1w."""
    span = _SPAN.fullmatch(text)
    if span is None:
        return text
    minutes, seconds = divmod(int(span[1]) * _UNIT_S[span[2]], 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _alternative(job: Mapping[str, Any], at: str, now_s: float) -> tuple[str, ...]:
    start = job["start_at"]
    if start is None:
        starts = f"limit {job['limit']}" if job["limit"] else "not in sight"
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


COMMAND = Command(
    name="plan",
    summary="Show whom the last pass promised a start, what moved a promise, and what-if",
    usage=(
        "plan [--as-of TIME] | plan --gantt | plan --diff A [B] | plan --what-if [-t 1h,4h] ..."
    ),
    words=(0, 2),
    notes=(
        "PLANNED is the latest moment at which a job starts, LIKELY when it should. --diff takes "
        "passes (their numbers) or times, and names the event that moved each planned start. "
        "--what-if takes sbatch's options; values parted by commas are alternatives, and all that "
        "they combine to are planned, each as if it alone were submitted now. Nothing is."
    ),
    options=(
        AS_OF,
        Option("diff", None, None, "whose planned starts moved between two passes or times"),
        Option("gantt", None, None, "draw it: what runs, is planned and is booked on each node"),
        Option("hours", None, "N", "gantt: how far ahead, 1 to 744; default 24"),
        Option("node", None, "NAMES", "gantt: only these nodes, by commas"),
        Option("type", None, "TYPES", "gantt: only nodes of these GPU types"),
        Option("what-if", None, None, "when such jobs would start, and whom they would delay"),
        *GRID,
        *REST,
        Option("no-header", None, None, "leave the header line out"),
    ),
    example=(
        "odcctl plan\n"
        "odcctl plan --gantt --hours 12\n"
        "odcctl plan --diff 2h\n"
        "odcctl plan --what-if -N 1,2,4 --gres gpu:h100:8 -t 1h,4h"
    ),
    run=run,
)
