"""odcctl user list | show | add | edit | remove | coordinator: who is in which account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.admin_actions import act, client, put_list, qos_text, some, tell
from odcctl.exits import DONE
from odcctl.http.client import quote
from odcctl.listing import refuse_unknown
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.limit_args import LIMIT, limits, names, text_of, text_or_none

HEADER = ("USER", "ACCOUNT", "PARTITION", "SHARES", "QOS", "LIMITS")
TERMS = ("account", "partition", "shares", "default", "qos", "default-qos", "limit")


def run(arguments: Arguments) -> int:
    return act(
        arguments,
        {
            "list": (_list, ("no-header", "account"), (0, 0)),
            "show": (_show, (), (1, 1)),
            "add": (_add, (*TERMS, "uid"), (1, 1)),
            "edit": (_edit, TERMS, (1, 1)),
            "remove": (_remove, ("account", "partition"), (1, 1)),
            "coordinator": (_coordinator, ("account", "uid", "off"), (1, 1)),
        },
    )


def _list(arguments: Arguments, _: Sequence[str]) -> int:
    reply = client(arguments).get("/v1/users")
    users: list[dict[str, Any]] = reply.json()["users"]
    if arguments.form == "json":
        return tell(arguments, reply, "", "")
    wanted = arguments.value("account")
    lines = [
        {"user": user, "member": member, "name": user["user"]}
        for user in users
        for member in user["accounts"]
        if wanted in (None, member["account"])
    ]
    if wanted and not lines:
        there = client(arguments).get("/v1/accounts").json()["accounts"]
        refuse_unknown("account", [wanted], (one["name"] for one in there))
    if arguments.form == "quiet":
        render.put("".join(f"{name}\n" for name in dict.fromkeys(one["name"] for one in lines)))
        return DONE
    return put_list(arguments, reply, lines, "name", HEADER, _row)


def _row(line: Mapping[str, Any]) -> Sequence[str]:
    user, member = line["user"], line["member"]
    star = "*" if member["account"] == user["default_account"] else ""
    return (
        user["user"], member["account"] + star, member["partition"] or "all",
        str(member["shares"]), qos_text(member) or "-", text_of(member["limits"]) or "-",
    )  # fmt: skip


def _show(arguments: Arguments, words: Sequence[str]) -> int:
    reply = client(arguments).get(f"/v1/users/{quote(words[0])}")
    if arguments.form != "table":
        return tell(arguments, reply, words[0], "")
    user: dict[str, Any] = reply.json()
    pairs = [
        ("uid", str(user["uid"])),
        ("default account", user["default_account"] or ""),
        ("coordinates", ", ".join(user["coordinates"])),
    ]
    rows = [_row({"user": user, "member": member})[1:] for member in user["accounts"]]
    block = [(key, render.clean(value)) for key, value in pairs]
    render.put(render.block(f"user {render.clean(user['user'])}", block))
    if rows:
        render.put("\n" + render.table(HEADER[1:], rows, render.terminal_width()))
    return DONE


def _add(arguments: Arguments, words: Sequence[str]) -> int:
    body = {"user": words[0], **_terms(arguments)}
    if arguments.flag("uid"):
        body["uid"] = arguments.number("uid")
    account = _account(arguments)
    reply = client(arguments).post_once(f"/v1/accounts/{quote(account)}/users", body)
    return tell(arguments, reply, words[0], f"user {words[0]} added to account {account}")


def _edit(arguments: Arguments, words: Sequence[str]) -> int:
    terms = _terms(arguments)
    some(arguments, {key: value for key, value in terms.items() if key != "partition"})
    reply = client(arguments).patch(_path(arguments, words[0]), terms)
    return tell(arguments, reply, words[0], f"user {words[0]} changed")


def _remove(arguments: Arguments, words: Sequence[str]) -> int:
    path = _path(arguments, words[0])
    if arguments.flag("partition"):
        path += f"?partition={quote(arguments.value('partition') or '')}"
    reply = client(arguments).delete(path)
    said = f"user {words[0]} removed from account {_account(arguments)}"
    return tell(arguments, reply, words[0], said)


def _coordinator(arguments: Arguments, words: Sequence[str]) -> int:
    account = _account(arguments)
    path = f"/v1/accounts/{quote(account)}/coordinators"
    if arguments.flag("off"):
        reply = client(arguments).delete(f"{path}/{quote(words[0])}")
        said = f"user {words[0]} coordinates account {account} no longer"
    else:
        uid = {"uid": arguments.number("uid")} if arguments.flag("uid") else {}
        reply = client(arguments).post(path, {"user": words[0], **uid})
        said = f"user {words[0]} coordinates account {account}"
    return tell(arguments, reply, words[0], said)


def _account(arguments: Arguments) -> str:
    account = arguments.value("account")
    if not account:
        arguments.command.wrong("say which --account")
    return account


def _path(arguments: Arguments, user: str) -> str:
    return f"/v1/accounts/{quote(_account(arguments))}/users/{quote(user)}"


def _terms(arguments: Arguments) -> dict[str, Any]:
    """The options as the API takes them."""
    terms: dict[str, Any] = {}
    if arguments.flag("partition"):
        terms["partition"] = arguments.value("partition")
    if arguments.flag("shares"):
        terms["shares"] = arguments.number("shares")
    if arguments.flag("default"):
        terms["default"] = True
    if arguments.flag("default-qos"):
        terms["default_qos"] = text_or_none(arguments, "default-qos")
    if arguments.flag("qos"):
        terms["qos"] = names(arguments, "qos")
    if arguments.flag("limit"):
        terms["limits"] = limits(arguments)
    return terms


COMMAND = Command(
    name="user",
    summary="Show users of accounts, add, change and remove them, appoint coordinators",
    usage="user list | show NAME | add|edit|remove|coordinator NAME --account ACCOUNT [OPTIONS]",
    words=(1, None),
    notes=(
        "Operators change them, and the coordinators of the account or of one above it, whom "
        "operators appoint. A * marks the default: the account of jobs that name none, the QOS."
    ),
    options=(
        Option("account", "A", "NAME", "in this account; list: only this one's users"),
        Option("partition", "p", "NAME", "a membership for this partition only"),
        Option("default", None, None, "it is the account of the user's jobs that name none"),
        Option("shares", None, "N", "of what the account has, against its other users"),
        Option("qos", None, "NAMES", "what the user may use there; none: as the account"),
        Option("default-qos", None, "NAME", "of jobs that name none; '' for the account's"),
        LIMIT,
        Option("uid", None, "N", "of a name that the daemon's machine does not know"),
        Option("off", None, None, "coordinator: no longer"),
        Option("no-header", None, None, "list: leave the header line out"),
    ),
    example="odcctl user add ann --account lasers --default --limit group.gpus=16\n"
    "odcctl user coordinator bob --account lasers",
    run=run,
)
