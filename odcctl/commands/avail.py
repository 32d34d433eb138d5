"""odcctl avail: free GPUs of each type, and the expected waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.reservations.availability import fetch_types, reasons, waits
from odcctl.text import render

HEADER = ("TYPE", "FREE", "MOST", "NODES", "WHOLE", "QUEUED", "WAIT FOR 8 H")
WATCH_S = 5.0

app = new_app()


@app.command(cls=Listing, epilog="odcctl avail")
def avail(
    ctx: typer.Context,
    watch: Annotated[
        bool, typer.Option("--watch", help="update the table every 5 seconds; Ctrl-C stops")
    ] = False,
) -> int:
    """Show the free GPUs of each type, and the expected wait for more.

    FREE is free/all GPUs of the nodes that are up (nodes for a CPU type). MOST is the largest
    reservation possible now. NODES is up/all nodes, and WHOLE counts completely free nodes.
    WAIT is the expected wait for sizes that a reservation of 8 hours cannot have now: 1-4 GPUs
    of one node, or 2x8 on two whole nodes. A shorter reservation may start earlier. Below the
    table is the limit or the reason behind "never" and "unknown".
    """
    call = Call.of(ctx)
    client = call.client()
    if watch:
        return call.watch_table(lambda: (HEADER, _rows(fetch_types(client))), WATCH_S)
    reply = client.get("/v1/availability")
    types: list[dict[str, Any]] = reply.json()["types"]
    done = call.put_list(reply, (kind["gpu_type"] for kind in types), HEADER, _rows(types))
    if call.form == "table":
        for kind in types:
            for text in reasons(kind):
                render.put(f"{kind['gpu_type']} {render.clean(text)}\n")
    return done


def _rows(types: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    return [_row(kind) for kind in types]


def _row(kind: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        kind["gpu_type"], f"{kind['free']}/{kind['total']}", str(kind["max_reservable"]),
        f"{kind['nodes_up']}/{kind['nodes']}", str(kind["free_nodes"]), str(kind["queued"]),
        render.clean(kind.get("maintenance") or "") or waits(kind) or "-",
    )  # fmt: skip
