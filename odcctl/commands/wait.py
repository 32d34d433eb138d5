"""odcctl wait: until jobs have ended, without polling."""

from __future__ import annotations

from typing import Any

from odcctl.exits import job_exit_code
from odcctl.follow import Patience, wait_for_end
from odcctl.http.client import Client, quote
from odcctl.options import Arguments, Command
from odcctl.text import jobs, render


def run(arguments: Arguments) -> int:
    client, patience = Client.of(arguments), Patience()
    selectors = jobs.check_selectors(arguments.words)
    # Report an unknown id now, not when the jobs before it have ended.
    for selector in selectors[1:]:
        client.get(f"/v1/jobs/{quote(selector)}", {"wait": 0})
    ended: list[dict[str, Any]] = []
    for selector in selectors:
        ended += wait_for_end(client, selector, patience)
    if arguments.form == "json":
        render.put_json({"jobs": ended, "ended": True})
    elif arguments.form == "quiet":
        render.put("".join(f"{job['id']}\n" for job in ended))
    return job_exit_code(ended)


COMMAND = Command(
    name="wait",
    summary="Wait until jobs have ended, and exit with their code",
    usage="wait ID...",
    words=(1, None),
    takes_jobs=True,
    notes=(
        "An array is waited for with all its tasks. Exits with the job's code, 128+n when "
        "signal n ended it, the highest of several, and 4 when it ended without one (cancelled "
        "before it started)."
    ),
    example="odcctl wait 7 8_[1-4] && echo all good",
    run=run,
)
