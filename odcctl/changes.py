"""Shared by hold, release, requeue, cancel and update: request a change, print its outcome."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.exits import DONE, REFUSED
from odcctl.text.complaints import complaint, problem_text
from odcctl.text.render import note, put, put_json

MAX_COMPLAINTS = 20
_IMPOSSIBLE = re.compile("^cannot be [a-z]+: (?=it )")
_OUTCOME_TEXTS = {"ended": "had already ended", "not_held": "is not held"}


def print_outcomes(answer: Mapping[str, Any], form: str, what: str) -> int:
    """Print the outcomes; return REFUSED if a job was refused. what: as in "not cancelled"."""
    outcomes: Sequence[Mapping[str, Any]] = answer["jobs"]
    refused = [o for o in outcomes if o["outcome"] == "refused"]
    done = [o for o in outcomes if o["outcome"] != "refused"]
    if form == "json":
        put_json(answer)
    elif form == "quiet":
        put("".join(f"{outcome['job_id']}\n" for outcome in done))
    elif outcomes:
        put(_summary(done))
    else:
        note("odcctl: no job matches")
    for outcome in refused[:MAX_COMPLAINTS]:
        note(problem_text(_problem(outcome, what)) if form == "json" else _complain(outcome, what))
    if len(refused) > MAX_COMPLAINTS:
        note(f"odcctl: {len(refused) - MAX_COMPLAINTS} more jobs {what}")
    return REFUSED if refused else DONE


def _complain(outcome: Mapping[str, Any], what: str) -> str:
    why = str(outcome.get("message") or "refused")
    predicate = why.removeprefix(f"job {outcome['job_id']} ")
    if predicate != why:
        # "cannot be held: it is running" repeats what "not held" already says.
        why = _IMPOSSIBLE.sub("", predicate)
        why = why if why != predicate else f"it {predicate}"
    return complaint(why, outcome.get("code"), outcome.get("hint"), f"job {_name(outcome)} {what}")


def _problem(outcome: Mapping[str, Any], what: str) -> dict[str, Any]:
    return {
        "type": "/docs#Refused", "title": "Refused", "status": None, "job_id": outcome["job_id"],
        "detail": f"job {_name(outcome)} {what}: {outcome.get('message') or 'refused'}",
        "hint": outcome.get("hint"), "code": outcome.get("code"),
    }  # fmt: skip


def _summary(done: Sequence[Mapping[str, Any]]) -> str:
    """One line for each kind of outcome, with the id of a single job or the number of jobs."""
    by_outcome: dict[str, list[Mapping[str, Any]]] = {}
    for outcome in done:
        by_outcome.setdefault(str(outcome["outcome"]), []).append(outcome)
    lines: list[str] = []
    for outcome_name, outcomes in by_outcome.items():
        subject = f"job {_name(outcomes[0])}" if len(outcomes) == 1 else f"{len(outcomes)} jobs"
        lines.append(f"{subject} {_OUTCOME_TEXTS.get(outcome_name, outcome_name)}\n")
    return "".join(lines)


def _name(outcome: Mapping[str, Any]) -> str:
    task, tasks = outcome.get("array_task_id"), outcome.get("array_tasks")
    if tasks:
        return f"{outcome['job_id']}_{tasks if tasks.isdecimal() else f'[{tasks}]'}"
    return str(outcome["job_id"]) if task is None else f"{outcome['job_id']} (task {task})"
