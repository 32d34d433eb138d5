"""odcctl release: allow held jobs to start again."""

from __future__ import annotations

import typer

from odcctl.changes import print_outcomes
from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import JobIds
from odcctl.text.jobs import check_selectors

app = new_app()


@app.command(cls=Verb, epilog="odcctl release 7")
def release(ctx: typer.Context, ids: JobIds) -> int:
    """Allow held jobs to start again."""
    call = Call.of(ctx, failing="nothing released")
    body = {"ids": check_selectors(ids)}
    return print_outcomes(
        call.client().post("/v1/jobs/release", body).json(), call.form, "not released"
    )
