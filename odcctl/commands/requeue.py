"""odcctl requeue: stop running jobs and put them back into the queue; submit ended ones again."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from odcctl.changes import print_outcomes
from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import JobIds
from odcctl.exits import Refused
from odcctl.http.client import Client, quote
from odcctl.text.jobs import check_selectors
from odcctl.text.render import note

app = new_app()

ENDED = "has ended"


@app.command(cls=Verb, epilog="odcctl requeue 7 --hold\nodcctl requeue --force 8_3")
def requeue(
    ctx: typer.Context,
    ids: JobIds,
    hold: Annotated[bool, typer.Option("--hold", help="also hold them")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="submit jobs that have ended again, as new jobs")
    ] = False,
) -> int:
    """Stop running jobs, and return them to the queue.

    A job that has ended keeps its number and its end. With --force, it is submitted again, with
    the script, environment and options that it had, and gets a new number.
    """
    call = Call.of(ctx, failing="nothing requeued")
    selectors = check_selectors(ids)
    if not force:
        body = {"ids": selectors, "hold": hold}
        answer = call.client().post("/v1/jobs/requeue", body).json()
        return print_outcomes(answer, call.form, "not requeued")
    outcomes: list[dict[str, Any]] = []
    for selector in selectors:
        outcomes += _requeue_or_submit(call.client(), selector, hold)
    for one in outcomes if call.form == "table" else ():
        if "new_job_id" in one:
            one["outcome"] = f"submitted again as job {one['new_job_id']}"
    return print_outcomes({"jobs": outcomes}, call.form, "not requeued")


def _requeue_or_submit(client: Client, selector: str, hold: bool) -> list[dict[str, Any]]:
    """The outcomes. Of a job that was submitted again, new_job_id is its new number."""
    path, body = f"/v1/jobs/{quote(selector)}", {"hold": hold}
    outcomes: list[dict[str, Any]] = client.post(f"{path}/requeue", body).json()["jobs"]
    if not all(str(one["message"]).endswith(ENDED) for one in outcomes):
        return outcomes
    number, _, tasks = selector.partition("_")
    one = outcomes[0] | {"array_task_id": None, "job_id": int(number)}
    one["array_tasks"] = tasks.strip("[]") or None
    try:
        made = client.post_once(f"{path}/resubmit", body).json()
    except Refused as refused:
        return [one | {"code": refused.code, "message": refused.message, "hint": refused.hint}]
    for warning in made["warnings"]:
        note(f"odcctl: {warning}")
    done = {"outcome": "submitted", "code": None, "message": None, "hint": None}
    return [one | done | {"new_job_id": made["id"]}]
