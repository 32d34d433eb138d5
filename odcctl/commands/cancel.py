"""odcctl cancel: end jobs, or send them a signal."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Annotated, Any

import typer

from odcctl.caller import me as caller_name
from odcctl.changes import print_outcomes
from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import Accounts, JobNames, Me, Partitions, Qos, Users, joined
from odcctl.exits import Failure
from odcctl.http.client import Client
from odcctl.listing import fetch_jobs
from odcctl.reservations.lookup import own, pick
from odcctl.text.arrays import grouped
from odcctl.text.jobs import check_selectors, parse_states
from odcctl.text.prompts import agree
from odcctl.text.queue_rows import NORMAL
from odcctl.text.render import note, table, terminal_width
from odcctl.text.tables import fit

EXAMPLE = "odcctl cancel 7_[3-9] 12\nodcctl cancel --me --state PENDING"

Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID|NAME...", help="7, 7_3, 7_[1-4], or the name of your jobs",
        autocompletion=complete.jobs,
    ),
]  # fmt: skip
Every = Annotated[
    bool,
    typer.Option(
        "--all", "-a", help="all your jobs; with --user, an operator cancels those of others"
    ),
]  # fmt: skip
Sure = Annotated[bool, typer.Option("--yes", "-y", help="with --all: do not ask")]
State = Annotated[
    list[str] | None,
    typer.Option(
        "--state", "-t", metavar="STATES",
        help="only jobs in these states, for example PENDING or PD",
        autocompletion=complete.states,
    ),
]  # fmt: skip
Signal = Annotated[
    str | None,
    typer.Option(
        "--signal", "-s", metavar="SIGNAL",
        help="only send this signal to running jobs: USR1, SIGTERM, 12",
    ),
]  # fmt: skip


app = new_app()


@app.command(cls=Verb, epilog=EXAMPLE)
def cancel(
    ctx: typer.Context,
    ids: Ids = None,
    every: Every = False,
    me: Me = False,
    user: Users = None,
    name: JobNames = None,
    state: State = None,
    partition: Partitions = None,
    account: Accounts = None,
    qos: Qos = None,
    signal: Signal = None,
    yes: Sure = False,
) -> int:  # fmt: skip
    """Cancel jobs, or send them a signal.

    A NAME selects your own jobs with this name. Filters select among the given ids. --all lists
    the jobs, and asks on a terminal. Pending jobs end at once. Running jobs get TERM, and
    KILL after a grace period. Exits with 1 if a job could not be cancelled, and prints the
    reason. On a terminal, without ids and filters, you choose one of your reservations.
    """
    call = Call.of(ctx, failing="nothing cancelled")
    call.exclude(me=me, user=user)
    client = call.client()
    names = [word for word in ids or () if not word[:1].isdigit()]
    ids = [word for word in ids or () if word[:1].isdigit()]
    if names and (ids or name):
        call.wrong("names cannot be combined with ids or --name")
    body: dict[str, Any] = {"ids": check_selectors(ids)} if ids else {}
    filters = {
        "user": caller_name(client) if me or ((names or every) and not user) else joined(user),
        "name": ",".join(names) if names else joined(name),
        "partition": joined(partition),
        "account": joined(account),
        "qos": joined(qos),
        "state": parse_states(joined(state))[0],
    }
    body |= {field: value for field, value in filters.items() if value is not None}
    if every and body.keys() != {"user"}:
        call.wrong("--all cannot be combined with ids or filters other than --user")
    if yes and not every:
        call.wrong("--yes requires --all")
    if every and not yes and call.may_prompt() and not _confirmed(client, str(body["user"])):
        raise Failure("you did not confirm")
    if not body:
        if signal is not None or not call.may_prompt():
            call.wrong("give job ids, a filter, or --all")
        body["ids"] = [_chosen(client)]
    if signal is not None:
        body["signal"] = signal
    answer = client.post("/v1/jobs/cancel", body).json()
    if signal is None:
        _forget(client, answer)
    if names and not answer["jobs"]:
        raise Failure(f"no live job of {body['user']} has the name {' or '.join(names)}")
    return print_outcomes(answer, call.form, "not cancelled")


def _confirmed(client: Client, users: str) -> bool:
    """List the jobs, and ask."""
    listed = fetch_jobs(client, {"user": users, "fields": NORMAL.fields})
    if not listed.jobs:
        raise Failure(f"{users} has no running or pending jobs")
    now_s = listed.reply.now_s
    rows = NORMAL.rows(grouped(listed.jobs), now_s, now_s)
    head, rows = fit(NORMAL.header, rows, terminal_width(), NORMAL.narrow)
    note(table(head, rows, terminal_width()).rstrip("\n"))
    return agree(f"Cancel {'this job' if len(rows) == 1 else 'all of these jobs'}?")


def _forget(client: Client, answer: dict[str, Any]) -> None:
    """Remove the ssh configuration of cancelled reservations."""
    if os.path.isdir(os.path.expanduser("~/.odc/ssh")):
        from odcctl.ssh import host_files as ssh

        with suppress(OSError):
            ssh.remove(
                client, (one["job_id"] for one in answer["jobs"] if one["outcome"] != "refused")
            )


def _chosen(client: Client) -> str:
    """One of my reservations, from a menu."""
    mine = own(client)
    if not mine:
        raise Failure(
            "you have no active or waiting reservation",
            "To cancel a job, give its id: odcctl cancel ID",
        )
    one = pick(mine)
    if not agree(f"Cancel reservation {one['id']}?"):
        raise Failure("you did not confirm")
    return str(one["id"])
