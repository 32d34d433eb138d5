"""The map: one cell per GPU, coloured by its user."""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from odcd.api.http.context import Api
from odcd.page.files import macros
from odcd.page.filters import hue
from odcd.page.fragments import Rendered
from odcd.page.queries import PageOfNodes
from odcd.stores.page import MappedNode

DENSE = 120
"""Above this many nodes of a type, they are drawn without names."""
SLOTS = 8
"""The GPUs of a node of up to this size are drawn as one element: a browser can draw a thousand of
those at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Adjacent GPUs of one owner. kind: held, foreign, free, off (the node takes no jobs)."""

    kind: str
    count: int
    user: str | None = None
    job_id: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSum:
    gpu_type: str
    nodes: int
    gpus: int
    used: int
    free: int
    """On nodes that take jobs."""
    down: int
    draining: int


class NodeMap:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._drawn = functools.lru_cache(maxsize=20_000)(_draw)
        self._rows = macros("rows.html")

    async def page(self, query: PageOfNodes) -> Rendered:
        nodes = await self.read()
        if query.gpu_type:
            nodes = [node for node in nodes if node.gpu_type == query.gpu_type]
        return self.render(nodes)

    async def read(self) -> list[MappedNode]:
        return await self._api.store.page.list_nodes(self._api.clock.now())

    def render(self, nodes: Sequence[MappedNode]) -> Rendered:
        by_type: dict[str, list[MappedNode]] = defaultdict(list)
        for node in nodes:
            by_type[node.gpu_type].append(node)
        parts: dict[str, str] = {}
        rows: dict[str, dict[str, str]] = {}
        for gpu_type, members in by_type.items():
            total = sum_of(gpu_type, members)
            parts[f"sum-{gpu_type}"] = str(self._rows.type_sum(total))
            dense = len(members) > DENSE
            rows[f"map-{gpu_type}"] = {n.name: self._drawn(n.body, dense) for n in members}
        return Rendered(parts=parts, rows=rows)


def sum_of(gpu_type: str, nodes: Sequence[MappedNode]) -> TypeSum:
    counts = [_counted(node.body) for node in nodes]
    return TypeSum(
        gpu_type=gpu_type, nodes=len(nodes),
        gpus=sum(one[0] for one in counts), used=sum(one[1] for one in counts),
        free=sum(one[0] - one[1] for one in counts if one[2] == "UP"),
        down=sum(one[2] == "DOWN" for one in counts),
        draining=sum(one[2] == "DRAIN" for one in counts),
    )  # fmt: skip


@functools.lru_cache(maxsize=20_000)
def _counted(body: str) -> tuple[int, int, str]:
    """GPUs, GPUs in use, state."""
    node = json.loads(body)
    used = int(node["foreign"])
    for held in node["held"]:
        used |= held[3]
    return node["gpus"], used.bit_count(), node["state"]


def _draw(body: str, dense: bool) -> str:
    node: dict[str, Any] = json.loads(body)
    cells = cells_of(node)
    slots = slots_of(cells) if dense and node["gpus"] <= SLOTS else None
    return str(macros("rows.html").map_node(node, cells, dense, slots))


def slots_of(cells: Sequence[Cells]) -> tuple[str, str]:
    """CSS classes and owners of GPUs that are drawn as a background, by position."""
    kinds: list[str] = []
    users: list[str] = []
    place = 0
    for cell in cells:
        for slot in range(place, place + cell.count):
            if cell.user is not None:
                kinds.append(f"p{slot}h{hue(cell.user)}")
                users.append(f"{cell.user}.{slot}")
            elif cell.kind == "foreign":
                kinds.append(f"p{slot}x")
        place += cell.count
    return " ".join(kinds), " ".join(users)


def cells_of(node: dict[str, Any]) -> list[Cells]:
    """The cells of a node, starting with GPU 0."""
    idle = "free" if node["state"] == "UP" else "off"
    owners: list[tuple[str, str | None, int | None, str | None]] = [
        (idle, None, None, None)
    ] * node["gpus"]
    for gpu in range(node["gpus"]):
        if node["foreign"] >> gpu & 1:
            owners[gpu] = ("foreign", None, None, None)
        for job_id, user, name, mask in node["held"]:
            if mask >> gpu & 1:
                owners[gpu] = ("held", user, job_id, name)
    found: list[Cells] = []
    for kind, user, job_id, name in owners:
        last = found[-1] if found else None
        if last and (last.kind, last.job_id) == (kind, job_id):
            found[-1] = Cells(kind=kind, count=last.count + 1, user=user, job_id=job_id, name=name)
        else:
            found.append(Cells(kind=kind, count=1, user=user, job_id=job_id, name=name))
    return found
