"""odcctl queue: running and waiting jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from odcctl.caller import me as caller_name
from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.cli.params import Accounts, AsOf, JobNames, Me, Partitions, Qos, Users, joined
from odcctl.exits import DONE, Failure
from odcctl.http.client import Client, Params
from odcctl.listing import Listing as Jobs
from odcctl.listing import fetch_jobs
from odcctl.text import jobs, render
from odcctl.text.arrays import expanded, grouped
from odcctl.text.hostlist import unfold
from odcctl.text.queue_rows import LONG, NORMAL, START, View

EXAMPLE = "odcctl queue --partition h100 --state PENDING,RUNNING\nodcctl queue 17 18_[1-3]"

Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID...", help="only these jobs: 7, 7_3, 7_[1-4]", autocompletion=complete.jobs
    ),
]  # fmt: skip
State = Annotated[
    list[str] | None,
    typer.Option(
        "--state", "-t", metavar="STATES", autocompletion=complete.states,
        help="only these states, as PENDING or PD; all includes ended jobs",
    ),
]  # fmt: skip
Job = Annotated[
    list[str] | None,
    typer.Option("--job", "-j", metavar="IDS", help="the same as ID", autocompletion=complete.jobs),
]  # fmt: skip
Start = Annotated[
    bool, typer.Option("--start", help="list pending jobs by their expected starts")
]  # fmt: skip
Nodes = Annotated[
    list[str] | None,
    typer.Option(
        "--nodelist", "-w", metavar="NODES", help="only jobs on these nodes: gpu-[01-03],ws1",
        autocompletion=complete.nodes,
    ),
]  # fmt: skip
EveryTask = Annotated[
    bool, typer.Option("--array", "-r", help="one row for each task of an array")
]  # fmt: skip
Long = Annotated[
    bool, typer.Option("--long", "-l", help="more columns, and nothing is cut to the terminal")
]  # fmt: skip
Watch = Annotated[
    bool, typer.Option("--watch", help="update the table as it changes; Ctrl-C stops")
]  # fmt: skip


app = new_app()


@app.command(cls=Listing, epilog=EXAMPLE)
def queue(
    ctx: typer.Context,
    ids: Ids = None,
    user: Users = None,
    me: Me = False,
    state: State = None,
    partition: Partitions = None,
    job: Job = None,
    account: Accounts = None,
    qos: Qos = None,
    name: JobNames = None,
    nodes: Nodes = None,
    every_task: EveryTask = False,
    long: Long = False,
    start: Start = False,
    as_of: AsOf = None,
    watch: Watch = False,
) -> int:  # fmt: skip
    """Show running and pending jobs, and why pending jobs wait.

    The pending and running tasks of an array are one row, with the numbers of its tasks; with
    --array, or if IDs name tasks, each task has a row. TIME is how long a job has run, PLANNED
    its planned start. On a narrow terminal, the less important columns are left out.
    """
    call = Call.of(ctx)
    call.exclude(me=me, user=user)
    call.exclude(start=start, long=long)
    states, ended = _states(call, joined(state), nodes is not None, start)
    chosen = jobs.check_selectors([*(ids or ()), *(job or ())])
    view = START if start else LONG if long or call.columns is not None else NORMAL
    every_task = every_task or any("_" in selector for selector in chosen)
    client = call.client()
    params = {
        "job": ",".join(chosen) or None,
        "user": caller_name(client) if me else joined(user),
        "name": joined(name),
        "partition": joined(partition),
        "account": joined(account),
        "qos": joined(qos),
        "state": states,
        "ended": "true" if ended else None,
        "as_of": as_of,
        "fields": None if call.form == "json" else view.fields,
    }
    on_nodes = _known_nodes(client, joined(nodes))
    if watch:
        call.exclude(watch=watch, as_of=as_of)
        return call.watch_table(
            lambda: _table(view, _fetch(client, params, on_nodes), None, every_task),
            narrow=view.narrow,
        )
    listing = _fetch(client, params, on_nodes)
    if call.form == "json":
        render.put(listing.text)
    elif call.form == "quiet":
        call.put_ids(map(jobs.job_id, listing.jobs))
    else:
        call.put_table(*_table(view, listing, as_of, every_task), view.narrow, cut=not long)
    return DONE


def _states(call: Call, text: str | None, on_nodes: bool, start: bool) -> tuple[str | None, bool]:
    """The states to show, and whether one of them is of ended jobs."""
    states, ended = jobs.parse_states(text)
    if not start:
        return states, ended
    if states is not None:
        call.wrong("--start shows pending jobs; it takes no --state")
    if on_nodes:
        call.wrong("--start shows pending jobs, which have no nodes; it takes no --nodelist")
    return "PENDING", False


def _known_nodes(client: Client, text: str | None) -> frozenset[str]:
    """The nodes that a list names, which must exist; without a list, none."""
    names = frozenset(unfold(text or ""))
    if names:
        known = {node["name"] for node in client.get("/v1/nodes").json()["nodes"]}
        if unknown := sorted(names - known):
            raise Failure(f"node {unknown[0]} does not exist", "`odcctl nodes` lists all nodes.")
    return names


def _fetch(client: Client, params: Params, on_nodes: frozenset[str]) -> Jobs:
    """on_nodes: only jobs that have one of these nodes; empty: all."""
    found = fetch_jobs(client, params)
    if not on_nodes:
        return found
    return found.only(lambda job: not on_nodes.isdisjoint(job["node_names"]))


def _table(
    view: View, listing: Jobs, as_of: str | None, every_task: bool
) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    now_s = listing.reply.now_s
    at_s = render.moment(as_of).timestamp() if as_of else now_s
    shown = expanded(listing.jobs) if every_task else grouped(listing.jobs)
    return view.header, view.rows(shown, now_s, at_s)
