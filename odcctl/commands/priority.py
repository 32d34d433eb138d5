"""odcctl priority: the parts of pending jobs' priorities, and the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.cli.params import Accounts, Partitions, Users, duration, joined
from odcctl.exits import DONE
from odcctl.text import render

FACTORS = ("age", "size", "fairshare", "qos", "partition")
HEADER = (
    "JOB", "USER", "ACCOUNT", "PARTITION", "PRIORITY", "AGE", "SIZE", "FAIRSHARE", "QOS", "TIER",
    "NICE",
)  # fmt: skip
EXAMPLE = "odcctl priority --user ann\nodcctl priority --set-weight age=2000,qos=20000"

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="only these jobs", autocompletion=complete.jobs),
]  # fmt: skip
Limit = Annotated[
    str | None,
    typer.Option(
        "--limit", "-n", metavar="N",
        help="how many jobs to list, the highest first; default 1000",
    ),
]  # fmt: skip
Factors = Annotated[
    bool, typer.Option("--factors", help="show factors from 0 to 1 instead of points")
]  # fmt: skip
SetWeight = Annotated[
    list[str] | None,
    typer.Option(
        "--set-weight", metavar="F=N",
        help="age, size, fairshare, qos or partition; repeatable",
    ),
]  # fmt: skip
SetMaxAge = Annotated[
    str | None,
    typer.Option(
        "--set-max-age", metavar="TIME", parser=duration,
        help="the wait at which the age factor reaches 1: 7-00:00:00",
    ),
]  # fmt: skip
SetHalfLife = Annotated[
    str | None,
    typer.Option(
        "--set-half-life", metavar="TIME", parser=duration,
        help="the half-life of used time: 7-00:00:00",
    ),
]  # fmt: skip


app = new_app()


@app.command(cls=Listing, epilog=EXAMPLE)
def priority(
    ctx: typer.Context,
    ids: Ids = None,
    user: Users = None,
    account: Accounts = None,
    partition: Partitions = None,
    limit: Limit = None,
    factors: Factors = False,
    set_weight: SetWeight = None,
    set_max_age: SetMaxAge = None,
    set_half_life: SetHalfLife = None,
) -> int:  # fmt: skip
    """Show the priority of pending jobs, factor by factor, and change the weights.

    Each column is a factor between 0 and 1 multiplied by its weight. The priority is their sum
    minus nice. It orders the jobs of partitions whose policy is multifactor. TIER is the factor
    of the partition. Only operators can change weights.
    """
    call = Call.of(ctx)
    filters = {
        "user": joined(user), "account": joined(account), "partition": joined(partition),
        "limit": limit,
    }  # fmt: skip
    params = {name: value for name, value in filters.items() if value is not None}
    if (set_weight, set_max_age, set_half_life) != (None, None, None):
        if ids or params or factors or not call.header:
            call.wrong("options that change settings cannot be combined with jobs or filters")
        return _set(call, set_weight or (), set_max_age, set_half_life)
    filtered = bool(params)
    if ids:
        params["id"] = ",".join(ids)
    reply = call.client().get("/v1/priority", params or None)
    answer: dict[str, Any] = reply.json()
    job_ids = [str(job["id"]) for job in answer["jobs"]]
    call.put_list(reply, job_ids, HEADER, _rows(call, answer, factors=factors))
    if call.form == "table":
        if not filtered and not answer["more"]:
            for job_id in ids or ():
                if job_id not in job_ids:
                    render.note(f"job {job_id} is not pending")
        _note(answer)
    return DONE


def _rows(call: Call, answer: Mapping[str, Any], *, factors: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    if not factors and call.form != "csv":
        weights = answer["weights"]
        rows.append(("", "", "", "weights", "", *(str(weights[f]) for f in FACTORS), ""))
    form = "{:.6f}" if factors else "{:.0f}"
    for job in answer["jobs"]:
        parts = job["factors" if factors else "points"]
        rows.append((
            str(job["id"]), render.clean(job["user"]), job["account"] or "-",
            job["partition"] or "-", str(job["priority"]),
            *(form.format(parts[f]) for f in FACTORS), str(job["nice"]),
        ))  # fmt: skip
    return rows


def _note(answer: Mapping[str, Any]) -> None:
    if answer["more"]:
        render.note("there are more jobs; use --limit to list them")
    others = {
        (job["partition"] or "-", job["policy"])
        for job in answer["jobs"]
        if job["ordering"] != "multifactor"
    }
    for partition, policy in sorted(others):
        render.note(f"partition {partition} is ordered by policy {policy}, not by this priority")


def _set(
    call: Call, set_weight: Sequence[str], max_age: str | None, half_life: str | None
) -> int:  # fmt: skip
    weights: dict[str, int] = {}
    for text in ",".join(set_weight).split(","):
        factor, _, number = text.partition("=")
        if text and (factor not in FACTORS or not number.removeprefix("-").isdecimal()):
            call.wrong(f'--set-weight takes FACTOR=N, not "{text}"')
        if text:
            weights[factor] = int(number)
    given = {"weights": weights or None, "max_age": max_age, "half_life": half_life}
    body = {field: value for field, value in given.items() if value is not None}
    reply = call.client().patch("/v1/accounting", body)
    settings: dict[str, Any] = reply.json()
    shown = ", ".join(f"{factor} {settings['weights'][factor]}" for factor in FACTORS)
    return call.put_outcome(
        reply, "settings",
        f"weights: {shown}; age counts up to {render.duration(settings['max_age_s'])}; "
        f"used time halves in {render.duration(settings['half_life_s'])}",
    )  # fmt: skip
