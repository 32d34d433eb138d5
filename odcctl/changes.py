"""What hold, release, requeue, cancel and update share: ask for a change, tell what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.exits import DONE, REFUSED, complaint
from odcctl.render import note, put, put_json

MAX_COMPLAINTS = 20


def tell(answer: Mapping[str, Any], form: str, what: str) -> int:
    """Print the outcomes; REFUSED when a job was refused. what: "not held", "not cancelled"."""
    outcomes: Sequence[Mapping[str, Any]] = answer["jobs"]
    refused = [o for o in outcomes if o["outcome"] == "refused"]
    done = [o for o in outcomes if o["outcome"] != "refused"]
    if form == "json":
        put_json(answer)
    elif form == "quiet":
        put("".join(f"{_name(outcome)}\n" for outcome in done))
    else:
        put(_summary(done))
    for outcome in refused[:MAX_COMPLAINTS]:
        text = outcome.get("message") or "refused"
        about = f"job {_name(outcome)} {what}"
        note(complaint(text, outcome.get("code"), outcome.get("hint"), about))
    if len(refused) > MAX_COMPLAINTS:
        note(f"odcctl: {len(refused) - MAX_COMPLAINTS} more jobs {what}")
    return REFUSED if refused else DONE


def _summary(done: Sequence[Mapping[str, Any]]) -> str:
    if len(done) == 1:
        return f"job {_name(done[0])} {_word(done[0])}\n"
    counts = Counter(map(_word, done))
    return "".join(f"{count} jobs {word}\n" for word, count in counts.items())


def _word(outcome: Mapping[str, Any]) -> str:
    return str(outcome["outcome"]).replace("_", " ")


def _name(outcome: Mapping[str, Any]) -> str:
    task = outcome.get("array_task_id")
    return str(outcome["job_id"]) if task is None else f"{outcome['job_id']}_{task}"
