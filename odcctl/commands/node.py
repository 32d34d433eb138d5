"""odcctl node drain | resume | down: take nodes out of use and back; for operators."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Verb, new_app
from odcctl.exits import DONE, REFUSED, Refused
from odcctl.http.client import quote
from odcctl.text import render
from odcctl.text.hostlist import unfold

app = new_app(
    Actions,
    "Take nodes out of service and return them: drain, resume, down.\n\n"
    "A draining node finishes its jobs and accepts no new ones.",
)

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...",
        help="a node, or a list such as gpu-[01-03]",
        autocompletion=complete.nodes,
    ),
]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        metavar="TEXT",
        help="the reason; shown by `odcctl nodes` and to users whose jobs wait",
    ),
]


@app.command(cls=Verb, epilog="odcctl node drain gpu-[01-02] --reason 'new driver'")
def drain(ctx: typer.Context, names: Names, reason: Reason = None) -> int:
    """Let nodes finish their jobs, and start no new ones there."""
    return _set(
        ctx,
        names,
        "DRAIN",
        _given(ctx, reason),
        "drained; its jobs continue, and no new jobs start",
    )


@app.command(cls=Verb, epilog="odcctl node resume gpu-01")
def resume(ctx: typer.Context, names: Names) -> int:
    """Let nodes accept jobs again."""
    return _set(ctx, names, "UP", None, "resumed; it accepts jobs again")


@app.command(cls=Verb, epilog="odcctl node down gpu-01 --reason 'power supply'")
def down(ctx: typer.Context, names: Names, reason: Reason = None) -> int:
    """Take lost nodes out of service."""
    return _set(ctx, names, "DOWN", _given(ctx, reason), "down; no new jobs start")


def _given(ctx: typer.Context, reason: str | None) -> str:
    if not reason:
        Call.of(ctx).wrong(f"{ctx.info_name} requires --reason: users whose jobs wait will read it")
    return reason


def _set(
    ctx: typer.Context, names: list[str], state: str, reason: str | None, outcome: str
) -> int:  # fmt: skip
    call, code = Call.of(ctx), DONE
    answers: list[Any] = []
    for name in [name for text in names for name in unfold(text)]:
        try:
            body = {"state": state, "reason": reason}
            answers.append(call.client().patch(f"/v1/nodes/{quote(name)}", body).json())
        except Refused as refused:
            call.complain(refused, f"node {name} not changed")
            code = REFUSED
            continue
        if call.form != "json":
            render.put(f"{name}\n" if call.form == "quiet" else f"node {name}: {outcome}\n")
    if call.form == "json":
        render.put_json(answers[0] if len(answers) == 1 else answers)
    return code
