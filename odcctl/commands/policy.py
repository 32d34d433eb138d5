"""odcctl policy list | show | create | edit | delete: how jobs are ordered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from odcctl.admin_actions import tell
from odcctl.commands.partition import depth, depth_text
from odcctl.exits import DONE
from odcctl.http.client import Client, quote
from odcctl.options import Arguments, Command, Option
from odcctl.text import render

HEADER = ("POLICY", "ORDERING", "LONGEST WAIT", "BACKFILL", "DEPTH", "PARTITIONS")


def run(arguments: Arguments) -> int:
    action, *names = arguments.words
    if action not in ACTIONS:
        arguments.command.wrong(f'"{action}" is not {", ".join(ACTIONS)}')
    if (action == "list") == bool(names) or len(names) > 1:
        arguments.command.wrong(
            "list takes no name" if action == "list" else f"{action} takes one name"
        )
    terms = ("ordering", "max-wait", "backfill", "plan-depth")
    allowed = {"create": (*terms, "like"), "edit": terms, "list": ("no-header",)}
    for option in arguments.command.options:
        if arguments.flag(option.long) and option.long not in allowed.get(action, ()):
            arguments.command.wrong(f"{action} takes no --{option.long}")
    return ACTIONS[action](arguments, *names)


def _list(arguments: Arguments) -> int:
    reply = Client.of(arguments).get("/v1/policies")
    policies: list[dict[str, Any]] = reply.json()["policies"]
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put("".join(f"{policy['name']}\n" for policy in policies))
    else:
        head = () if arguments.flag("no-header") else HEADER
        render.put(render.table(head, [_row(p) for p in policies], render.terminal_width()))
    return DONE


def _show(arguments: Arguments, name: str) -> int:
    reply = Client.of(arguments).get(f"/v1/policies/{quote(name)}")
    if arguments.form != "table":
        return tell(arguments, reply, str(reply.json()["name"]), "")
    row = _row(reply.json())
    keys = ("ordering", "longest wait", "backfill", "plan depth", "partitions")
    render.put(render.block(f"policy {row[0]}", zip(keys, row[1:], strict=True)))
    return DONE


def _create(arguments: Arguments, name: str) -> int:
    like = arguments.value("like")
    if not like and not arguments.flag("ordering"):
        arguments.command.wrong("create needs an --ordering, or a policy to be --like")
    body = {"name": name, "like": like, **_terms(arguments)}
    return tell(
        arguments, Client.of(arguments).post("/v1/policies", body), name, f"policy {name} made"
    )


def _edit(arguments: Arguments, name: str) -> int:
    terms = _terms(arguments)
    if not terms:
        arguments.command.wrong("say what to change")
    reply = Client.of(arguments).patch(f"/v1/policies/{quote(name)}", terms)
    return tell(arguments, reply, name, f"policy {name} changed")


def _delete(arguments: Arguments, name: str) -> int:
    reply = Client.of(arguments).delete(f"/v1/policies/{quote(name)}")
    return tell(arguments, reply, name, f"policy {name} deleted")


def _terms(arguments: Arguments) -> dict[str, Any]:
    """The options as the API takes them; the daemon reads the times."""
    terms: dict[str, Any] = {
        option: arguments.value(option)
        for option in ("ordering", "backfill")
        if arguments.flag(option)
    }
    if arguments.flag("max-wait"):
        none = arguments.value("max-wait") == "none"
        terms |= {"max_wait_s": None} if none else {"max_wait": arguments.value("max-wait")}
    if arguments.flag("plan-depth"):
        terms["plan_depth"] = depth(arguments)
    return terms


def _row(policy: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        policy["name"], policy["ordering"], render.duration(policy["max_wait_s"]),
        policy["backfill"], depth_text(policy["plan_depth"]), ", ".join(policy["partitions"]),
    )  # fmt: skip


ACTIONS: dict[str, Callable[..., int]] = {
    "list": _list, "show": _show, "create": _create, "edit": _edit, "delete": _delete,
}  # fmt: skip
COMMAND = Command(
    name="policy",
    summary="Show how jobs are ordered, and make, change and delete such policies",
    usage="policy list | show NAME | create NAME OPTIONS | edit NAME OPTIONS | delete NAME",
    words=(1, None),
    notes=(
        "A partition has one: partition edit NAME --policy POLICY. Operators make and change "
        "them. Orderings are fifo, multifactor, sjf, saf, wfp3 and odc."
    ),
    options=(
        Option("ordering", None, "NAME", "the formula that orders jobs"),
        Option("like", None, "POLICY", "with create: copy the settings of this policy"),
        Option("max-wait", None, "TIME", "jobs that waited longer go to the front; none: no limit"),
        Option("backfill", None, "ORDER",
               "candidates behind the protected jobs: order, fifo, sjbf or safbf"),
        Option("plan-depth", None, "N", "how many jobs are protected at once: 1 is EASY, all"),
        Option("no-header", None, None, "of list: leave the header line out"),
    ),
    example="odcctl policy create short-first --ordering sjf --max-wait 2-0\n"
    "odcctl policy edit odc --plan-depth 10",
    run=run,
)  # fmt: skip
