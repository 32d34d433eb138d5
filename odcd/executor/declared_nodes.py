"""Nodes declared with --node, for accounting only."""

from __future__ import annotations

import re
from collections.abc import Sequence

from odcd.errors import BadRequest, TooLarge
from odcd.records.node import DeclaredNode
from odcd.slurm.hostlists import expand_hosts

SELF = "self"
NODE = re.compile(
    r"^(?P<name>[^=]+)=(?P<type>[A-Za-z0-9._-]+):(?P<gpus>\d+)(?:x(?P<cpus>\d+))?"
    r"(?:@(?P<place>[A-Za-z0-9._-]*(?:/[A-Za-z0-9._-]*){0,9}))?$"
)
NODE_FORM = "NAME=TYPE:GPUS[xCPUS][@ZONE[/GROUP[/LAYER...]]]"


def parse_nodes(texts: Sequence[str], by: str = "--node") -> tuple[tuple[DeclaredNode, ...], bool]:
    """The declared nodes, and whether the machine itself is one. by: the setting they come from."""
    nodes: dict[str, DeclaredNode] = {}
    for text in texts:
        if text == SELF:
            continue
        found = NODE.match(text)
        if found is None:
            raise BadRequest(
                f'{by} "{text}" is not {NODE_FORM}',
                'For example --node n1=h100:8 or --node "cpu[1-4]=cpu-x86:0x16" or '
                '--node "n[1-4]=h100:8@zone1/group1/spine1/block1"; --node self is this machine.',
            )
        if int(found["gpus"]) > 62 or not 0 < int(found["cpus"] or 1) <= 100_000:
            raise BadRequest(
                f'{by} "{text}": a node has at most 62 GPUs and 1 to 100000 CPUs',
                "Declare several nodes.",
            )
        place = (found["place"] or "").split("/")
        zone, group, layers = place[0], "".join(place[1:2]), place[2:]
        if "" in layers:
            raise BadRequest(
                f'{by} "{text}": a layer of the network has no name',
                "Name every layer, as in @zone1/group1/spine1/block1, or leave them out.",
            )
        for name in _names(found["name"], by):
            if name in nodes:
                raise BadRequest(f'{by} "{name}" is declared twice', "Give each node one name.")
            nodes[name] = DeclaredNode(
                name=name,
                gpu_type=found["type"],
                gpus=int(found["gpus"]),
                cpus=int(found["cpus"]) if found["cpus"] else None,
                zone=zone or None,
                efa_domain=group or None,
                topology=tuple(layers),
            )
    return tuple(nodes.values()), not nodes or SELF in texts


def _names(text: str, by: str) -> list[str]:
    try:
        return expand_hosts(text)
    except (BadRequest, TooLarge) as error:
        raise BadRequest(f"{by}: {error.message}", error.hint) from error
