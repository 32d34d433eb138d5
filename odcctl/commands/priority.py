"""odcctl priority: what makes up the priority of pending jobs, and the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.admin_actions import tell
from odcctl.exits import DONE
from odcctl.http.client import Client
from odcctl.options import Arguments, Command, Option
from odcctl.text import render

FACTORS = ("age", "size", "fairshare", "qos", "partition")
FILTERS = ("user", "account", "partition", "limit")
SETTINGS = ("set-weight", "set-max-age", "set-half-life")


def run(arguments: Arguments) -> int:
    if any(arguments.flag(option) for option in SETTINGS):
        return _set(arguments)
    params = {o: arguments.joined(o) or "" for o in FILTERS if arguments.flag(o)}
    if arguments.words:
        params["id"] = ",".join(arguments.words)
    reply = Client.of(arguments).get("/v1/priority", params or None)
    answer: dict[str, Any] = reply.json()
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put("".join(f"{job['id']}\n" for job in answer["jobs"]))
    else:
        _put_table(arguments, answer)
    return DONE


def _put_table(arguments: Arguments, answer: Mapping[str, Any]) -> None:
    which = "factors" if arguments.flag("factors") else "points"
    header = (
        "JOB", "USER", "ACCOUNT", "PARTITION", "PRIORITY", "AGE", "SIZE", "FAIRSHARE", "QOS",
        "TIER", "NICE",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = []
    if not arguments.flag("factors"):
        weights = answer["weights"]
        rows.append(("", "", "", "weights", "", *(str(weights[f]) for f in FACTORS), ""))
    for job in answer["jobs"]:
        parts = job[which]
        form = "{:.6f}" if arguments.flag("factors") else "{:.0f}"
        rows.append((
            str(job["id"]), render.clean(job["user"]), job["account"] or "-",
            job["partition"] or "-", str(job["priority"]),
            *(form.format(parts[f]) for f in FACTORS), str(job["nice"]),
        ))  # fmt: skip
    head = () if arguments.flag("no-header") else header
    render.put(render.table(head, rows, render.terminal_width()))
    shown = {str(job["id"]) for job in answer["jobs"]}
    filtered = answer["more"] or any(arguments.flag(option) for option in FILTERS)
    for word in arguments.words:
        if word not in shown and not filtered:
            render.note(f"job {word} is not pending")
    if answer["more"]:
        render.note("there are more; say how many with --limit")
    others = sorted(
        {
            (job["partition"] or "-", job["policy"])
            for job in answer["jobs"]
            if job["ordering"] != "multifactor"
        }
    )
    for partition, policy in others:
        render.note(f"partition {partition} is ordered by policy {policy}, not by this priority")


def _set(arguments: Arguments) -> int:
    if arguments.words or any(arguments.flag(o) for o in (*FILTERS, "factors", "no-header")):
        arguments.command.wrong("settings are changed by themselves, without jobs and filters")
    body: dict[str, Any] = {}
    weights: dict[str, int] = {}
    for text in ",".join(arguments.given.get("set-weight", [])).split(","):
        if not text:
            continue
        factor, _, number = text.partition("=")
        if factor not in FACTORS or not number.removeprefix("-").isdecimal():
            arguments.command.wrong(f'--set-weight takes FACTOR=N, not "{text}"')
        weights[factor] = int(number)
    if weights:
        body["weights"] = weights
    for option, field in (("set-max-age", "max_age"), ("set-half-life", "half_life")):
        if arguments.flag(option):
            body[field] = arguments.value(option)
    reply = Client.of(arguments).patch("/v1/accounting", body)
    settings: dict[str, Any] = reply.json()
    told = ", ".join(f"{factor} {settings['weights'][factor]}" for factor in FACTORS)
    return tell(
        arguments, reply, "settings",
        f"weights: {told}; age counts up to {render.duration(settings['max_age_s'])}; "
        f"used time halves in {render.duration(settings['half_life_s'])}",
    )  # fmt: skip


COMMAND = Command(
    name="priority",
    summary="Show what makes up the priority of pending jobs, and change the weights",
    usage="priority [OPTIONS] [ID...] | priority --set-weight FACTOR=N",
    words=(0, None),
    notes=(
        "Points are a factor, 0 to 1, times its weight; a priority is their sum less nice. It "
        "orders the jobs of partitions whose policy is multifactor. TIER is the factor of the "
        "partition. Operators change weights."
    ),
    options=(
        Option("user", "u", "NAMES", "only jobs of these users"),
        Option("account", "A", "NAMES", "only of these accounts"),
        Option("partition", "p", "NAMES", "only of these partitions"),
        Option("limit", "n", "N", "so many at most, the highest first; 1000 when not said"),
        Option("factors", None, None, "factors, 0 to 1, instead of points"),
        Option("no-header", None, None, "leave the header line out"),
        Option("set-weight", None, "F=N", "age, size, fairshare, qos or partition; repeatable"),
        Option("set-max-age", None, "TIME", "the age factor is 1 from here on: 7-00:00:00"),
        Option("set-half-life", None, "TIME", "used time counts half after this: 7-00:00:00"),
    ),
    example="odcctl priority --user ann\nodcctl priority --set-weight age=2000,qos=20000",
    run=run,
)
