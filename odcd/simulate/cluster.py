"""The machine of a replay: identical nodes, and the placement of a number of GPUs on them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from odcd.errors import BadRequest
from odcd.records.node import NodeReport

GPU_TYPE = "simulated"
MAX_NODES = 20_000
MAX_GPUS_PER_NODE = 62
MEM_PER_GPU_MIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    nodes: int
    gpus_per_node: int

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    def __str__(self) -> str:
        return f"{self.nodes}x{self.gpus_per_node}"

    def place(self, gpus: int) -> tuple[int, int]:
        """Nodes, and GPUs on each: within one node if they fit, otherwise a gang of whole nodes."""
        if gpus <= self.gpus_per_node:
            return 1, gpus
        return -(-gpus // self.gpus_per_node), self.gpus_per_node

    def fits(self, gpus: int) -> bool:
        return self.place(gpus)[0] <= self.nodes

    def reports(self) -> list[NodeReport]:
        """Nodes on which CPUs and memory are never scarcer than GPUs."""
        return [
            NodeReport(
                name=f"n{number}",
                gpu_type=GPU_TYPE,
                gpus=self.gpus_per_node,
                cpus=self.gpus_per_node,
                mem_mib=self.gpus_per_node * MEM_PER_GPU_MIB,
                declared=True,
            )
            for number in range(1, self.nodes + 1)
        ]


def parse_cluster(text: str) -> Cluster:
    """27x8: the number of nodes and the GPUs on each. Raises BadRequest."""
    found = re.fullmatch(r"([1-9]\d{0,8})x([1-9]\d{0,8})", text)
    if found is None:
        raise BadRequest(f'cluster "{text}" is not NODESxGPUS', "Write it like 27x8 or 100x1.")
    nodes, gpus = int(found[1]), int(found[2])
    if nodes > MAX_NODES or gpus > MAX_GPUS_PER_NODE:
        raise BadRequest(
            f"cluster {text} is too large",
            f"At most {MAX_NODES} nodes with {MAX_GPUS_PER_NODE} GPUs each; a flat machine of P "
            "processors is Px1.",
        )
    return Cluster(nodes=nodes, gpus_per_node=gpus)
