"""Guide the user to a reservation: ask for values that the command line does not give, in this
order: GPU type, GPUs, more than one node, hours, disk, Jupyter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odcctl.exits import Failure, Refused
from odcctl.http.client import Client, target
from odcctl.listing import refuse_unknown
from odcctl.reservations.availability import counts, nodes_for, wait
from odcctl.text import render
from odcctl.text.hours import MIN_HOURS, prompt_hours
from odcctl.text.jobs import local_times
from odcctl.text.prompts import agree, choose, prompt_until_valid, show

MULTINODE = """\
{gpus} {type} GPUs are {nodes} whole nodes, started together or not at all, with MASTER_ADDR and the
names of all nodes set, as torchrun needs them. A program on one node sees only the {each} GPUs of
that node."""


def guide(
    client: Client,
    types: Sequence[Mapping[str, Any]],
    request: dict[str, Any],
    *,
    jupyter: bool,
    disk: Callable[[], None],
) -> None:
    """Complete the request for a reservation. jupyter: ask whether to start it; disk: a function
    that asks for the disk."""
    if not types:
        raise Failure("the cluster has no nodes yet", "`odcctl nodes` shows them once they are up.")
    kind = _type(types, request.get("gpu_type"))
    request["gpu_type"] = kind["gpu_type"]
    if request.get("gpus") is None:
        request["gpus"] = _gpus(kind)
    agree_on_nodes(kind, request)
    if request.get("hours") is None:
        request["hours"] = prompt_hours("For how many hours", "8", MIN_HOURS)
    disk()
    if jupyter and _preview_with_jupyter(client, request):
        request["jupyter"] = agree("Start Jupyter Lab in it?")


def agree_on_nodes(kind: Mapping[str, Any], request: dict[str, Any]) -> None:
    """Ask the user to confirm more than one node."""
    if request["distributed"] or nodes_for(kind, request["gpus"]) == 1:
        return
    show(explain_nodes(kind, request["gpus"]))
    if not agree("Reserve all of them?"):
        raise Failure("a reservation of several nodes must be confirmed", _one_node(kind))
    request["distributed"] = True


def refuse_nodes(kind: Mapping[str, Any], gpus: int) -> Failure:
    """The error if there is no terminal to ask on."""
    return Failure(
        f"{gpus} {kind['gpu_type']} GPUs need {nodes_for(kind, gpus)} nodes, but --distributed was "
        "not given",
        f"{explain_nodes(kind, gpus)}\nTo reserve several nodes, add --distributed (-d). "
        f"{_one_node(kind)}",
    )


def explain_nodes(kind: Mapping[str, Any], gpus: int) -> str:
    return MULTINODE.format(
        gpus=gpus, type=kind["gpu_type"], nodes=nodes_for(kind, gpus), each=kind["gpus_per_node"]
    )


def _one_node(kind: Mapping[str, Any]) -> str:
    return f"One {kind['gpu_type']} node has {render.counted(kind['gpus_per_node'], 'GPU')}."


def _type(types: Sequence[Mapping[str, Any]], given: str | None) -> Mapping[str, Any]:
    if given is not None:
        for kind in types:
            if kind["gpu_type"].casefold() == given.casefold():
                return kind
        refuse_unknown("type", [given], (kind["gpu_type"] for kind in types))
    lines = render.table((), [_line(kind) for kind in types], render.terminal_width()).splitlines()
    free = [at for at, kind in enumerate(types) if kind["free"] and kind["gpus_per_node"]]
    show("Which type of GPU?")
    names = [kind["gpu_type"] for kind in types]
    return types[choose("Type", names, lines, free[0] if free else 0)]


def _line(kind: Mapping[str, Any]) -> list[str]:
    each = kind["gpus_per_node"]
    noun = "GPUs" if each else "nodes"
    soonest = wait(kind, min(1, each))
    parts = [f"{kind['free']} of {kind['total']} {noun} free"]
    if soonest == "now":
        parts.append(f"up to {kind['max_on_one_node']} on one node now" if each else "one node now")
    else:
        parts.append(_when(soonest))
    if kind.get("queued"):
        parts.append(f"{kind['queued']} queued")
    return [kind["gpu_type"], ", ".join(parts)]


def _gpus(kind: Mapping[str, Any]) -> int:
    choices = counts(kind)
    if not choices:
        return 0
    each = kind["gpus_per_node"]
    rows: list[list[str]] = []
    for gpus in choices:
        nodes, soonest = nodes_for(kind, gpus), wait(kind, gpus)
        rows.append([f"{gpus:>4}", f"{nodes} nodes" if nodes > 1 else "", _when(soonest)])
    show("How many GPUs?")
    show(render.table((), rows).rstrip("\n"))

    def read(text: str) -> int:
        known = ", ".join(map(str, choices))
        if not (text.isascii() and text.isdecimal()) or int(text) < 1:
            raise ValueError(f"enter a number of GPUs: {known}")
        gpus = int(text)
        if gpus > each and gpus not in choices:
            raise ValueError(f"enter up to {each} on one node, or whole nodes: {known}")
        return gpus

    return prompt_until_valid("GPUs", "1", read)


def _when(soonest: str) -> str:
    texts = {"now": "free now", "unknown": "wait unknown", "never": "not possible"}
    return texts.get(soonest, f"wait {soonest}")


def _preview_with_jupyter(client: Client, request: Mapping[str, Any]) -> bool:
    """Show when the reservation would start; return whether Jupyter is possible where it would run.

    Without Jupyter there is no need to ask for it. All other refusals end the command here.
    """
    body = {name: value for name, value in request.items() if value is not None}
    possible = True
    try:
        reply = client.post(_DRY_RUN, {**body, "jupyter": True})
    except Refused as refused:
        if refused.code != "OD016":
            raise
        possible = False
        reply = client.post(_DRY_RUN, body)
    text = reply.json().get("text")
    if text:
        show(local_times(str(text), reply.now_s))
    return possible


_DRY_RUN = target("/v1/reservations", {"dry_run": "true"})
