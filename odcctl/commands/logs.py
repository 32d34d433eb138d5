"""odcctl logs: the output of a job."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import JobId
from odcctl.ended import explain_silence
from odcctl.exits import DONE, Failure
from odcctl.follow import Patience, output
from odcctl.http.client import Client
from odcctl.task_logs import print_tasks, tasks_of
from odcctl.text import render
from odcctl.text.jobs import check_selector

app = new_app()


@app.command(cls=Verb, epilog="odcctl logs 7 --follow")
def logs(
    ctx: typer.Context,
    job: JobId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="follow the output until the job ends")
    ] = False,
    build: Annotated[
        bool,
        typer.Option(
            "--build", help="for a reservation: the end of the log of its image build"
        )
    ] = False,
    rank: Annotated[
        str | None,
        typer.Option(
            "--rank", metavar="N",
            help="the node of a gang (0 is the first), or all",
        ),
    ] = None,
    stderr: Annotated[
        bool,
        typer.Option(
            "--stderr", help="standard error, if it is kept separately"
        ),
    ] = False,
) -> int:  # fmt: skip
    """Print the output of a job.

    For an array, prints the output of every task that has started, each line with its task.
    With --follow, name one task.
    """
    call = Call.of(ctx)
    check_selector(job)
    if rank not in (None, "all") and not rank.isdecimal():
        call.wrong(f'--rank must be a number or all, not "{rank}"')
    if call.form != "table":
        call.wrong("a job's output has no other output format")
    if build:
        if follow or stderr or rank is not None:
            call.wrong("--build cannot be combined with other options")
        return _of_build(call.client(), job)
    params = {
        "stream": "stderr" if stderr else "stdout",
        "follow": "true" if follow else None,
        "rank": rank or "0",
    }
    client = call.client()
    tasks = None if follow else tasks_of(client, job)
    if tasks is not None:
        return print_tasks(client, tasks, params)
    wrote = False
    for piece in output(client, job, params, Patience(), resumable=rank != "all"):
        wrote = True
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    if not wrote:
        explain_silence(client, job, stderr=stderr)
    return DONE


def _of_build(client: Client, reservation: str) -> int:
    one = client.get(f"/v1/reservations/{reservation}").json()
    if one.get("build") is None:
        raise Failure(
            f"reservation {one['id']} has no image build",
            "`odcctl reserve --dockerfile PATH` builds an image.",
        )
    log = client.get(f"/v1/builds/{one['build']}/log").text
    sys.stdout.write("".join(f"{render.clean(line)}\n" for line in log.splitlines()))
    return DONE
