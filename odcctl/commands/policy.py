"""odcctl policy list | show | create | edit | delete: how jobs are ordered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Listing, Verb, new_app
from odcctl.cli.params import PlanDepth, depth_text, duration
from odcctl.exits import DONE
from odcctl.http.client import quote
from odcctl.text import render

HEADER = ("POLICY", "ORDERING", "LONGEST WAIT", "BACKFILL", "DEPTH", "PARTITIONS")

app = new_app(
    Actions,
    "Manage policies, which set the order of jobs.\n\n"
    "Each partition uses one: partition edit NAME --policy POLICY. Only operators can change them. "
    "The orderings are fifo, multifactor, sjf, saf, wfp3 and odc.",
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="the policy", autocompletion=complete.policies)
]
Ordering = Annotated[
    str | None,
    typer.Option("--ordering", metavar="NAME", help="the formula that orders jobs"),
]
MaxWait = Annotated[
    str | None,
    typer.Option(
        "--max-wait", metavar="TIME", parser=duration,
        help="jobs that have waited longer move to the front; none: never",
    ),
]  # fmt: skip
Backfill = Annotated[
    str | None,
    typer.Option(
        "--backfill", metavar="ORDER",
        help="the order of backfill candidates: order (as the queue), fifo (by queue time), "
        "sjbf (shortest job first) or safbf (smallest area first)",
    ),
]  # fmt: skip


@app.command("list", cls=Listing, epilog="odcctl policy list")
def list_policies(ctx: typer.Context) -> int:
    """List the policies."""
    call = Call.of(ctx)
    reply = call.client().get("/v1/policies")
    found: list[dict[str, Any]] = reply.json()["policies"]
    return call.put_list(reply, (one["name"] for one in found), HEADER, [_row(p) for p in found])


@app.command(cls=Verb, epilog="odcctl policy show odc")
def show(ctx: typer.Context, name: Name) -> int:
    """Show all details of a policy."""
    call = Call.of(ctx)
    reply = call.client().get(f"/v1/policies/{quote(name)}")
    if call.form != "table":
        return call.put_outcome(reply, str(reply.json()["name"]), "")
    row = _row(reply.json())
    keys = ("ordering", "longest wait", "backfill", "plan depth", "partitions")
    render.put(render.block(f"policy {row[0]}", zip(keys, row[1:], strict=True)))
    return DONE


@app.command(cls=Verb, epilog="odcctl policy create short-first --ordering sjf --max-wait 2-0")
def create(
    ctx: typer.Context,
    name: Name,
    ordering: Ordering = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like", metavar="POLICY", help="copy the settings of this policy",
            autocompletion=complete.policies,
        ),
    ] = None,
    max_wait: MaxWait = None,
    backfill: Backfill = None,
    plan_depth: PlanDepth = None,
) -> int:  # fmt: skip
    """Create a policy."""
    call = Call.of(ctx)
    if not like and ordering is None:
        call.wrong("create requires --ordering or --like")
    terms = _terms(ordering, max_wait, backfill, plan_depth)
    reply = call.client().post("/v1/policies", {"name": name, "like": like, **terms})
    return call.put_outcome(reply, name, f"policy {name} created")


@app.command(cls=Verb, epilog="odcctl policy edit odc --plan-depth 10")
def edit(
    ctx: typer.Context,
    name: Name,
    ordering: Ordering = None,
    max_wait: MaxWait = None,
    backfill: Backfill = None,
    plan_depth: PlanDepth = None,
) -> int:
    """Change a policy."""
    call = Call.of(ctx)
    terms = _terms(ordering, max_wait, backfill, plan_depth)
    if not terms:
        call.wrong("name at least one setting to change")
    reply = call.client().patch(f"/v1/policies/{quote(name)}", terms)
    return call.put_outcome(reply, name, f"policy {name} changed")


@app.command(cls=Verb, epilog="odcctl policy delete short-first")
def delete(ctx: typer.Context, name: Name) -> int:
    """Delete a policy."""
    call = Call.of(ctx)
    reply = call.client().delete(f"/v1/policies/{quote(name)}")
    return call.put_outcome(reply, name, f"policy {name} deleted")


def _terms(
    ordering: str | None, max_wait: str | None, backfill: str | None, plan_depth: int | None
) -> dict[str, Any]:
    """The given options, in the API's format; the daemon parses the time."""
    given = {
        "ordering": ordering, "backfill": backfill, "plan_depth": plan_depth,
        "max_wait": None if max_wait == "none" else max_wait,
    }  # fmt: skip
    terms: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    return {**terms, "max_wait_s": None} if max_wait == "none" else terms


def _row(policy: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        policy["name"], policy["ordering"], render.duration(policy["max_wait_s"]),
        policy["backfill"], depth_text(policy["plan_depth"]), ", ".join(policy["partitions"]),
    )  # fmt: skip
