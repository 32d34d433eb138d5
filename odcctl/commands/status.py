"""odcctl status: a summary of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.exits import DONE
from odcctl.text import render

HEADER = ("TYPE", "FREE", "RUNNING", "PENDING")

app = new_app()


@app.command(cls=Verb, epilog="odcctl status")
def status(ctx: typer.Context) -> int:
    """Show a summary of the cluster: GPUs, nodes, reservations, jobs.

    FREE is free/all. RUNNING and PENDING count reservations and batch jobs. `odcctl avail`
    shows expected waits, and `odcctl diag` the state of the daemon.
    """
    call = Call.of(ctx)
    if call.form == "quiet":
        call.wrong("this command prints no ids, so it has no quiet output")
    reply = call.client().get("/v1/cluster/use")
    if call.form == "json":
        call.put_reply(reply)
    else:
        render.put(describe(reply.json()))
    return DONE


def describe(cluster: Mapping[str, Any]) -> str:
    reservations, jobs = cluster["reservations"], cluster["jobs"]
    block = render.block(
        "cluster",
        [
            (
                "GPUs",
                f"{cluster['gpus_free']} of {cluster['gpus']} free, {cluster['gpus_used']} in use",
            ),
            ("nodes", f"{cluster['nodes_up']} of {cluster['nodes']} up"),
            ("reservations", _counts(reservations, ("active", "preparing", "queued"))),
            ("jobs", _counts(jobs, ("running", "pending"))),
        ],
    )
    rows = [
        [
            kind["gpu_type"],
            f"{kind['free']}/{kind['total']}",
            str(kind["active"]),
            str(kind["queued"]),
        ]
        for kind in cluster["types"]
    ]
    return f"{block}\n{render.table(HEADER, rows)}" if rows else block


def _counts(counts: Mapping[str, int], states: tuple[str, ...]) -> str:
    return ", ".join(f"{counts[state]} {state}" for state in states)
