"""odcctl logs: what a job wrote."""

from __future__ import annotations

import sys

from odcctl.exits import DONE, Failure
from odcctl.follow import Patience, output
from odcctl.http.client import Client
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.jobs import check_selector


def run(arguments: Arguments) -> int:
    rank = arguments.value("rank") or "0"
    if rank != "all" and not rank.isdecimal():
        arguments.command.wrong(f'--rank is a number or all, not "{rank}"')
    if arguments.form != "table":
        arguments.command.wrong("a job's output has no other form")
    params = {
        "stream": "stderr" if arguments.flag("stderr") else "stdout",
        "follow": "true" if arguments.flag("follow") else None,
        "rank": rank,
    }
    job = check_selector(arguments.words[0])
    if arguments.flag("build"):
        if len(arguments.given) > 1:
            arguments.command.wrong("--build has no other options beside it")
        return _of_build(Client.of(arguments), job)
    pieces = output(Client.of(arguments), job, params, Patience(), resumable=rank != "all")
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    return DONE


def _of_build(client: Client, reservation: str) -> int:
    one = client.get(f"/v1/reservations/{reservation}").json()
    if one.get("build") is None:
        raise Failure(
            f"reservation {one['id']} runs no image that was built for it",
            "`odcctl reserve --dockerfile PATH` makes one that does.",
        )
    said = client.get(f"/v1/builds/{one['build']}/log").text
    sys.stdout.write("".join(f"{render.clean(line)}\n" for line in said.splitlines()))
    return DONE


COMMAND = Command(
    name="logs",
    summary="Print what a job wrote",
    usage="logs ID [OPTIONS]",
    words=(1, 1),
    takes_jobs=True,
    options=(
        Option("follow", "f", None, "go on until the job has ended"),
        Option("build", None, None, "of a reservation: the end of its image's build"),
        Option("rank", None, "N", "of which node of a gang (the first is 0), or all of them"),
        Option(
            "stderr", None, None, "what it wrote to its standard error, where that is kept apart"
        ),
    ),
    example="odcctl logs 7 --follow",
    run=run,
)
