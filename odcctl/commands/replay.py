"""odcctl replay: repeat a pass with its recorded input, and compare the decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import PlanDepth
from odcctl.exits import DONE, REFUSED
from odcctl.http.client import quote
from odcctl.text import render
from odcctl.text.jobs import local_times

DIGITS = 16  # of a digest; --json has all
HEADER = ("WHAT", "JOB", "THEN", "NOW")
NAMES = {"start": "start", "planned": "planned start", "preempt": "preempted",
         "refusal": "refusal", "limit": "limit"}  # fmt: skip

app = new_app()


@app.command(cls=Verb, epilog="odcctl replay 38\nodcctl replay 38 --policy sjf")
def replay(
    ctx: typer.Context,
    number: Annotated[str, typer.Argument(metavar="PASS", help="the number of the pass")],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", metavar="NAME", help="decide as if every partition had this policy",
            autocompletion=complete.policies,
        ),
    ] = None,
    plan_depth: PlanDepth = None,
) -> int:  # fmt: skip
    """Repeat the decision of a pass from its recorded input, and compare.

    Under the same rules the result is the same: the exit code is 0 if it is, and otherwise 1.
    --policy and --plan-depth show the differences under other rules: which jobs would have
    started or got a planned start. A start is shown as partition:node/mask of GPUs. `odcctl
    plan --diff` prints numbers of passes, and `odcctl diag` that of the last one.
    """
    call = Call.of(ctx)
    if not number.isdecimal():
        call.wrong(f'"{number}" is not the number of a pass')
    params = {"policy": policy, "plan_depth": None if plan_depth is None else str(plan_depth)}
    reply = call.client().get(f"/v1/passes/{quote(number)}/replay", params)
    answer: dict[str, Any] = reply.json()
    if call.form == "json":
        call.put_reply(reply)
    elif call.form == "quiet":
        call.put_ids(_jobs(answer))
    else:
        _put_table(answer, reply.now_s, other=any(params.values()))
    return DONE if any(params.values()) or _is_reproduced(answer) else REFUSED


def _is_reproduced(answer: Mapping[str, Any]) -> bool:
    return answer["equal"] and answer["chain"] is not False


def _jobs(answer: Mapping[str, Any]) -> list[str]:
    kinds = ("start", "planned", "preempt")
    return list(dict.fromkeys(d["name"] for d in answer["differences"] if d["kind"] in kinds))


def _subject(difference: Mapping[str, Any]) -> str:
    """The job; of a refused request or a class over a limit, the first job that waits for it."""
    first, more = difference["job_id"], (difference["jobs"] or 1) - 1
    if first is None:
        return difference["name"]
    return f"{first} and {more} like it" if more else str(first)


def _put_table(answer: Mapping[str, Any], now_s: float, *, other: bool) -> None:
    pass_name = f"pass {answer['pass_id']} of {render.when(answer['at'])}"
    rules = answer["policy"]
    decided = (
        f"{render.counted(answer['starts'], 'start')}, "
        f"{render.counted(answer['planned'], 'planned start')}"
    )
    if answer["equal"]:
        lines = [f"{pass_name}: replay gives the same result: {decided}"]
    elif other:
        same = "" if answer["differences"] else ", the same as recorded"
        lines = [f"{pass_name} under these rules: {decided}{same}"]
    elif rules["then"] != rules["now"]:
        lines = [
            f"{pass_name} was decided under other rules: {rules['then']} then, {rules['now']} now"
        ]
    else:
        which = "result" if answer["input"]["equal"] else "input"
        lines = [
            f"{pass_name}: replay has another {which}: odc has a bug, or someone changed its tables"
        ]
    for what in ("input", "output"):
        digests = answer[what]
        then, now = digests["then"][:DIGITS], digests["now"][:DIGITS]
        parts = digests.get("differs")
        other_now = f", now {now}" if not parts else f": {', '.join(parts)} differ"
        lines.append(f"  {what} {then}" + ("" if digests["equal"] else other_now))
    if answer["chain"] is False:
        lines.append(
            "  its digests do not follow from those of the previous pass: someone changed them"
        )
    render.put("\n".join(lines) + "\n")
    rows = [
        (
            NAMES[d["kind"]], _subject(d), local_times(d["then"] or "-", now_s),
            local_times(d["now"] or "-", now_s),
        )
        for d in answer["differences"]
    ]  # fmt: skip
    if rows:
        render.put("\n" + render.table(HEADER, rows, render.terminal_width()))
