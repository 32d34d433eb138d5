"""odcctl nodes: the nodes, and how much of each is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.exits import DONE
from odcctl.http.client import Client
from odcctl.listing import refuse_unknown
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.hostlist import unfold
from odcctl.text.time_args import AS_OF, past

STATES = {"IDLE", "MIXED", "ALLOCATED", "DRAIN", "DRAINING", "DOWN"}
TOPOLOGY_HEADER = ("NODE", "TYPE", "STATE", "GPUS", "ZONE", "GROUP", "TOPOLOGY")
FREE_HEADER = (
    "TYPE", "NODES", "GPUS", "FREE", "WHOLE NODES", "FRAGMENTED", "FIT 1", "FIT 2", "FIT 4",
    "FIT 8", "LARGEST GANG",
)  # fmt: skip
HEADER = ("NODE", "TYPE", "STATE", "GPUS", "CPUS", "MEMORY", "PARTITIONS", "JOBS / REASON")


def run(arguments: Arguments) -> int:
    if arguments.flag("fragmentation"):
        if arguments.flag("as-of"):
            arguments.command.wrong("--fragmentation and --as-of exclude each other")
        return _fragmentation(arguments)
    reply = Client.of(arguments).get("/v1/nodes", {"as_of": past(arguments, "as-of")})
    answer = reply.json()
    every: list[dict[str, Any]] = answer["nodes"]
    known = {node["name"] for node in every}
    wanted = {name for word in arguments.words for name in unfold(word)}
    if missing := sorted(wanted - known):
        arguments.command.wrong(f'no node "{missing[0]}"')
    states = _split(arguments.joined("state"), upper=True)
    partitions = _split(arguments.joined("partition"))
    types = _split(arguments.joined("type"))
    if unheard := sorted(states - STATES):
        arguments.command.wrong(f'"{unheard[0]}" is not a state: {", ".join(sorted(STATES))}')
    if partitions - {name for node in every for name in node["partitions"]}:
        there = Client.of(arguments).get("/v1/partitions").json()["partitions"]
        refuse_unknown("partition", partitions, (one["name"] for one in there))
    refuse_unknown("type", types, (node["gpu_type"] for node in every))
    nodes = [
        node for node in every
        if (not wanted or node["name"] in wanted)
        and (not states or node["state"].upper() in states)
        and (not partitions or partitions & set(node["partitions"]))
        and (not types or node["gpu_type"] in types)
    ]  # fmt: skip
    if arguments.form == "json":
        render.put_json({**answer, "nodes": nodes})
    elif arguments.form == "quiet":
        render.put("".join(f"{node['name']}\n" for node in nodes))
    else:
        places = arguments.flag("topology")
        head = TOPOLOGY_HEADER if places else HEADER
        rows = [_place(node) if places else _row(node, reply.now_s) for node in nodes]
        head = () if arguments.flag("no-header") else head
        render.put(render.table(head, rows, render.terminal_width()))
    return DONE


def _fragmentation(arguments: Arguments) -> int:
    """How free GPUs lie on the nodes, a line per type."""
    for name in ("partition", "state", "topology"):
        if arguments.flag(name):
            arguments.command.wrong(f"--fragmentation and --{name} exclude each other")
    if arguments.words:
        arguments.command.wrong("--fragmentation covers all nodes; --type selects GPU types")
    answer = Client.of(arguments).get("/v1/cluster/fragmentation").json()
    wanted = _split(arguments.joined("type"))
    refuse_unknown("type", wanted, (kind["gpu_type"] for kind in answer["types"]))
    types = [kind for kind in answer["types"] if not wanted or kind["gpu_type"] in wanted]
    if arguments.form == "json":
        render.put_json({**answer, "types": types})
    elif arguments.form == "quiet":
        render.put("".join(f"{kind['gpu_type']}\n" for kind in types))
    else:
        head = () if arguments.flag("no-header") else FREE_HEADER
        render.put(render.table(head, [_free(kind) for kind in types], render.terminal_width()))
    return DONE


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


def _split(text: str | None, *, upper: bool = False) -> set[str]:
    return set((text.upper() if upper else text).split(",")) if text else set()


def _row(node: Mapping[str, Any], now_s: float) -> tuple[str, ...]:
    running = " ".join(str(job) for job in node.get("jobs") or ())
    reason = render.clean(node.get("reason") or "")
    told = [running, reason, _booked(node, now_s)]
    return (
        node["name"], node["gpu_type"], node["state"], f"{node['gpus_used']}/{node['gpus']}",
        f"{node['cpus_used']}/{node['cpus']}",
        f"{_gib(node['mem_used_mib'])}/{_gib(node['mem_mib'])}G",
        ",".join(node.get("partitions") or ()) or "-",
        " / ".join(part for part in told if part),
    )  # fmt: skip


def _booked(node: Mapping[str, Any], now_s: float) -> str:
    now, then = node.get("booking"), node.get("next_booking")
    if now:
        return f"booked by {now['name']} until {render.clock(now['ends_at'], now_s)}"
    return f"booked by {then['name']} from {render.clock(then['starts_at'], now_s)}" if then else ""


def _gib(mib: int) -> str:
    return f"{mib / 1024:.0f}" if mib >= 10_240 or mib % 1024 == 0 else f"{mib / 1024:.1f}"


COMMAND = Command(
    name="nodes",
    summary="Show the nodes, and how much of each is used",
    usage="nodes [NAME...] [OPTIONS]",
    words=(0, None),
    notes=(
        "NAME may be a list as gpu-[01-03]. GPUS, CPUS and MEMORY are used/all. GROUP is the "
        "placement group, TOPOLOGY the layers of the network from the outermost to the node's "
        "block. FRAGMENTED is the share of the free GPUs on nodes with some GPUs taken, FIT n how "
        "many jobs with n GPUs on one node could start, LARGEST GANG how many whole nodes one job "
        "could take."
    ),
    options=(
        Option("partition", "p", "NAMES", "only nodes of these partitions"),
        Option("state", "t", "STATES", "only nodes in these states, as IDLE,DRAIN"),
        Option("type", None, "TYPES", "only nodes of these GPU types, as h100"),
        Option("topology", None, None, "show where they lie: zone, placement group, network"),
        Option("fragmentation", None, None, "show how the free GPUs lie on nodes, per type"),
        AS_OF,
        Option("no-header", None, None, "leave the header line out"),
    ),
    example="odcctl nodes --type h100\nodcctl nodes --fragmentation",
    run=run,
)
