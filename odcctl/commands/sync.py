"""odcctl sync: continue what `odcctl run --sync` began."""

from __future__ import annotations

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import JobId
from odcctl.exits import DONE, Failure
from odcctl.text.jobs import check_selector
from odcctl.text.render import note

app = new_app()


@app.command(cls=Verb, epilog="odcctl sync 7")
def sync(ctx: typer.Context, job: JobId) -> int:
    """Fetch the results of a job of `odcctl run --sync` that was interrupted.

    Run it on the machine where the job was started. It sends the files if the job still waits for
    them, waits until its command has ended, and brings changed files back into the folder. A job
    keeps its results for 30 minutes, and on a server of this machine until they are fetched.
    """
    from odcctl.sync import kept as keeping
    from odcctl.sync.fetching import fetch_here
    from odcctl.sync.session import Session

    call = Call.of(ctx, failing="results not fetched")
    check_selector(job)
    client = call.client()
    now = client.get(f"/v1/jobs/{job}").json()["jobs"][0]
    kept = keeping.load(job, str(client.addresses[0]))
    session = Session(call.new_client, kept)
    note(f"odcctl: job {job} is {now['state']}")
    session.run()
    if session.is_complete or fetch_here(kept):
        return DONE
    raise Failure(
        f"job {job} has ended, and no longer has its results",
        "They were kept for 30 minutes. If the job ran on a machine that you can reach, look for "
        f"{kept.prefix}-* there.",
    )
