"""How well gangs are placed in a fat tree: python -m benchmarks.blocks.

10,000 nodes hang in blocks of 32, and 16 blocks under each spine. Part of the nodes is not free,
chosen at random. One gang of whole nodes waits, and `decide` places it. The table compares the
blocks and spines that it lies in with the fewest that have enough free nodes.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.figures import timed_ms
from benchmarks.planning import NOW, served
from tests.support.harness.database import Sql

NODES, BLOCK, SPINE, GPUS = 10_000, 32, 16, 8
SIZES = (64, 128, 256, 512)
BUSY = (0.0, 0.5, 0.8, 0.9)
DIGEST = "0" * 64


@dataclass(frozen=True)
class Placement:
    blocks: int
    fewest_blocks: int
    spines: int
    fewest_spines: int
    took_ms: float


def block_of(node: int) -> int:
    return node // BLOCK


def spine_of(node: int) -> int:
    return block_of(node) // SPINE


def fewest(places: Iterable[int], want: int) -> int:
    """The fewest places that together have so many free nodes: the fullest first."""
    left, used = want, 0
    for count in sorted(Counter(places).values(), reverse=True):
        if left <= 0:
            break
        left -= count
        used += 1
    return used


def build(sql: Sql) -> None:
    nodes = [
        {
            "name": f"n{node}", "gpu_type": "h100", "gpus": GPUS, "cpus": 64, "mem_mib": 1_000_000,
            "topology": [f"spine{spine_of(node)}", f"block{block_of(node)}"],
        }
        for node in range(NODES)
    ]  # fmt: skip
    sql.execute("select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps(nodes), NOW)


def occupy(sql: Sql, share: float, seed: int) -> list[int]:
    """Drain this share of the nodes; return the others."""
    chance = random.Random(seed)
    busy = {node for node in range(NODES) if chance.random() < share}
    sql.execute(
        "update odc.node set state = case when name = any ($1::text[]) then 'DRAIN' else 'UP' end"
        "::odc.node_state",
        [f"n{node}" for node in sorted(busy)],
    )
    sql.execute("select odc._regroup_nodes()")
    return [node for node in range(NODES) if node not in busy]


def place(sql: Sql, size: int, free: list[int]) -> Placement:
    sql.execute("truncate odc.pending, odc.job cascade")
    job = {
        "name": "gang", "script_digest": DIGEST, "environment_digest": DIGEST, "work_dir": "/",
        "node_count": size, "gpus_per_node": GPUS, "time_limit_s": 3600,
    }  # fmt: skip
    request = {"uid": 1000, "gid": 1000, "user": "ann", "operator": False, "jobs": [job]}
    refused = sql.values(
        "select message from odc.submit_jobs($1::jsonb, array[$2], array['x'], $3) "
        "where job_id is null",
        json.dumps([request]), DIGEST, NOW,
    )  # fmt: skip
    assert refused == [], refused
    rows: list[str] = []
    query = (
        "select array(select n.name from unnest(d.alloc_nodes) as u (id) "
        "join odc.node as n on n.id = u.id) as names from odc.decide($1) as d"
    )
    took_ms = timed_ms(lambda: rows.extend(sql.row(query, NOW)["names"]))
    nodes = [int(name[1:]) for name in rows]
    assert len(nodes) == size, f"the gang of {size} was not placed: {len(nodes)}"
    return Placement(
        blocks=len({block_of(node) for node in nodes}),
        fewest_blocks=fewest(map(block_of, free), size),
        spines=len({spine_of(node) for node in nodes}),
        fewest_spines=fewest(map(spine_of, free), size),
        took_ms=took_ms,
    )


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.blocks")
    arguments.add_argument("--seeds", type=int, default=3)
    asked = arguments.parse_args()
    print(f"{NODES:,} nodes in blocks of {BLOCK}, {SPINE} blocks a spine; {asked.seeds} draws each")
    print("| not free | gang | blocks | fewest | spines | fewest | `decide` |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    with served() as sql:
        build(sql)
        for share in BUSY:
            draws = [occupy(sql, share, seed) for seed in range(asked.seeds)]
            for size in SIZES:
                found: list[Placement] = []
                for seed, free in enumerate(draws):
                    occupy(sql, share, seed)
                    found.append(place(sql, size, free))
                print(row(share, size, found))


def row(share: float, size: int, found: list[Placement]) -> str:
    def mean(name: str) -> str:
        return f"{statistics.fmean(getattr(one, name) for one in found):.1f}"

    took = statistics.median(one.took_ms for one in found)
    return (
        f"| {100 * share:.0f} % | {size} | {mean('blocks')} | {mean('fewest_blocks')} "
        f"| {mean('spines')} | {mean('fewest_spines')} | {took:.0f} ms |"
    )


if __name__ == "__main__":
    main()
