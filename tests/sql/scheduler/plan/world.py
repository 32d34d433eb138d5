"""Tiny clusters for the planner, and an obviously correct rule for the jobs that may start."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import strategies as st

from tests.support.harness.database import Sql

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUEUED_BEFORE_S = 1800
UNLIMITED_S = 2_147_483_647
EFA = {"h100"}


@dataclass(frozen=True)
class Node:
    name: str
    gpu_type: str
    gpus: int
    cpus: int
    mem: int
    domain: str | None = None
    block: str | None = None


@dataclass(frozen=True)
class Shape:
    """nodes to most of them; in at most `switches` blocks until it has waited switches_wait_s."""

    nodes: int
    gpus: int
    cpus: int
    mem: int
    gpu_type: str | None = None
    exclusive: bool = False
    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    most: int | None = None
    switches: int | None = None
    switches_wait_s: int | None = None

    @property
    def gang(self) -> bool:
        return (self.most or self.nodes) > 1


@dataclass(frozen=True)
class Pending:
    shape: Shape
    limit_s: int
    nice: int = 0


@dataclass(frozen=True)
class Held:
    """The amounts of a node that a running job uses, until ends_s after NOW (may be negative:
    overdue)."""

    node: str
    gpus: int
    cpus: int
    mem: int
    ends_s: float


@dataclass
class World:
    nodes: list[Node]
    held: list[Held]
    queue: list[Pending]
    placement: str = "pack"

    def lapse_s(self, at: int) -> float | None:
        """When the wish of this job for few blocks lapses, after NOW; None: never."""
        wait_s = self.queue[at].shape.switches_wait_s
        return None if wait_s is None else wait_s + at - QUEUED_BEFORE_S


@dataclass
class Books:
    """Free amounts per node, and the times of releases. A plan is checked against this."""

    nodes: dict[str, Node]
    held: list[Held] = field(default_factory=list)

    def free_at(self, name: str, at_s: float) -> tuple[int, int, int]:
        node = self.nodes[name]
        gpus, cpus, mem = node.gpus, node.cpus, node.mem
        for h in self.held:
            if h.node == name and max(h.ends_s, 1.0) > at_s:
                gpus, cpus, mem = gpus - h.gpus, cpus - h.cpus, mem - h.mem
        return gpus, cpus, mem

    def needs(self, shape: Shape, name: str) -> tuple[int, int, int]:
        node = self.nodes[name]
        if shape.exclusive:
            return node.gpus, node.cpus, node.mem
        return shape.gpus, shape.cpus, shape.mem

    def could_ever(self, shape: Shape, name: str) -> bool:
        node = self.nodes[name]
        return (
            shape.gpu_type in (None, node.gpu_type)
            and node.gpus >= shape.gpus
            and node.cpus >= shape.cpus
            and node.mem >= shape.mem
            and (not shape.only or name in shape.only)
            and name not in shape.exclude
        )

    def fits(self, shape: Shape, name: str, at_s: float) -> bool:
        return self.could_ever(shape, name) and all(
            have >= want
            for have, want in zip(self.free_at(name, at_s), self.needs(shape, name), strict=True)
        )

    def domains(self, shape: Shape, at_s: float) -> dict[tuple[str, str], list[str]]:
        """The nodes that fit, by what a gang may not leave: its type of GPU, its EFA domain."""
        found: dict[tuple[str, str], list[str]] = {}
        for name, node in self.nodes.items():
            if self.fits(shape, name, at_s):
                whole = shape.exclusive or shape.gpus == node.gpus
                bound = shape.gang and whole and node.gpu_type in EFA and node.domain
                kind = node.gpu_type if shape.gang and shape.gpus > 0 else ""
                found.setdefault((kind, node.domain or "" if bound else ""), []).append(name)
        return found

    def block(self, name: str) -> object:
        node = self.nodes[name]
        return node.block or (node.domain,)

    def blocks(self, names: Iterable[str]) -> int:
        return len({self.block(name) for name in names})

    def block_counts(self, shape: Shape) -> Callable[[str], bool]:
        """The nodes on which a gang uses few blocks by itself: whole nodes, if some report their
        topology."""
        return lambda name: (
            self.blocks_known() and (shape.exclusive or shape.gpus == self.nodes[name].gpus > 0)
        )

    def blocks_known(self) -> bool:
        """If no node reports its block, requests for few blocks have no effect."""
        return any(node.block for node in self.nodes.values())

    def placements(
        self, shape: Shape, at_s: float = 0.0, *, count: int | None = None, wish: int | None = None
    ):
        for names in self.domains(shape, at_s).values():
            for some in itertools.combinations(names, count or shape.nodes):
                if wish is None or self.blocks(some) <= wish:
                    yield some

    def can_start(self, shape: Shape, at_s: float, wish: int | None = None) -> bool:
        return any(True for _ in self.placements(shape, at_s, wish=wish))

    def earliest(self, shape: Shape, lapse_s: float | None = None) -> float | None:
        """lapse_s: until then the shape's request for few blocks counts; None: forever."""
        moments = {max(h.ends_s, 1.0) for h in self.held if h.ends_s < UNLIMITED_S} | {0.0}
        if lapse_s is not None and lapse_s > 0:
            moments.add(lapse_s)
        return next(
            (
                at
                for at in sorted(moments)
                if self.can_start(shape, at, self.wish(shape, at, lapse_s))
            ),
            None,
        )

    def wish(self, shape: Shape, at_s: float, lapse_s: float | None) -> int | None:
        counts = self.blocks_known() and (lapse_s is None or at_s < lapse_s)
        return shape.switches if counts else None

    def place(self, shape: Shape, names: tuple[str, ...], limit_s: int) -> None:
        for name in names:
            gpus, cpus, mem = self.needs(shape, name)
            self.held.append(Held(name, gpus, cpus, mem, limit_s))

    def copy(self) -> Books:
        return Books(self.nodes, list(self.held))


def build(sql: Sql, world: World) -> list[int]:
    """Write the world into the hot tables; returns the ids of the pending jobs in their order."""
    body = [
        {
            "name": n.name, "gpu_type": n.gpu_type, "gpus": n.gpus, "cpus": n.cpus,
            "mem_mib": n.mem, "efa_domain": n.domain, "declared": True,
            "topology": [n.block] if n.block else [],
        }
        for n in world.nodes
    ]  # fmt: skip
    sql.execute(
        "select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps(body), NOW - timedelta(1)
    )
    sql.execute("update odc.partition set placement = $1", world.placement)
    for h in world.held:
        ends = NOW + timedelta(seconds=h.ends_s) if h.ends_s < UNLIMITED_S else None
        sql.execute(
            "select odc_test_hold($1, $2, $3, $4, coalesce($5::timestamptz, 'infinity'), $6)",
            h.node, h.gpus, h.cpus, h.mem, ends, NOW - timedelta(hours=1),
        )  # fmt: skip
    return [_queue(sql, at, job) for at, job in enumerate(world.queue)]


def _queue(sql: Sql, at: int, job: Pending) -> int:
    s = job.shape
    return sql.value(
        "select odc_test_queue(odc_test_shape($1, $2, $3, $4, $5, $6, $7, $8, $12, $13, $14), "
        "$9, $10, $11)",
        s.nodes, s.gpus, s.cpus, s.mem, s.gpu_type, s.exclusive, list(s.only) or None,
        list(s.exclude) or None, NOW - timedelta(seconds=QUEUED_BEFORE_S - at),
        job.limit_s, job.nice, s.most, s.switches, s.switches_wait_s,
    )  # fmt: skip


def add_functions(sql: Sql) -> None:
    sql.execute(Path(__file__).with_name("world.sql").read_text())


@st.composite
def worlds(draw: st.DrawFn) -> World:
    blocks = st.sampled_from([[None], ["x", "y"], ["x", "y", None]])
    block = st.sampled_from(draw(blocks))
    nodes = [
        *(
            Node(f"h{i}", "h100", 4, 16, 64, draw(st.sampled_from(["a", "b"])), draw(block))
            for i in range(draw(st.integers(0, 4)))
        ),
        *(Node(f"l{i}", "l4", 2, 8, 32) for i in range(draw(st.integers(0, 3)))),
        *(Node(f"c{i}", "cpu-x86", 0, 8, 32) for i in range(draw(st.integers(0, 2)))),
    ]
    if not nodes:
        nodes = [Node("h0", "h100", 4, 16, 64, "a")]
    held: list[Held] = []
    books = Books({n.name: n for n in nodes})
    for node in nodes:
        for _ in range(draw(st.integers(0, 3))):
            gpus, cpus, mem = books.free_at(node.name, 0)
            if cpus < 1:
                break
            h = Held(
                node.name,
                draw(st.integers(0, gpus)),
                draw(st.integers(1, cpus)),
                draw(st.integers(0, mem)),
                draw(st.sampled_from([-5.0, 30.0, 60.0, 60.5, 90.0, 120.0, 300.0, UNLIMITED_S])),
            )
            held.append(h)
            books.held.append(h)
    names = [n.name for n in nodes]
    some_names = st.lists(st.sampled_from(names), unique=True, max_size=2).map(tuple)

    def shape() -> Shape:
        gpu_type = draw(st.sampled_from([None, "h100", "l4"]))
        least = draw(st.sampled_from([1, 1, 1, 2, 3]))
        wish = draw(st.integers(0, 4)) == 0
        return Shape(
            nodes=least,
            most=draw(st.sampled_from([None, None, None, least + 1, least + 2])),
            switches=draw(st.integers(1, 2)) if wish else None,
            # Expired, about to expire, in an hour, never.
            switches_wait_s=draw(st.sampled_from([1700, 1860, 5400, None])) if wish else None,
            gpus=draw(st.integers(0 if gpu_type is None else 1, 4)),
            cpus=draw(st.sampled_from([1, 2, 4, 8, 16])),
            mem=draw(st.sampled_from([0, 1, 8, 32])),
            gpu_type=gpu_type,
            exclusive=draw(st.booleans()) and draw(st.booleans()),
            only=draw(some_names) if draw(st.integers(0, 5)) == 0 else (),
            exclude=draw(some_names) if draw(st.integers(0, 5)) == 0 else (),
        )

    shapes = [shape() for _ in range(draw(st.integers(1, 5)))]
    queue = [
        Pending(
            draw(st.sampled_from(shapes)),
            draw(st.sampled_from([10, 30, 59, 60, 61, 90, 100, 200, 1000, UNLIMITED_S])),
            draw(st.sampled_from([0, 0, 0, 5])),
        )
        for _ in range(draw(st.integers(1, 12)))
    ]
    return World(nodes, held, queue, draw(st.sampled_from(["pack", "pack", "spread"])))


@st.composite
def roomy_worlds(draw: st.DrawFn) -> World:
    """Worlds where most jobs have a choice: many gangs, few allocated nodes."""
    tell = draw(st.booleans())
    block = st.sampled_from(["x", "y", "z", None]) if tell else st.none()
    nodes = [
        *(
            Node(f"h{i}", "h100", 4, 16, 64, draw(st.sampled_from(["a", "a", "b"])), draw(block))
            for i in range(draw(st.integers(2, 6)))
        ),
        *(Node(f"l{i}", "l4", 2, 8, 32, None, draw(block)) for i in range(draw(st.integers(2, 4)))),
        *(Node(f"c{i}", "cpu-x86", 0, 8, 32) for i in range(draw(st.integers(0, 2)))),
    ]
    held = [
        Held(n.name, draw(st.integers(0, n.gpus)), draw(st.integers(1, 4)), 1, ends_s)
        for n in nodes
        if (ends_s := draw(st.sampled_from([None, None, 30.0, 60.0, 300.0]))) is not None
    ]

    def shape() -> Shape:
        least = draw(st.sampled_from([1, 2, 2, 3]))
        wish = draw(st.integers(0, 2)) == 0
        return Shape(
            nodes=least,
            gpus=draw(st.sampled_from([0, 1, 2, 2, 4, 4])),
            cpus=1,
            mem=0,
            gpu_type=draw(st.sampled_from([None, None, "h100"])),
            exclusive=draw(st.integers(0, 7)) == 0,
            most=draw(st.sampled_from([None, least + 1, least + 2])),
            switches=draw(st.integers(1, 2)) if wish else None,
            switches_wait_s=draw(st.sampled_from([1700, 1860, None])) if wish else None,
        )

    queue = [
        Pending(shape(), draw(st.sampled_from([20, 59, 90, 1000])))
        for _ in range(draw(st.integers(1, 4)))
    ]
    return World(nodes, held, queue, draw(st.sampled_from(["pack", "spread"])))
