"""odcctl logs: what a job wrote."""

from __future__ import annotations

import sys

from odcctl.client import Client
from odcctl.exits import DONE
from odcctl.follow import Patience, output
from odcctl.jobs import check_selector
from odcctl.options import Arguments, Command, Option


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
    pieces = output(Client.of(arguments), job, params, Patience(), resumable=rank != "all")
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    return DONE


COMMAND = Command(
    name="logs",
    summary="Print what a job wrote",
    usage="logs ID [OPTIONS]",
    words=(1, 1),
    takes_jobs=True,
    options=(
        Option("follow", "f", None, "go on until the job has ended"),
        Option("rank", None, "N", "of which node of a gang (the first is 0), or all of them"),
        Option(
            "stderr", None, None, "what it wrote to its standard error, where that is kept apart"
        ),
    ),
    example="odcctl logs 7 --follow",
    run=run,
)
