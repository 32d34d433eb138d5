"""odcctl wait: wait until jobs have ended, without polling."""

from __future__ import annotations

from typing import Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import JobIds
from odcctl.ended import explain_ends
from odcctl.exits import job_exit_code
from odcctl.follow import Patience, wait_for_end
from odcctl.http.client import quote
from odcctl.text import jobs, render

app = new_app()


@app.command(cls=Verb, epilog="odcctl wait 7 8_[1-4] && echo all good")
def wait(ctx: typer.Context, ids: JobIds) -> int:
    """Wait until jobs have ended, and exit with their exit code.

    For an array, waits for all of its tasks. Exits with the job's exit code, with 128+n if
    signal n ended it, with the highest of several jobs, and with 4 if it ended without an exit
    code (for example, cancelled before it started).
    """
    call, patience = Call.of(ctx), Patience()
    client = call.client()
    selectors = jobs.check_selectors(ids)
    # Report an unknown id now, not when the jobs before it have ended.
    for selector in selectors[1:]:
        client.get(f"/v1/jobs/{quote(selector)}", {"wait": 0})
    ended: list[dict[str, Any]] = []
    for selector in selectors:
        ended += wait_for_end(client, selector, patience)
    if call.form == "json":
        render.put_json({"jobs": ended, "ended": True})
    elif call.form == "quiet":
        call.put_ids(job["id"] for job in ended)
    else:
        explain_ends(client, ended)
    return job_exit_code(ended)
