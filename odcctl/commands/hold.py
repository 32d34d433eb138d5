"""odcctl hold: keep pending jobs from starting."""

from __future__ import annotations

import typer

from odcctl.changes import print_outcomes
from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import JobIds
from odcctl.text.jobs import check_selectors

app = new_app()


@app.command(cls=Verb, epilog="odcctl hold 7 8_[1-4]")
def hold(ctx: typer.Context, ids: JobIds) -> int:
    """Keep pending jobs from starting."""
    call = Call.of(ctx, failing="nothing held")
    body = {"ids": check_selectors(ids)}
    return print_outcomes(call.client().post("/v1/jobs/hold", body).json(), call.form, "not held")
