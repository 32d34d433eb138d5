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
from odcctl.reservations.lookup import own, pick
from odcctl.text.jobs import check_selectors, parse_states
from odcctl.text.prompts import agree

EXAMPLE = "odcctl cancel 7_[3-9] 12\nodcctl cancel --me --state PENDING"

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="7, 7_3, 7_[1-4]", autocompletion=complete.jobs),
]  # fmt: skip
Every = Annotated[bool, typer.Option("--all", help="every job that you may cancel")]
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
) -> int:  # fmt: skip
    """Cancel jobs, or send them a signal.

    Filters select among the given ids. Pending jobs end at once. Running jobs get TERM, and
    KILL after a grace period. Exits with 1 if a job could not be cancelled, and prints the
    reason. On a terminal, without ids and filters, you choose one of your reservations.
    """
    call = Call.of(ctx, failing="nothing cancelled")
    call.exclude(me=me, user=user)
    client = call.client()
    body: dict[str, Any] = {"ids": check_selectors(ids)} if ids else {}
    filters = {
        "user": caller_name(client) if me else joined(user),
        "name": joined(name),
        "partition": joined(partition),
        "account": joined(account),
        "qos": joined(qos),
        "state": parse_states(joined(state))[0],
    }
    body |= {field: value for field, value in filters.items() if value is not None}
    if every:
        if body:
            call.wrong("--all cannot be combined with ids or filters")
        body["all"] = True
    if not body:
        if signal is not None or not call.may_prompt():
            call.wrong("give job ids, a filter, or --all")
        body["ids"] = [_chosen(client)]
    if signal is not None:
        body["signal"] = signal
    answer = client.post("/v1/jobs/cancel", body).json()
    if signal is None:
        _forget(client, answer)
    return print_outcomes(answer, call.form, "not cancelled")


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
