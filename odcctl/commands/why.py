"""odcctl why: what keeps a job from starting, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.exits import DONE
from odcctl.http.client import Client, quote
from odcctl.options import Arguments, Command
from odcctl.text import render
from odcctl.text.jobs import cause_text, check_selector
from odcctl.text.time_args import AS_OF, past


def run(arguments: Arguments) -> int:
    job = check_selector(arguments.words[0])
    reply = Client.of(arguments).get(
        f"/v1/jobs/{quote(job)}/why", {"as_of": past(arguments, "as-of")}
    )
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put(f"{reply.json().get('reason') or ''}\n")
    else:
        render.put("\n".join(explain(reply.json(), reply.now_s)) + "\n")
    return DONE


def explain(answer: Mapping[str, Any], now_s: float) -> list[str]:
    reason = f" ({answer['reason']})" if answer.get("reason") else ""
    lines = [f"job {answer['job_id']} is {answer['state']}{reason}"]
    for at, cause in enumerate(answer.get("why") or (), start=1):
        lines.append(f"  {at}. {cause_text(cause, now_s)}")
    planned = answer.get("planned_start_at")
    if planned:
        lines.append(f"  planned to start {render.clock(planned, now_s)}")
    eta = answer.get("eta")
    if eta and eta.get("p10") and eta.get("p90"):
        word = "" if eta.get("exact") else ", roughly"
        lines.append(
            f"  likely to start {render.clock(eta['p50'], now_s)} (between "
            f"{render.clock(eta['p10'], now_s)} and {render.clock(eta['p90'], now_s)}{word})"
        )
    return lines


COMMAND = Command(
    name="why",
    summary="Say what keeps a job from starting, and until when",
    usage="why ID [OPTIONS]",
    words=(1, 1),
    takes_jobs=True,
    options=(AS_OF,),
    example="odcctl why 4130\nodcctl why 4130 --as-of 2h",
    run=run,
)
