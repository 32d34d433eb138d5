"""odcctl node drain | resume | down | create | update | delete: for operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Verb, new_app
from odcctl.exits import DONE, REFUSED, Refused
from odcctl.http.client import Reply, quote
from odcctl.text import render
from odcctl.text.hostlist import unfold
from odcctl.text.sizes import mebibytes

app = new_app(
    Actions,
    "Take nodes out of service and return them: drain, resume, down. Declare nodes: create, "
    "update, delete.\n\n"
    "A draining node finishes its jobs and accepts no new ones. Only nodes of the local executor "
    "can be declared; they are for accounting only, as those of `odcd up --node`.",
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
Type = Annotated[
    str | None,
    typer.Option(
        "--type", "-t", metavar="TYPE", help="its GPU type; cpu-x86 or cpu-arm without GPUs",
        autocompletion=complete.gpu_types,
    ),
]  # fmt: skip
Gpus = Annotated[int | None, typer.Option("--gpus", metavar="N", help="its number of GPUs")]
Cpus = Annotated[
    int | None,
    typer.Option("--cpus", metavar="N", help="its number of CPUs; default: its share by the type"),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--mem", metavar="SIZE", help="its memory, as 512G; default: its share by the type"
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features", metavar="NAMES",
        help="features that jobs can request with --constraint; update: '' removes all",
    ),
]  # fmt: skip
Zone = Annotated[str | None, typer.Option("--zone", metavar="ZONE", help="its zone")]


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


@app.command(
    "create", cls=Verb, epilog="odcctl node create gpu-[01-04] --type h100 --gpus 8 --features nvme"
)
def create(
    ctx: typer.Context, names: Names, gpu_type: Type = None, gpus: Gpus = None, cpus: Cpus = None,
    mem: Memory = None, features: Features = None, zone: Zone = None,
) -> int:  # fmt: skip
    """Declare nodes. They stay until they are deleted, also when odcd starts again."""
    call = Call.of(ctx)
    if gpu_type is None or gpus is None:
        call.wrong("give the nodes' --type and --gpus")
    body = _properties(call, gpu_type, gpus, cpus, mem, features, zone)
    return _each(
        call, names, "created",
        lambda name: call.client().post("/v1/nodes", {"name": name, **body}),
    )  # fmt: skip


@app.command("update", cls=Verb, epilog="odcctl node update gpu-01 --features nvme,ib")
def update(
    ctx: typer.Context, names: Names, gpu_type: Type = None, gpus: Gpus = None, cpus: Cpus = None,
    mem: Memory = None, features: Features = None, zone: Zone = None,
) -> int:  # fmt: skip
    """Change declared nodes. The size of a node changes only while it has no jobs."""
    call = Call.of(ctx)
    body = _properties(call, gpu_type, gpus, cpus, mem, features, zone)
    if not body:
        call.wrong("name at least one property to change")
    return _each(
        call, names, "changed", lambda name: call.client().patch(f"/v1/nodes/{quote(name)}", body)
    )


@app.command("delete", cls=Verb, epilog="odcctl node delete gpu-[03-04]")
def delete(ctx: typer.Context, names: Names) -> int:
    """Delete declared nodes without jobs. Drain a node that has jobs first."""
    call = Call.of(ctx)
    return _each(
        call, names, "deleted", lambda name: call.client().delete(f"/v1/nodes/{quote(name)}")
    )


def _properties(
    call: Call, gpu_type: str | None, gpus: int | None, cpus: int | None, mem: str | None,
    features: list[str] | None, zone: str | None,
) -> dict[str, Any]:  # fmt: skip
    """Those that were given, as the API takes them."""
    given = {"gpu_type": gpu_type, "gpus": gpus, "cpus": cpus}
    body: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if mem is not None:
        body["mem_mib"] = mebibytes(mem)
        if not body["mem_mib"]:
            call.wrong(f'--mem takes a size, as 512G, not "{mem}"')
    if features is not None:
        body["features"] = [word for text in features for word in text.split(",") if word]
    if zone is not None:
        body["zone"] = zone or None
    return body


def _given(ctx: typer.Context, reason: str | None) -> str:
    if not reason:
        Call.of(ctx).wrong(f"{ctx.info_name} requires --reason: users whose jobs wait will read it")
    return reason


def _set(
    ctx: typer.Context, names: list[str], state: str, reason: str | None, outcome: str
) -> int:  # fmt: skip
    call, body = Call.of(ctx), {"state": state, "reason": reason}
    return _each(
        call, names, outcome, lambda name: call.client().patch(f"/v1/nodes/{quote(name)}", body)
    )


def _each(call: Call, names: list[str], outcome: str, send: Callable[[str], Reply]) -> int:
    """One request per node; a refused one does not stop the others."""
    answers: list[Any] = []
    code = DONE
    for name in [name for text in names for name in unfold(text)]:
        try:
            answers.append(send(name).json())
        except Refused as refused:
            call.complain(refused, f"node {name} not {_refused(outcome)}")
            code = REFUSED
            continue
        if call.form != "json":
            render.put(f"{name}\n" if call.form == "quiet" else f"node {name}: {outcome}\n")
    if call.form == "json":
        render.put_json(answers[0] if len(answers) == 1 else answers)
    return code


def _refused(outcome: str) -> str:
    return outcome if outcome in ("created", "deleted") else "changed"
