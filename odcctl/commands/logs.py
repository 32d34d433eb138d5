"""odcctl logs: the output of a job."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import JobId
from odcctl.ended import explain_silence, explain_wait
from odcctl.exits import DONE, Failure
from odcctl.follow import Patience, output
from odcctl.http.client import Client, Params
from odcctl.resumed import ByLabel, ByPosition
from odcctl.task_logs import follow_tasks, is_array, print_tasks, tasks_of
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
    --follow continues until the job ends; for an array, until all of its tasks have ended.
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
    if follow:
        return _follow(client, job, params)
    tasks = tasks_of(client, job)
    if tasks is not None:
        return print_tasks(client, tasks, params)
    return _copy(client, job, params, output(client, job, params, Patience(), resumed=None))


def _follow(client: Client, job: str, params: Params) -> int:
    """Copy the output until the job, or all tasks of the array, have ended."""

    def report_wait() -> None:
        explain_wait(client, job)

    if is_array(client, job):
        lines = ByLabel()
        pieces = output(client, job, params, Patience(), resumed=lines, when_silent=report_wait)
        return follow_tasks(client, job, pieces, lines)
    resumed = None if params["rank"] == "all" else ByPosition()
    pieces = output(client, job, params, Patience(), resumed=resumed, when_silent=report_wait)
    return _copy(client, job, params, pieces)


def _copy(client: Client, job: str, params: Params, pieces: Iterable[bytes]) -> int:
    wrote = False
    for piece in pieces:
        wrote = True
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    if not wrote:
        explain_silence(client, job, stderr=params["stream"] == "stderr")
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
