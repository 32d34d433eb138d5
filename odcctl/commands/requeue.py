"""odcctl requeue: stop running jobs and put them back into the queue."""

from __future__ import annotations

from typing import Annotated

import typer

from odcctl.changes import print_outcomes
from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import JobIds
from odcctl.text.jobs import check_selectors

app = new_app()


@app.command(cls=Verb, epilog="odcctl requeue 7 --hold")
def requeue(
    ctx: typer.Context,
    ids: JobIds,
    hold: Annotated[bool, typer.Option("--hold", help="also hold them")] = False,
) -> int:
    """Stop running jobs, and return them to the queue."""
    call = Call.of(ctx, failing="nothing requeued")
    body = {"ids": check_selectors(ids), "hold": hold}
    return print_outcomes(
        call.client().post("/v1/jobs/requeue", body).json(), call.form, "not requeued"
    )
