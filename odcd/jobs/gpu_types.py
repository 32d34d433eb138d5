"""The GPU types that nodes have, and the sizes of dev servers on them."""

from __future__ import annotations

import msgspec

MAX_NODES = 6


class TypeThere(msgspec.Struct, frozen=True):
    """A GPU type that nodes have, of odc.list_availability; amounts are those of its smallest
    node. Without GPUs, gpus_per_node is 0."""

    gpu_type: str
    gpus_per_node: int
    cpus_per_node: int
    mem_per_node_mib: int
    nodes: int


def read_types(availability: str) -> list[TypeThere]:
    return msgspec.json.decode(availability, type=list[TypeThere])


def sizes_of(kind: TypeThere) -> list[dict[str, int]]:
    """The sizes whose waits `avail` shows: parts of a node by powers of two, then whole nodes."""
    if kind.gpus_per_node == 0:
        return [{"gpus": 0, "nodes": 1}]
    parts = [1 << n for n in range(kind.gpus_per_node.bit_length())]
    parts = [p for p in parts if p < kind.gpus_per_node] + [kind.gpus_per_node]
    several = range(2, min(MAX_NODES, kind.nodes) + 1)
    return [{"gpus": part, "nodes": 1} for part in parts] + [
        {"gpus": n * kind.gpus_per_node, "nodes": n} for n in several
    ]
