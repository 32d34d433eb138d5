"""GET /v1/availability of a GPU type: free GPUs, and expected waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.http.client import Client
from odcctl.text import render

MAX_NODES = 6

Kind = Mapping[str, Any]


def fetch_types(client: Client, hours: float | None = None) -> list[dict[str, Any]]:
    """hours: the length of the reservation; the waits depend on it."""
    params = {"hours": f"{hours:g}"} if hours is not None else None
    return client.get("/v1/availability", params).json()["types"]


def counts(kind: Kind) -> list[int]:
    """The numbers of GPUs to offer: powers of two and all of a node, then whole nodes."""
    each = kind["gpus_per_node"]
    if not each:
        return []
    of_a_node = [2**power for power in range(each.bit_length()) if 2**power < each]
    whole = range(1, min(MAX_NODES, max(kind["nodes"], 1)) + 1)
    return [*of_a_node, *(each * nodes for nodes in whole)]


def nodes_for(kind: Kind, gpus: int) -> int:
    """How many nodes this many GPUs are."""
    each = kind["gpus_per_node"]
    return 1 if not each else max(1, -(-gpus // each))


def wait(kind: Kind, gpus: int) -> str:
    """The wait until this many GPUs are free: now, 2:10:00, unknown, or never."""
    nodes = nodes_for(kind, gpus)
    for size in kind["waits"]:
        if size["nodes"] == nodes and size["gpus"] == gpus:
            if size["wait_s"] is None:
                return "never" if size.get("refused") else "unknown"
            return render.duration(size["wait_s"]) if size["wait_s"] > 0 else "now"
    return "unknown"


def waits(kind: Kind) -> str:
    """The sizes that are not free now, and how long each waits: 1-8: 1:00:00, 2x8: unknown."""
    each = kind["gpus_per_node"]
    groups: list[tuple[str, list[str]]] = []
    for gpus in counts(kind) or [0]:
        nodes, how_long = nodes_for(kind, gpus), wait(kind, gpus)
        if how_long == "now":
            continue
        if not groups or groups[-1][0] != how_long or nodes == 2:
            groups.append((how_long, []))
        groups[-1][1].append(f"{nodes}x{each}" if nodes > 1 else str(gpus or 1))
    return ", ".join(f"{'-'.join(_ends(sizes))}: {how_long}" for how_long, sizes in groups)


def reasons(kind: Kind) -> list[str]:
    """Why sizes have no wait: for each limit or reason the smallest size, as 2x8: never: ..."""
    each, known = kind["gpus_per_node"], dict[str, str]()
    for size in sorted(kind["waits"], key=lambda one: (one["nodes"], one["gpus"])):
        if size["wait_s"] is not None:
            continue
        nodes = size["nodes"]
        name = f"{nodes}x{each}" if nodes > 1 else str(size["gpus"] or 1)
        if size.get("refused"):
            # The numbers of the request differ, and the limit is the same: the first one names it.
            known.setdefault("never", f"{name}: never: {size['refused']}")
        elif size.get("reason"):
            known.setdefault(size["reason"], f"{name}: no start is in sight: {size['reason']}")
    return list(known.values())


def _ends(sizes: list[str]) -> list[str]:
    return [sizes[0], sizes[-1]] if len(sizes) > 1 else sizes
