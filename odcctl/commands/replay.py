"""odcctl replay: decide a pass once more from what it read then, and compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.commands.partition import depth
from odcctl.exits import DONE, REFUSED
from odcctl.http.client import Client, quote
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.jobs import local_times

DIGITS = 16  # of a digest; --json has all
HEADER = ("WHAT", "JOB", "THEN", "NOW")
NAMES = {"start": "start", "planned": "planned start", "preempt": "preempted",
         "refusal": "refusal", "limit": "limit"}  # fmt: skip


def run(arguments: Arguments) -> int:
    number = arguments.words[0]
    if not number.isdecimal():
        arguments.command.wrong(f'a pass has a number, not "{number}"')
    params = {
        "policy": arguments.value("policy"),
        "plan_depth": str(depth(arguments)) if arguments.flag("plan-depth") else None,
    }
    reply = Client.of(arguments).get(f"/v1/passes/{quote(number)}/replay", params)
    answer: dict[str, Any] = reply.json()
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put("".join(f"{name}\n" for name in _jobs(answer)))
    else:
        _put_table(answer, reply.now_s, other=any(params.values()))
    return DONE if any(params.values()) or _holds(answer) else REFUSED


def _holds(answer: Mapping[str, Any]) -> bool:
    return answer["equal"] and answer["chain"] is not False


def _jobs(answer: Mapping[str, Any]) -> list[str]:
    kinds = ("start", "planned", "preempt")
    return list(dict.fromkeys(d["name"] for d in answer["differences"] if d["kind"] in kinds))


def _whom(difference: Mapping[str, Any]) -> str:
    """The job; of a request refused, or of a class over a limit, the first that waits with it."""
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
        lines = [f"{pass_name} decides the same: {decided}"]
    elif other:
        same = "" if answer["differences"] else "; no difference"
        lines = [f"{pass_name} by these rules: {decided}{same}"]
    elif rules["then"] != rules["now"]:
        lines = [
            f"{pass_name} was decided by other rules: {rules['then']} then, {rules['now']} now"
        ]
    else:
        which = "decides otherwise" if answer["input"]["equal"] else "reads something else"
        lines = [f"{pass_name} {which}: that is a fault of odc, or somebody changed its tables"]
    for what in ("input", "output"):
        told = answer[what]
        then, now = told["then"][:DIGITS], told["now"][:DIGITS]
        parts = told.get("differs")
        other_now = f", now {now}" if not parts else f": {', '.join(parts)} differ"
        lines.append(f"  {what} {then}" + ("" if told["equal"] else other_now))
    if answer["chain"] is False:
        lines.append("  its digests do not follow from the pass before: somebody changed them")
    render.put("\n".join(lines) + "\n")
    rows = [
        (
            NAMES[d["kind"]], _whom(d), local_times(d["then"] or "-", now_s),
            local_times(d["now"] or "-", now_s),
        )
        for d in answer["differences"]
    ]  # fmt: skip
    if rows:
        render.put("\n" + render.table(HEADER, rows, render.terminal_width()))


COMMAND = Command(
    name="replay",
    summary="Decide a pass of the scheduler once more from what it read then, and compare",
    usage="replay PASS [--policy NAME] [--plan-depth N]",
    words=(1, 1),
    notes=(
        "By the same rules a pass decides the same: the exit code is 0 when it does, else 1. With "
        "--policy or --plan-depth the differences are shown: what would have started and been "
        "promised. Starts are partition:node/mask of GPUs. `odcctl plan --diff` prints the numbers "
        "of passes, `odcctl diag` the last one."
    ),
    options=(
        Option("policy", None, "NAME", "as if every partition had this policy"),
        Option("plan-depth", None, "N", "as if so many starts were protected; all"),
    ),
    example="odcctl replay 38\nodcctl replay 38 --policy sjf",
    run=run,
)
