"""odcctl attach: the terminal of a job that was submitted with one."""

from __future__ import annotations

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import JobId
from odcctl.exits import DONE
from odcctl.text.jobs import check_selector
from odcctl.text.render import note

app = new_app()


@app.command(cls=Verb, epilog="odcctl attach 7")
def attach(ctx: typer.Context, job: JobId) -> int:
    """Attach to the terminal of a running job.

    For jobs of `odcctl run --pty`. Ctrl-] d detaches, and the job continues. Press Ctrl-] twice
    to send Ctrl-] to the job. Exits with the job's exit code when the job ends.
    """
    from odcctl import terminal  # imports websockets

    call = Call.of(ctx, failing="not attached")
    check_selector(job)
    if call.form != "table":
        call.wrong("this command opens a terminal, so it has no other output format")
    attached = f"odcctl: attached to job {job}; {terminal.DETACH_KEYS} detaches"
    try:
        return terminal.attach(call.client(), job, lambda: note(attached))
    except terminal.Detached:
        note(f"\nodcctl: detached; job {job} keeps running")
        return DONE
