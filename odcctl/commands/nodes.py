"""odcctl nodes: the nodes, and how much of each is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl import render
from odcctl.client import Client
from odcctl.exits import DONE
from odcctl.hostlist import unfold
from odcctl.options import Arguments, Command, Option

HEADER = ("NODE", "TYPE", "STATE", "GPUS", "CPUS", "MEMORY", "PARTITIONS", "JOBS / REASON")


def run(arguments: Arguments) -> int:
    reply = Client.of(arguments).get("/v1/nodes")
    answer = reply.json()
    every: list[dict[str, Any]] = answer["nodes"]
    known = {node["name"] for node in every}
    wanted = {name for word in arguments.words for name in unfold(word)}
    if missing := sorted(wanted - known):
        arguments.command.wrong(f'no node "{missing[0]}"')
    states = _split(arguments.joined("state"), upper=True)
    partitions = _split(arguments.joined("partition"))
    types = _split(arguments.joined("type"))
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
        head = () if arguments.flag("no-header") else HEADER
        render.put(render.table(head, [_row(node) for node in nodes], render.terminal_width()))
    return DONE


def _split(text: str | None, *, upper: bool = False) -> set[str]:
    return set((text.upper() if upper else text).split(",")) if text else set()


def _row(node: Mapping[str, Any]) -> tuple[str, ...]:
    running = " ".join(str(job) for job in node.get("jobs") or ())
    reason = render.clean(node.get("reason") or "")
    return (
        node["name"], node["gpu_type"], node["state"], f"{node['gpus_used']}/{node['gpus']}",
        f"{node['cpus_used']}/{node['cpus']}",
        f"{_gib(node['mem_used_mib'])}/{_gib(node['mem_mib'])}G",
        ",".join(node.get("partitions") or ()) or "-",
        f"{running} / {reason}" if running and reason else running or reason,
    )  # fmt: skip


def _gib(mib: int) -> str:
    return f"{mib / 1024:.0f}" if mib >= 10_240 or mib % 1024 == 0 else f"{mib / 1024:.1f}"


COMMAND = Command(
    name="nodes",
    summary="Show the nodes, and how much of each is used",
    usage="nodes [NAME...] [OPTIONS]",
    words=(0, None),
    notes="NAME may be a list as gpu-[01-03]. GPUS, CPUS and MEMORY are used/all.",
    options=(
        Option("partition", "p", "NAMES", "only nodes of these partitions"),
        Option("state", "t", "STATES", "only nodes in these states, as IDLE,DRAIN"),
        Option("type", None, "TYPES", "only nodes of these GPU types, as h100"),
        Option("no-header", None, None, "leave the header line out"),
    ),
    example="odcctl nodes --type h100",
    run=run,
)
