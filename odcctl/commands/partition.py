"""odcctl partition list | show | create | edit | delete: nodes, limits, how they are served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from odcctl.admin_actions import tell
from odcctl.exits import DONE
from odcctl.http.client import Client, quote
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.hostlist import fold, unfold
from odcctl.text.limit_args import LIMIT, limits, text_of

HEADER = (
    "PARTITION", "STATE", "POLICY", "DEPTH", "PLACEMENT", "TIER", "LIMIT", "GPUS", "NODES",
)  # fmt: skip
TEXTS = {
    "state": "state", "policy": "policy", "placement": "placement",
    "max-time": "max_time_limit", "default-time": "default_time_limit",
}  # fmt: skip
NUMBERS = {"max-nodes": "max_nodes", "mem-per-cpu": "def_mem_per_cpu_mib"}
ALL_JOBS = 1_000_000


def run(arguments: Arguments) -> int:
    action, *names = arguments.words
    if action not in ACTIONS:
        arguments.command.wrong(f'"{action}" is not {", ".join(ACTIONS)}')
    if (action == "list") == bool(names) or len(names) > 1:
        arguments.command.wrong(
            "list takes no name" if action == "list" else f"{action} takes one name"
        )
    if action in ("list", "show", "delete"):
        for option in OPTIONS:
            if arguments.flag(option.long) and (action, option.long) != ("list", "no-header"):
                arguments.command.wrong(f"{action} takes no --{option.long}")
    return ACTIONS[action](arguments, *names)


def _list(arguments: Arguments) -> int:
    reply = Client.of(arguments).get("/v1/partitions")
    partitions: list[dict[str, Any]] = reply.json()["partitions"]
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put("".join(f"{partition['name']}\n" for partition in partitions))
    else:
        head = () if arguments.flag("no-header") else HEADER
        rows = [_row(partition) for partition in partitions]
        render.put(render.table(head, rows, render.terminal_width()))
    return DONE


def _show(arguments: Arguments, name: str) -> int:
    reply = Client.of(arguments).get(f"/v1/partitions/{quote(name)}")
    if arguments.form != "table":
        return tell(arguments, reply, str(reply.json()["name"]), "")
    render.put(describe(reply.json()))
    return DONE


def _create(arguments: Arguments, name: str) -> int:
    body = {"name": name, **_terms(arguments)}
    return tell(
        arguments, Client.of(arguments).post("/v1/partitions", body), name, f"partition {name} made"
    )


def _edit(arguments: Arguments, name: str) -> int:
    terms = _terms(arguments)
    if not terms:
        arguments.command.wrong("say what to change")
    reply = Client.of(arguments).patch(f"/v1/partitions/{quote(name)}", terms)
    return tell(arguments, reply, name, f"partition {name} changed")


def _delete(arguments: Arguments, name: str) -> int:
    reply = Client.of(arguments).delete(f"/v1/partitions/{quote(name)}")
    return tell(arguments, reply, name, f"partition {name} deleted")


def _terms(arguments: Arguments) -> dict[str, Any]:
    """The options as the API takes them; the daemon reads the times."""
    terms: dict[str, Any] = {
        field: arguments.value(option) for option, field in TEXTS.items() if arguments.flag(option)
    }
    for option, field in NUMBERS.items():
        if arguments.flag(option):
            none = arguments.value(option) == "none"
            terms[field] = None if none else arguments.number(option)
    if "state" in terms:
        terms["state"] = str(terms["state"]).upper()
    if arguments.flag("tier"):
        terms["tier"] = arguments.number("tier")
    if arguments.flag("plan-depth"):
        terms["plan_depth"] = depth(arguments)
    if arguments.flag("default"):
        terms["is_default"] = True
    if arguments.flag("limit"):
        terms["limits"] = limits(arguments)
    if arguments.flag("all-nodes"):
        terms["all_nodes"] = True
    if arguments.flag("nodes"):
        terms["node_list"] = unfold(arguments.joined("nodes") or "")
    return terms


def depth(arguments: Arguments) -> int | None:
    return ALL_JOBS if arguments.value("plan-depth") == "all" else arguments.number("plan-depth")


def depth_text(plan_depth: int) -> str:
    return "all" if plan_depth >= ALL_JOBS else str(plan_depth)


def describe(partition: Mapping[str, Any]) -> str:
    pairs = [
        ("state", partition["state"]),
        ("default", "yes" if partition["is_default"] else ""),
        ("policy", partition["policy"]),
        ("plan depth", depth_text(partition["plan_depth"])),
        ("placement", partition["placement"]),
        ("tier", str(partition["tier"])),
        ("time limit", render.limit(partition["max_time_limit_s"])),
        ("default limit", render.duration(partition["default_time_limit_s"])),
        ("nodes a job", str(partition["max_nodes"] or "")),
        ("memory a CPU", f"{partition['def_mem_per_cpu_mib']} MiB"
         if partition["def_mem_per_cpu_mib"] else ""),
        ("limits", text_of(partition["limits"])),
        ("nodes", fold(partition["node_names"])),
        ("has", "all nodes" if partition["all_nodes"] else ""),
        ("GPUs", f"{partition['gpus_free']} of {partition['gpus']} free"),
        ("types", ", ".join(partition["gpu_types"])),
    ]  # fmt: skip
    return render.block(f"partition {partition['name']}", pairs)


def _row(partition: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        partition["name"] + ("*" if partition["is_default"] else ""), partition["state"],
        partition["policy"], depth_text(partition["plan_depth"]), partition["placement"],
        str(partition["tier"]), render.limit(partition["max_time_limit_s"]),
        f"{partition['gpus'] - partition['gpus_free']}/{partition['gpus']}",
        fold(partition["node_names"]),
    )  # fmt: skip


ACTIONS: dict[str, Callable[..., int]] = {
    "list": _list, "show": _show, "create": _create, "edit": _edit, "delete": _delete,
}  # fmt: skip
OPTIONS = (
    Option("policy", None, "NAME", "how its jobs are ordered; `policy list` shows them"),
    Option("placement", None, "FORM", "pack: the fullest node that fits; spread: the emptiest"),
    Option("tier", None, "N", "of partitions that share nodes the highest is served first"),
    Option("plan-depth", None, "N", "of its policy, if no other partition has it: protected jobs"),
    Option("state", None, "STATE", "UP, DOWN (jobs wait), DRAIN (takes none) or INACTIVE"),
    Option("default", None, None, "jobs that name no partition go here"),
    Option("max-time", None, "TIME", "the longest time limit, as of submit --time; UNLIMITED"),
    Option("default-time", None, "TIME", "of jobs that name no time limit"),
    Option("max-nodes", None, "N", "nodes of one job; none: any number"),
    Option("mem-per-cpu", None, "MIB", "of jobs that name no memory; none: the node's share"),
    LIMIT,
    Option("nodes", None, "NAMES", "its nodes, as gpu-[01-03]"),
    Option("all-nodes", None, None, "it has all nodes, and those to come"),
    Option("no-header", None, None, "of list: leave the header line out"),
)
COMMAND = Command(
    name="partition",
    summary="Show partitions, make, change and delete them: order, placement, limits, nodes",
    usage="partition list | show NAME | create NAME [OPTIONS] | edit NAME OPTIONS | delete NAME",
    words=(1, None),
    notes=(
        "Operators make and change them. A * marks the default one. Two partitions that share "
        "nodes are of different tiers or have one policy: else their jobs would have no order "
        "among them."
    ),
    options=OPTIONS,
    example="odcctl partition edit main --placement spread --policy wfp3\n"
    "odcctl partition create urgent --all-nodes --tier 2 --policy fifo",
    run=run,
)
