"""odcctl avail: what of each GPU type is free, and how long the rest takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.exits import DONE
from odcctl.http.client import Client
from odcctl.options import Arguments, Command, Option
from odcctl.reservations.availability import fetch_types, waits
from odcctl.text import render

HEADER = ("TYPE", "FREE", "MOST", "NODES", "WHOLE", "QUEUED", "WAIT FOR 8 H")
WATCH_S = 5.0


def run(arguments: Arguments) -> int:
    client = Client.of(arguments)
    if arguments.flag("watch"):
        from odcctl.live_table import watch

        if arguments.form != "table":
            arguments.command.wrong("--watch shows a table; read events for a stream of JSON")
        return watch(
            client, "odcctl avail --watch", lambda: (HEADER, _rows(fetch_types(client))), WATCH_S
        )
    reply = client.get("/v1/availability")
    types: list[dict[str, Any]] = reply.json()["types"]
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put("".join(f"{kind['gpu_type']}\n" for kind in types))
    else:
        head = () if arguments.flag("no-header") else HEADER
        render.put(render.table(head, _rows(types), render.terminal_width()))
    return DONE


def _rows(types: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    return [_row(kind) for kind in types]


def _row(kind: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        kind["gpu_type"], f"{kind['free']}/{kind['total']}", str(kind["max_reservable"]),
        f"{kind['nodes_up']}/{kind['nodes']}", str(kind["free_nodes"]), str(kind["queued"]),
        render.clean(kind.get("maintenance") or "") or waits(kind) or "-",
    )  # fmt: skip


COMMAND = Command(
    name="avail",
    summary="Show what of each GPU type is free, and how long the rest takes",
    usage="avail [--watch]",
    notes=(
        "FREE is GPUs free/all of the nodes that are up (of a CPU type nodes), MOST how many one "
        "reservation could have now, NODES up/all, WHOLE how many of them are wholly free. WAIT "
        "is the expected wait of sizes that a reservation of 8 hours could not have now: "
        "1-4 of a node, 2x8 of two whole nodes. A shorter reservation may start earlier."
    ),
    options=(
        Option("watch", None, None, "keep showing it, every 5 seconds; Ctrl-C ends it"),
        Option("no-header", None, None, "leave the header line out"),
    ),
    example="odcctl avail",
    run=run,
)
