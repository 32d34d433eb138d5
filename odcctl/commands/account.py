"""odcctl account list | show | create | edit | delete | settings: the account tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.admin_actions import act, client, put_list, qos_text, some, tell
from odcctl.exits import DONE
from odcctl.http.client import quote
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.limit_args import LIMIT, limits, names, on_off, text_of, text_or_none

HEADER = ("ACCOUNT", "SHARES", "QOS", "USERS", "COORDINATORS", "LIMITS")
TERMS = ("parent", "description", "organisation", "shares", "qos", "default-qos", "limit")
SETTINGS = ("enforce", "cpus-per-gpu")


def run(arguments: Arguments) -> int:
    return act(
        arguments,
        {
            "list": (_list, ("no-header",), (0, 0)),
            "show": (_show, (), (1, 1)),
            "create": (_create, TERMS, (1, 1)),
            "edit": (_edit, TERMS, (1, 1)),
            "delete": (_delete, (), (1, 1)),
            "settings": (_settings, SETTINGS, (0, 0)),
        },
    )


def _list(arguments: Arguments, _: Sequence[str]) -> int:
    reply = client(arguments).get("/v1/accounts")
    accounts: list[dict[str, Any]] = reply.json()["accounts"]
    depths: dict[str | None, int] = {None: -1}
    for account in accounts:
        depths[account["name"]] = depths.get(account["parent"], -1) + 1

    def row(account: Mapping[str, Any]) -> Sequence[str]:
        return (
            "  " * depths[account["name"]] + account["name"], str(account["shares"]),
            qos_text(account) or "-", ",".join(account["users"]) or "-",
            ",".join(account["coordinators"]) or "-", text_of(account["limits"]) or "-",
        )  # fmt: skip

    return put_list(arguments, reply, accounts, "name", HEADER, row)


def _show(arguments: Arguments, words: Sequence[str]) -> int:
    reply = client(arguments).get(f"/v1/accounts/{quote(words[0])}")
    if arguments.form != "table":
        return tell(arguments, reply, words[0], "")
    account: dict[str, Any] = reply.json()
    pairs = [
        ("parent", account["parent"] or ""),
        ("description", account["description"] or ""),
        ("organisation", account["organisation"] or ""),
        ("shares", str(account["shares"])),
        ("QOS", qos_text(account)),
        ("users", ", ".join(account["users"])),
        ("coordinators", ", ".join(account["coordinators"])),
        ("limits", text_of(account["limits"])),
    ]
    block = [(key, render.clean(value)) for key, value in pairs]
    render.put(render.block(f"account {account['name']}", block))
    return DONE


def _create(arguments: Arguments, words: Sequence[str]) -> int:
    body = {"name": words[0], **_terms(arguments)}
    reply = client(arguments).post_once("/v1/accounts", body)
    return tell(arguments, reply, words[0], f"account {words[0]} made")


def _edit(arguments: Arguments, words: Sequence[str]) -> int:
    terms = some(arguments, _terms(arguments))
    reply = client(arguments).patch(f"/v1/accounts/{quote(words[0])}", terms)
    return tell(arguments, reply, words[0], f"account {words[0]} changed")


def _delete(arguments: Arguments, words: Sequence[str]) -> int:
    reply = client(arguments).delete(f"/v1/accounts/{quote(words[0])}")
    return tell(arguments, reply, words[0], f"account {words[0]} deleted")


def _settings(arguments: Arguments, _: Sequence[str]) -> int:
    terms: dict[str, Any] = {}
    if arguments.flag("enforce"):
        terms["enforce"] = on_off(arguments, "enforce")
    if arguments.flag("cpus-per-gpu"):
        terms["cpus_per_gpu"] = arguments.number("cpus-per-gpu")
    server = client(arguments)
    reply = server.patch("/v1/accounting", terms) if terms else server.get("/v1/accounting")
    settings: dict[str, Any] = reply.json()
    who = "only its users may use an account" if settings["enforce"] else "anybody may use any"
    billed = f"{settings['cpus_per_gpu']} CPUs are billed as one GPU"
    return tell(arguments, reply, "settings", f"{who}; {billed}")


def _terms(arguments: Arguments) -> dict[str, Any]:
    """The options as the API takes them."""
    terms: dict[str, Any] = {
        option: text_or_none(arguments, option)
        for option in ("parent", "description", "organisation")
        if arguments.flag(option)
    }
    if arguments.flag("shares"):
        terms["shares"] = arguments.number("shares")
    if arguments.flag("default-qos"):
        terms["default_qos"] = text_or_none(arguments, "default-qos")
    if arguments.flag("qos"):
        terms["qos"] = names(arguments, "qos")
    if arguments.flag("limit"):
        terms["limits"] = limits(arguments)
    return terms


COMMAND = Command(
    name="account",
    summary="Show accounts, make, change and delete them: shares, QOS, limits",
    usage="account list | show NAME | create NAME | edit NAME | delete NAME | settings [OPTIONS]",
    words=(1, None),
    notes=(
        "Accounts make a tree; a limit of an account holds for all below it together. Operators "
        "change them. A * marks the default QOS. Without options, the settings are shown."
    ),
    options=(
        Option("parent", None, "NAME", "the account above; '' for none"),
        Option("description", None, "TEXT", "a text kept with it"),
        Option("organisation", None, "TEXT", "whose it is"),
        Option("shares", None, "N", "of what the account above has, against its siblings"),
        Option("qos", None, "NAMES", "what its users may use; none: as the account above"),
        Option("default-qos", None, "NAME", "of jobs that name none; '' for the account above's"),
        LIMIT,
        Option("enforce", None, "on|off", "settings: only its users may use an account"),
        Option("cpus-per-gpu", None, "N", "settings: so many CPUs are billed as one GPU"),
        Option("no-header", None, None, "list: leave the header line out"),
    ),
    example="odcctl account create physics --shares 10\n"
    "odcctl account create lasers --parent physics --limit group.gpus=64 --limit user.jobs=20",
    run=run,
)
