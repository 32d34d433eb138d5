"""odcctl nodes: the nodes, and how much of each is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.cli.params import AsOf, Partitions, joined
from odcctl.exits import DONE
from odcctl.listing import refuse_unknown
from odcctl.text import render
from odcctl.text.hostlist import unfold

STATES = {"IDLE", "MIXED", "ALLOCATED", "DRAIN", "DRAINING", "DOWN"}
GROUPS_HEADER = (
    "GROUP", "TYPE", "STATE", "NODES", "DESIRED", "MIN", "MAX", "JOBS / FAILURE",
)  # fmt: skip
TOPOLOGY_HEADER = ("NODE", "TYPE", "STATE", "GPUS", "ZONE", "GROUP", "TOPOLOGY")
FREE_HEADER = (
    "TYPE", "NODES", "GPUS", "FREE", "WHOLE NODES", "FRAGMENTED", "FIT 1", "FIT 2", "FIT 4",
    "FIT 8", "LARGEST GANG",
)  # fmt: skip
HEADER = ("NODE", "TYPE", "STATE", "GPUS", "CPUS", "MEMORY", "PARTITIONS", "JOBS / REASON")

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME...", help="a node, or a list such as gpu-[01-03]",
        autocompletion=complete.nodes,
    ),
]  # fmt: skip
State = Annotated[
    list[str] | None,
    typer.Option(
        "--state", "-t", metavar="STATES",
        help="only nodes in these states, for example IDLE,DRAIN",
        autocompletion=lambda: sorted(STATES),
    ),
]  # fmt: skip
GpuType = Annotated[
    list[str] | None,
    typer.Option(
        "--type", metavar="TYPES", help="only nodes of these GPU types, for example h100",
        autocompletion=complete.gpu_types,
    ),
]  # fmt: skip
Topology = Annotated[
    bool,
    typer.Option("--topology", help="show their locations: zone, placement group, network"),
]  # fmt: skip
Fragmentation = Annotated[
    bool, typer.Option("--fragmentation", help="show how the free GPUs are distributed, per type")
]  # fmt: skip
Groups = Annotated[
    bool,
    typer.Option("--groups", help="show the elastic groups, whose number of nodes odc changes"),
]  # fmt: skip


app = new_app()


@app.command(cls=Listing, epilog="odcctl nodes --type h100\nodcctl nodes --fragmentation")
def nodes(
    ctx: typer.Context,
    names: Names = None,
    partition: Partitions = None,
    state: State = None,
    gpu_type: GpuType = None,
    topology: Topology = False,
    fragmentation: Fragmentation = False,
    groups: Groups = False,
    as_of: AsOf = None,
) -> int:  # fmt: skip
    """Show the nodes and their usage.

    GPUS, CPUS and MEMORY are used/all. GROUP is the placement group, and TOPOLOGY the network
    layers from the outermost to the node's block. FRAGMENTED is the share of free GPUs that are
    on partly used nodes, FIT n the number of jobs with n GPUs on one node that could start, and
    LARGEST GANG the number of whole nodes that one job could get. With --groups, NODES is the
    number of nodes that are ready, and JOBS are the pending jobs for which more were requested.
    """
    call, types = Call.of(ctx), _split(gpu_type)
    if fragmentation or groups:
        own = "fragmentation" if fragmentation else "groups"
        for option, value in (
            ("as-of", as_of), ("partition", partition), ("state", state), ("topology", topology),
            ("groups", groups and fragmentation),
        ):  # fmt: skip
            if value:
                call.wrong(f"--{own} and --{option} cannot be used together")
        if names:
            call.wrong(f"--{own} covers all nodes; --type selects GPU types")
        return _fragmentation(call, types) if fragmentation else _groups(call, types)
    reply = call.client().get("/v1/nodes", {"as_of": as_of})
    answer = reply.json()
    node_names = {name for word in names or () for name in unfold(word)}
    states = {word.upper() for word in _split(state)}
    chosen = _choose(call, answer["nodes"], node_names, states, _split(partition), types)
    if call.form == "json":
        render.put_json({**answer, "nodes": chosen})
    elif call.form == "quiet":
        call.put_ids(node["name"] for node in chosen)
    elif topology:
        call.put_table(TOPOLOGY_HEADER, [_place(node) for node in chosen])
    else:
        call.put_table(HEADER, [_row(node, reply.now_s) for node in chosen])
    return DONE


def _choose(
    call: Call, every: list[dict[str, Any]], names: set[str], states: set[str],
    partitions: set[str], types: set[str],
) -> list[dict[str, Any]]:  # fmt: skip
    """The nodes that fit all filters. A filter that names what does not exist is refused."""
    if missing := sorted(names - {node["name"] for node in every}):
        call.wrong(f'node "{missing[0]}" does not exist')
    if unknown := sorted(states - STATES):
        call.wrong(f'"{unknown[0]}" is not a state: {", ".join(sorted(STATES))}')
    if partitions - {name for node in every for name in node["partitions"]}:
        there = call.client().get("/v1/partitions").json()["partitions"]
        refuse_unknown("partition", partitions, (one["name"] for one in there))
    refuse_unknown("type", types, (node["gpu_type"] for node in every))
    return [
        node for node in every
        if (not names or node["name"] in names)
        and (not states or node["state"].upper() in states)
        and (not partitions or partitions & set(node["partitions"]))
        and (not types or node["gpu_type"] in types)
    ]  # fmt: skip


def _fragmentation(call: Call, names: set[str]) -> int:
    """Print how free GPUs are spread over the nodes, one line per type."""
    answer = call.client().get("/v1/cluster/fragmentation").json()
    refuse_unknown("type", names, (kind["gpu_type"] for kind in answer["types"]))
    types = [kind for kind in answer["types"] if not names or kind["gpu_type"] in names]
    if call.form == "json":
        render.put_json({**answer, "types": types})
    elif call.form == "quiet":
        call.put_ids(kind["gpu_type"] for kind in types)
    else:
        call.put_table(FREE_HEADER, [_free(kind) for kind in types])
    return DONE


def _groups(call: Call, types: set[str]) -> int:
    answer = call.client().get("/v1/node-groups").json()
    refuse_unknown("type", types, (one["gpu_type"] for one in answer["groups"]))
    found = [one for one in answer["groups"] if not types or one["gpu_type"] in types]
    if call.form == "json":
        render.put_json({**answer, "groups": found})
    elif call.form == "quiet":
        call.put_ids(one["name"] for one in found)
    else:
        call.put_table(GROUPS_HEADER, [_group(one) for one in found])
    return DONE


def _group(one: Mapping[str, Any]) -> tuple[str, ...]:
    jobs = ",".join(map(str, one["jobs"]))
    return (
        one["name"], one["gpu_type"], one["state"], str(one["nodes"]), str(one["desired_nodes"]),
        str(one["min_nodes"]), str(one["max_nodes"]),
        "; ".join(filter(None, (jobs, one["failure"]))) or "-",
    )  # fmt: skip


def _free(kind: Mapping[str, Any]) -> tuple[str, ...]:
    share, fits = kind["fragmented"], kind["fits"]
    return (
        kind["gpu_type"], str(kind["nodes"]), str(kind["gpus"]), str(kind["gpus_free"]),
        str(kind["nodes_whole"]), "-" if share is None else f"{share:.0%}",
        *(str(fits[size]) for size in ("1", "2", "4", "8")), str(kind["largest_gang"]),
    )  # fmt: skip


def _place(node: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        node["name"], node["gpu_type"], node["state"], f"{node['gpus_used']}/{node['gpus']}",
        node["zone"] or "-", node["efa_domain"] or "-", "/".join(node["topology"]) or "-",
    )  # fmt: skip


def _split(values: Sequence[str] | None) -> set[str]:
    return set((joined(values) or "").split(",")) - {""}


def _row(node: Mapping[str, Any], now_s: float) -> tuple[str, ...]:
    running = " ".join(str(job) for job in node.get("jobs") or ())
    reason = render.clean(node.get("reason") or "")
    parts = [running, reason, _booked(node, now_s)]
    return (
        node["name"], node["gpu_type"], node["state"], f"{node['gpus_used']}/{node['gpus']}",
        f"{node['cpus_used']}/{node['cpus']}",
        f"{_gib(node['mem_used_mib'])}/{_gib(node['mem_mib'])}G",
        ",".join(node.get("partitions") or ()) or "-",
        " / ".join(part for part in parts if part),
    )  # fmt: skip


def _booked(node: Mapping[str, Any], now_s: float) -> str:
    now, then = node.get("booking"), node.get("next_booking")
    if now:
        return f"booked by {now['name']} until {render.clock(now['ends_at'], now_s)}"
    return f"booked by {then['name']} from {render.clock(then['starts_at'], now_s)}" if then else ""


def _gib(mib: int) -> str:
    return f"{mib / 1024:.0f}" if mib >= 10_240 or mib % 1024 == 0 else f"{mib / 1024:.1f}"
