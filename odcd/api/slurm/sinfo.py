"""sinfo: partitions and nodes."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from odcd.api.slurm.remote import Finished, Remote
from odcd.api.slurm.version import answer_about
from odcd.slurm.columns.table import fitted, lines
from odcd.slurm.commands import sinfo as command
from odcd.slurm.commands.sinfo import Row, group, parse_sinfo
from odcd.slurm.hostlists import expand_hosts


async def sinfo(remote: Remote) -> Finished:
    about = answer_about(remote, command.OPTIONS)
    if about is not None:
        return about
    wanted = parse_sinfo(remote.request.argv, remote.request.environment)
    nodes, partitions = await inventory(remote)
    zone = remote.now().tzinfo
    for node in nodes.values():
        if node["state_at"]:
            at = datetime.fromisoformat(node["state_at"]).astimezone(zone)
            node["state_at"] = at.strftime("%Y-%m-%dT%H:%M:%S")
    hosts = set(expand_hosts(",".join(wanted.nodes))) if wanted.nodes else None
    rows: list[Row] = []
    for partition in partitions:
        if wanted.partitions and partition["name"] not in wanted.partitions:
            continue
        members = [
            node for name in partition["node_names"]
            if (node := nodes.get(name)) is not None
            and (hosts is None or name in hosts)
            and (wanted.states is None or node["state"] in wanted.states)
            and (not wanted.reasons or node["reason"])
        ]  # fmt: skip
        if members or not (wanted.states is not None or wanted.reasons or wanted.by_node):
            rows.append(Row(partition=partition, nodes=members))
    grouped = group(rows, wanted)
    cells = fitted(wanted.format, grouped)
    text = await remote.lines(lines(cells, grouped, header=wanted.header))
    return Finished(out=text, err=wanted.complaints)


async def inventory(remote: Remote) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """Nodes by name, and partitions."""
    api = remote.api
    nodes = json.loads(await api.store.nodes.list(remote.who, api.clock.now()))
    partitions = json.loads(await api.store.partitions.list())
    found = nodes["nodes"] if isinstance(nodes, dict) else nodes
    listed = partitions["partitions"] if isinstance(partitions, dict) else partitions
    return {node["name"]: node for node in found}, listed
