"""odcctl cancel: end jobs, or send them a signal."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from odcctl.caller import me
from odcctl.changes import tell
from odcctl.exits import Failure
from odcctl.http.client import Client
from odcctl.options import Arguments, Command, Option
from odcctl.reservations.lookup import own, pick
from odcctl.text.jobs import check_selectors, parse_states
from odcctl.text.prompts import agree, on_terminal


def run(arguments: Arguments) -> int:
    if arguments.flag("me") and arguments.flag("user"):
        arguments.command.wrong("--me and --user exclude each other")
    client = Client.of(arguments)
    body: dict[str, Any] = {}
    if arguments.words:
        body["ids"] = check_selectors(arguments.words)
    filters = {
        "user": me(client) if arguments.flag("me") else arguments.joined("user"),
        "name": arguments.joined("name"),
        "partition": arguments.joined("partition"),
        "account": arguments.joined("account"),
        "qos": arguments.joined("qos"),
        "state": parse_states(arguments.joined("state"))[0],
    }
    body |= {name: value for name, value in filters.items() if value is not None}
    if arguments.flag("all"):
        if body:
            arguments.command.wrong("--all stands alone, without ids and filters")
        body["all"] = True
    if not body:
        if arguments.flag("signal") or not on_terminal(arguments):
            arguments.command.wrong("name jobs, a filter, or --all")
        body["ids"] = [_chosen(client)]
    if arguments.flag("signal"):
        body["signal"] = arguments.value("signal")
    answer = client.post("/v1/jobs/cancel", body).json()
    if not arguments.flag("signal"):
        _forget(client, answer)
    return tell(answer, arguments.form, "not cancelled")


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
            "no reservation of yours is active or waits", "Jobs are named: odcctl cancel ID"
        )
    one = pick(mine)
    if not agree(f"Cancel reservation {one['id']}?"):
        raise Failure("not agreed to")
    return str(one["id"])


COMMAND = Command(
    name="cancel",
    summary="Cancel jobs, or send them a signal",
    usage="cancel ID... [OPTIONS] | FILTERS | --all",
    words=(0, None),
    takes_jobs=True,
    notes=(
        "Ids are 7, 7_3, 7_[1-4]; filters narrow them down. Pending jobs end at once, running "
        "ones get TERM, and KILL after a grace. Exits 1 when a job could not be cancelled, and "
        "says why. On a terminal, without any of them, one of my reservations is chosen."
    ),
    options=(
        Option("all", None, None, "every job that I may cancel"),
        Option("me", None, None, "only my jobs"),
        Option("user", "u", "NAMES", "only jobs of these users"),
        Option("name", "n", "NAMES", "only jobs with these names"),
        Option("state", "t", "STATES", "only jobs in these states, as PENDING or PD"),
        Option("partition", "p", "NAMES", "only jobs of these partitions"),
        Option("account", "A", "NAMES", "only jobs of these accounts"),
        Option("qos", "q", "NAMES", "only jobs under these QOS"),
        Option("signal", "s", "SIGNAL", "only send this signal to running jobs: USR1, SIGTERM, 12"),
    ),
    example="odcctl cancel 7_[3-9] 12\nodcctl cancel --me --state PENDING",
    run=run,
    what="nothing cancelled",
)
