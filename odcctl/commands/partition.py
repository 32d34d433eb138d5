"""odcctl partition list | show | create | edit | delete: nodes, limits, order of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Listing, Verb, new_app
from odcctl.cli.params import (
    Limits,
    PlanDepth,
    depth_text,
    duration,
    joined,
    limits_of,
    number_or_none,
)
from odcctl.exits import DONE
from odcctl.http.client import quote
from odcctl.text import render
from odcctl.text.hostlist import fold, unfold
from odcctl.text.limit_args import text_of

HEADER = (
    "PARTITION", "STATE", "POLICY", "DEPTH", "PLACEMENT", "TIER", "LIMIT", "GPUS", "NODES",
)  # fmt: skip
CREATE = "odcctl partition create urgent --all-nodes --tier 2 --policy fifo"
EDIT = "odcctl partition edit main --placement spread --policy wfp3"

app = new_app(
    Actions,
    "Manage partitions: their order, placement, limits and nodes.\n\n"
    "Only operators can change partitions. A * marks the default one. Partitions that share nodes "
    "need different tiers or the same policy; otherwise their jobs would have no common order.",
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="the partition", autocompletion=complete.partitions)
]

Policy = Annotated[
    str | None,
    typer.Option(
        "--policy", metavar="NAME", autocompletion=complete.policies,
        help="the order of its jobs; `odcctl policy list` lists policies",
    ),
]  # fmt: skip
Placement = Annotated[
    str | None,
    typer.Option(
        "--placement", metavar="FORM", autocompletion=lambda: ["pack", "spread"],
        help="pack: the fullest node that fits; spread: the emptiest",
    ),
]  # fmt: skip
Tier = Annotated[
    int | None,
    typer.Option(
        "--tier", metavar="N",
        help="among partitions that share nodes, the highest is served first",
    ),
]  # fmt: skip
State = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="STATE", help="UP, DOWN (jobs wait), DRAIN (accepts no jobs) or INACTIVE"
    ),
]  # fmt: skip
Default = Annotated[
    bool, typer.Option("--default", help="make it the partition of jobs that name none")
]  # fmt: skip
MaxTime = Annotated[
    str | None,
    typer.Option(
        "--max-time", metavar="TIME", parser=duration,
        help="the maximum time limit, as for submit --time, or UNLIMITED",
    ),
]  # fmt: skip
DefaultTime = Annotated[
    str | None,
    typer.Option(
        "--default-time", metavar="TIME", parser=duration,
        help="the time limit of jobs that give none"
    ),
]  # fmt: skip
MaxNodes = Annotated[
    str | None,
    typer.Option(
        "--max-nodes", metavar="N", help="the maximum number of nodes of one job; none: no limit"
    ),
]  # fmt: skip
MemPerCpu = Annotated[
    str | None,
    typer.Option(
        "--mem-per-cpu", metavar="MIB",
        help="the memory of jobs that give none; none: the node's share",
    ),
]  # fmt: skip
Nodes = Annotated[
    list[str] | None,
    typer.Option(
        "--nodes", metavar="NAMES", help="its nodes, for example gpu-[01-03]",
        autocompletion=complete.nodes,
    ),
]  # fmt: skip
AllNodes = Annotated[
    bool, typer.Option("--all-nodes", help="all nodes, including future ones")
]  # fmt: skip


@app.command("list", cls=Listing, epilog="odcctl partition list")
def list_partitions(ctx: typer.Context) -> int:
    """List the partitions."""
    call = Call.of(ctx)
    reply = call.client().get("/v1/partitions")
    found: list[dict[str, Any]] = reply.json()["partitions"]
    return call.put_list(reply, (one["name"] for one in found), HEADER, [_row(p) for p in found])


@app.command(cls=Verb, epilog="odcctl partition show main")
def show(ctx: typer.Context, name: Name) -> int:
    """Show all details of a partition."""
    call = Call.of(ctx)
    reply = call.client().get(f"/v1/partitions/{quote(name)}")
    if call.form != "table":
        return call.put_outcome(reply, str(reply.json()["name"]), "")
    render.put(describe(reply.json()))
    return DONE


@app.command("create", cls=Verb, epilog=CREATE, help="Create a partition.")
@app.command("edit", cls=Verb, epilog=EDIT, help="Change a partition.")
def create_or_edit(
    ctx: typer.Context,
    name: Name,
    policy: Policy = None,
    placement: Placement = None,
    tier: Tier = None,
    plan_depth: PlanDepth = None,
    state: State = None,
    default: Default = False,
    max_time: MaxTime = None,
    default_time: DefaultTime = None,
    max_nodes: MaxNodes = None,
    mem_per_cpu: MemPerCpu = None,
    limit: Limits = None,
    nodes: Nodes = None,
    all_nodes: AllNodes = False,
) -> int:  # fmt: skip
    call = Call.of(ctx)
    # The daemon reads the times.
    given = {
        "policy": policy, "placement": placement, "tier": tier, "plan_depth": plan_depth,
        "state": state and state.upper(), "is_default": default or None,
        "max_time_limit": max_time, "default_time_limit": default_time,
        "all_nodes": all_nodes or None,
    }  # fmt: skip
    terms: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    if max_nodes is not None:
        terms["max_nodes"] = number_or_none(call, "max-nodes", max_nodes)
    if mem_per_cpu is not None:
        terms["def_mem_per_cpu_mib"] = number_or_none(call, "mem-per-cpu", mem_per_cpu)
    if limit is not None:
        terms["limits"] = limits_of(call, limit)
    if nodes is not None:
        terms["node_list"] = unfold(joined(nodes) or "")
    if ctx.info_name == "create":
        reply = call.client().post("/v1/partitions", {"name": name, **terms})
        return call.put_outcome(reply, name, f"partition {name} created")
    if not terms:
        call.wrong("name at least one setting to change")
    reply = call.client().patch(f"/v1/partitions/{quote(name)}", terms)
    return call.put_outcome(reply, name, f"partition {name} changed")


@app.command(cls=Verb, epilog="odcctl partition delete urgent")
def delete(ctx: typer.Context, name: Name) -> int:
    """Delete a partition."""
    call = Call.of(ctx)
    reply = call.client().delete(f"/v1/partitions/{quote(name)}")
    return call.put_outcome(reply, name, f"partition {name} deleted")


def describe(partition: Mapping[str, Any]) -> str:
    pairs = [
        ("state", partition["state"]),
        ("default", "yes" if partition["is_default"] else ""),
        ("policy", partition["policy"]),
        ("plan depth", depth_text(partition["plan_depth"])),
        ("placement", partition["placement"]),
        ("tier", str(partition["tier"])),
        ("time limit", render.limit(partition["max_time_limit_s"])),
        ("default limit", render.duration(partition["default_time_limit_s"])),
        ("nodes a job", str(partition["max_nodes"] or "")),
        ("memory a CPU", f"{partition['def_mem_per_cpu_mib']} MiB"
         if partition["def_mem_per_cpu_mib"] else ""),
        ("limits", text_of(partition["limits"])),
        ("nodes", fold(partition["node_names"])),
        ("has", "all nodes" if partition["all_nodes"] else ""),
        ("GPUs", f"{partition['gpus_free']} of {partition['gpus']} free"),
        ("types", ", ".join(partition["gpu_types"])),
    ]  # fmt: skip
    return render.block(f"partition {partition['name']}", pairs)


def _row(partition: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        partition["name"] + ("*" if partition["is_default"] else ""), partition["state"],
        partition["policy"], depth_text(partition["plan_depth"]), partition["placement"],
        str(partition["tier"]), render.limit(partition["max_time_limit_s"]),
        f"{partition['gpus'] - partition['gpus_free']}/{partition['gpus']}",
        fold(partition["node_names"]),
    )  # fmt: skip
