"""odcctl why: the reasons why a job waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import AsOf, JobId
from odcctl.ended import find_ends
from odcctl.exits import DONE
from odcctl.http.client import quote
from odcctl.text import render
from odcctl.text.jobs import ENDED, cause_text, check_selector, local_times

FEW_SCORED = 20
"""With fewer scored predictions, the daemon has no outcomes to base an interval on."""

app = new_app()


@app.command(cls=Verb, epilog="odcctl why 4130\nodcctl why 4130 --as-of 2h")
def why(ctx: typer.Context, job: JobId, as_of: AsOf = None) -> int:
    """Explain why a job has not started, and when each cause ends."""
    call = Call.of(ctx)
    path = f"/v1/jobs/{quote(check_selector(job))}/why"
    client = call.client()
    reply = client.get(path, {"as_of": as_of})
    if call.form == "json":
        call.put_reply(reply)
    elif call.form == "quiet":
        render.put(f"{reply.json().get('reason') or ''}\n")
    else:
        # The id as it was given: a task's own job id is another number.
        lines = explain(reply.json() | {"job_id": job}, reply.now_s)
        if as_of is None and reply.json()["state"] in ENDED:
            lines += [f"  {text}" for text in find_ends(client, job)]
            if reply.json().get("reason") == "NonZeroExitCode":
                lines.append(f"  its output: odcctl logs {job}")
        render.put("\n".join(lines) + "\n")
    return DONE


def explain(answer: Mapping[str, Any], now_s: float) -> list[str]:
    reason = f" ({answer['reason']})" if answer.get("reason") else ""
    lines = [f"job {answer['job_id']} is {answer['state']}{reason}"]
    for at, cause in enumerate(answer.get("why") or (), start=1):
        lines.append(f"  {at}. {cause_text(cause, now_s)}")
    lines += [f"  {local_times(kept['text'], now_s)}" for kept in answer.get("kept") or ()]
    if answer.get("starts_now"):
        lines.append(f"  {render.clean(answer['starts_now']['text'])}")
    planned = answer.get("planned_start_at")
    if planned:
        lines.append(f"  planned to start {render.clock(planned, now_s)}")
    eta = answer.get("eta")
    if eta and eta.get("p10") and eta.get("p90"):
        word = "" if eta.get("exact") else ", roughly"
        scored = answer.get("eta_scored")
        if scored is not None and scored < FEW_SCORED:
            word += (
                f"; based on only {render.counted(scored, 'scored prediction')}"
                if scored
                else "; no prediction has been scored yet"
            )
        lines.append(
            f"  expected to start {render.clock(eta['p50'], now_s)} (between "
            f"{render.clock(eta['p10'], now_s)} and {render.clock(eta['p90'], now_s)}{word})"
        )
    return lines
