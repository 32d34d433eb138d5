"""odcctl node drain | resume: take nodes out of use and back; for operators."""

from __future__ import annotations

from typing import Any

from odcctl.exits import DONE, REFUSED, Refused
from odcctl.http.client import Client, quote
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.complaints import describe
from odcctl.text.hostlist import unfold

STATES = {"drain": "DRAIN", "resume": "UP", "down": "DOWN"}


def run(arguments: Arguments) -> int:
    action, *lists = arguments.words
    if action not in STATES:
        arguments.command.wrong(f'"{action}" is not drain, resume or down')
    reason = arguments.value("reason")
    if action == "resume" and reason:
        arguments.command.wrong("resume takes no --reason")
    if action != "resume" and not reason:
        arguments.command.wrong(f"{action} needs a --reason: users who wait will read it")
    body: dict[str, Any] = {"state": STATES[action], "reason": reason}
    client = Client.of(arguments)
    answers: list[Any] = []
    code = DONE
    for name in [name for text in lists for name in unfold(text)]:
        try:
            answers.append(client.patch(f"/v1/nodes/{quote(name)}", body).json())
        except Refused as refused:
            render.note(describe(refused, f"node {name} not changed"))
            code = REFUSED
            continue
        if arguments.form == "table":
            render.put(f"node {name}: {_told(action)}\n")
        elif arguments.form == "quiet":
            render.put(f"{name}\n")
    if arguments.form == "json":
        render.put_json(answers[0] if len(answers) == 1 else answers)
    return code


def _told(action: str) -> str:
    return {
        "drain": "its jobs run on, no new ones start",
        "resume": "takes jobs again",
        "down": "out of use",
    }[action]


COMMAND = Command(
    name="node",
    summary="Take nodes out of use, and back: drain, resume, down",
    usage="node drain|resume|down NAME... [--reason TEXT]",
    words=(2, None),
    notes=(
        "NAME may be a list as gpu-[01-03]. A draining node finishes its jobs and "
        "accepts no new ones."
    ),
    options=(Option("reason", None, "TEXT", "why; shown by nodes and to users who wait"),),
    example="odcctl node drain gpu-[01-02] --reason 'new driver'\nodcctl node resume gpu-01",
    run=run,
)
