"""odcctl checkpoint: report that a running job has written a checkpoint."""

from __future__ import annotations

from typing import Annotated

import typer

from odcctl.changes import print_outcomes
from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.http.client import quote
from odcctl.text.jobs import check_selector

app = new_app()


@app.command(cls=Verb, epilog="odcctl checkpoint")
def checkpoint(
    ctx: typer.Context,
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", envvar="ODC_JOB_ID",
            help="the job; inside a job, the default is that job",
            show_envvar=False, autocompletion=complete.jobs,
        ),
    ] = None,
) -> int:  # fmt: skip
    """Report that a running job has written a checkpoint.

    Preemption ends the jobs that would lose the least work. Work before the last reported
    checkpoint does not count as lost.
    """
    call = Call.of(ctx, failing="nothing checkpointed")
    if not job:
        call.wrong("outside of a job, an ID is required")
    path = f"/v1/jobs/{quote(check_selector(job))}/checkpoint"
    return print_outcomes(call.client().post(path, {}).json(), call.form, "not checkpointed")
