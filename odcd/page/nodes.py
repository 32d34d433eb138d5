"""The map: one cell per GPU, coloured by its user."""

from __future__ import annotations

import functools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from odcd.api.http.context import Api
from odcd.page.files import macros
from odcd.page.fragments import Rendered
from odcd.page.hues import HUES, Hues
from odcd.page.queries import PageOfNodes, following
from odcd.stores.page import MappedNode

DENSE = 120
"""Above this many nodes of a type, they are drawn without names."""
PAGE = 50
"""Rows of the table."""
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
    hue: int = 0


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
    def __init__(self, api: Api, hues: Hues) -> None:
        self._api = api
        self._hues = hues
        self._drawn = functools.lru_cache(maxsize=20_000)(self._draw)
        self._rows = macros("rows.html")

    async def page(self, query: PageOfNodes) -> Rendered:
        nodes = await self.read()
        if query.gpu_type:
            nodes = [node for node in nodes if node.gpu_type == query.gpu_type]
        drawn = self.render(nodes)
        shown = nodes[query.after : query.after + PAGE]
        span = (query.after + 1, query.after + len(shown), len(nodes))
        more = query.after + PAGE if query.after + PAGE < len(nodes) else None
        foot = self._rows.gantt_foot(
            span, following("/page/nodes", query, after=more),
            following("/page/nodes", query, after=0),
        )  # fmt: skip
        return Rendered(
            parts={**drawn.parts, "table-foot": str(foot)},
            rows={**drawn.rows, "table": {n.name: _row_of(n.body) for n in shown}},
        )

    async def one(self, name: str) -> str:
        """The facts of a node, or nothing if there is no such node."""
        found = next((node for node in await self.read() if node.name == name), None)
        return str(self._rows.node_card(_facts(found.body))) if found else ""

    async def read(self) -> list[MappedNode]:
        return await self._api.store.page.list_nodes(self._api.clock.now())

    def _draw(self, body: str, dense: bool, _: int) -> str:
        """The last argument is the version of the colours, for the cache."""
        node: dict[str, Any] = json.loads(body)
        cells = cells_of(node, self._hues.of)
        slots = slots_of(cells) if dense and node["gpus"] <= SLOTS else None
        return str(self._rows.map_node(node, cells, dense, slots))

    def _owners(self, nodes: Sequence[MappedNode]) -> tuple[list[tuple[str, int]], int]:
        """The users with the most GPUs and their colours, and the number of the others."""
        counts: Counter[str] = Counter()
        for node in nodes:
            counts.update(dict(_held(node.body)))
        most = sorted(counts, key=lambda user: (-counts[user], user))
        return [(user, self._hues.of(user)) for user in most[:HUES]], len(most[HUES:])

    def render(self, nodes: Sequence[MappedNode]) -> Rendered:
        by_type: dict[str, list[MappedNode]] = defaultdict(list)
        for node in nodes:
            by_type[node.gpu_type].append(node)
        parts = {"map-legend": str(self._rows.map_legend(*self._owners(nodes)))}
        rows: dict[str, dict[str, str]] = {}
        for gpu_type, members in by_type.items():
            total = sum_of(gpu_type, members)
            parts[f"sum-{gpu_type}"] = str(self._rows.type_sum(total))
            dense = len(members) > DENSE
            rows[f"map-{gpu_type}"] = {
                n.name: self._drawn(n.body, dense, self._hues.version) for n in members
            }
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


@functools.lru_cache(maxsize=20_000)
def _held(body: str) -> tuple[tuple[str, int], ...]:
    """Each user with GPUs here, and how many."""
    counts: Counter[str] = Counter()
    for _, user, _, mask in json.loads(body)["held"]:
        counts[user] += mask.bit_count()
    return tuple((user, count) for user, count in counts.items() if count)


def _facts(body: str) -> dict[str, Any]:
    gpus, used, _ = _counted(body)
    return {**json.loads(body), "gpus_used": used, "gpus": gpus}


@functools.lru_cache(maxsize=20_000)
def _row_of(body: str) -> str:
    return str(macros("rows.html").node_row(_facts(body)))


def slots_of(cells: Sequence[Cells]) -> tuple[str, str]:
    """CSS classes and owners of GPUs that are drawn as a background, by position."""
    kinds: list[str] = []
    users: list[str] = []
    place = 0
    for cell in cells:
        for slot in range(place, place + cell.count):
            if cell.user is not None:
                kinds.append(f"p{slot}h{cell.hue}")
                users.append(f"{cell.user}.{slot}")
            elif cell.kind == "foreign":
                kinds.append(f"p{slot}x")
        place += cell.count
    return " ".join(kinds), " ".join(users)


def cells_of(
    node: dict[str, Any], hue_of: Callable[[str | None], int] = lambda _: 0
) -> list[Cells]:
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
            found[-1] = replace(last, count=last.count + 1)
        else:
            found.append(Cells(kind=kind, count=1, user=user, job_id=job_id, name=name,
                               hue=hue_of(user) if user else 0))  # fmt: skip
    return found
