"""odcctl account list | show | create | edit | delete | settings: the account tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Listing, Verb, new_app
from odcctl.cli.params import Limits, OnOff, is_on, limits_of, names_of
from odcctl.exits import DONE
from odcctl.http.client import quote
from odcctl.text import render
from odcctl.text.limit_args import qos_text, text_of

HEADER = ("ACCOUNT", "SHARES", "QOS", "USERS", "COORDINATORS", "LIMITS")

app = new_app(
    Actions,
    "Manage accounts: their shares, QOS and limits.\n\n"
    "Accounts form a tree. An account's limit applies to it and all accounts below it together. "
    "Only operators can change accounts. A * marks the default QOS.",
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="the account", autocompletion=complete.accounts)
]
Parent = Annotated[
    str | None,
    typer.Option(
        "--parent", metavar="NAME", help="the parent account; '' for none",
        autocompletion=complete.accounts,
    ),
]  # fmt: skip
Description = Annotated[
    str | None, typer.Option("--description", metavar="TEXT", help="a description")
]
Organisation = Annotated[
    str | None, typer.Option("--organisation", metavar="TEXT", help="the organisation that owns it")
]
Shares = Annotated[
    int | None,
    typer.Option(
        "--shares", metavar="N", help="its part of the parent account, relative to its siblings"
    ),
]
Qos = Annotated[
    list[str] | None,
    typer.Option(
        "--qos", metavar="NAMES", help="the QOS that its users may use; none: those of the parent",
        autocompletion=complete.qos,
    ),
]  # fmt: skip
DefaultQos = Annotated[
    str | None,
    typer.Option(
        "--default-qos", metavar="NAME", autocompletion=complete.qos,
        help="the QOS of jobs that name none; '' for the parent's default",
    ),
]  # fmt: skip


@app.command("list", cls=Listing, epilog="odcctl account list")
def list_accounts(ctx: typer.Context) -> int:
    """List the accounts, as a tree."""
    call = Call.of(ctx)
    reply = call.client().get("/v1/accounts")
    accounts: list[dict[str, Any]] = reply.json()["accounts"]
    depths: dict[str | None, int] = {None: -1}
    for account in accounts:
        depths[account["name"]] = depths.get(account["parent"], -1) + 1
    names = (account["name"] for account in accounts)
    rows = [_row(account, depths[account["name"]]) for account in accounts]
    return call.put_list(reply, names, HEADER, rows)


def _row(account: Mapping[str, Any], depth: int) -> Sequence[str]:
    cells = (
        "  " * depth + account["name"], str(account["shares"]),
        qos_text(account) or "-", ",".join(account["users"]) or "-",
        ",".join(account["coordinators"]) or "-", text_of(account["limits"]) or "-",
    )  # fmt: skip
    return [render.clean(cell) for cell in cells]


@app.command(cls=Verb, epilog="odcctl account show lasers")
def show(ctx: typer.Context, name: Name) -> int:
    """Show all details of an account."""
    call = Call.of(ctx)
    reply = call.client().get(f"/v1/accounts/{quote(name)}")
    if call.form != "table":
        return call.put_outcome(reply, name, "")
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


@app.command(cls=Verb, epilog="odcctl account create lasers --parent physics --limit user.jobs=20")
def create(
    ctx: typer.Context,
    name: Name,
    parent: Parent = None,
    description: Description = None,
    organisation: Organisation = None,
    shares: Shares = None,
    qos: Qos = None,
    default_qos: DefaultQos = None,
    limit: Limits = None,
) -> int:
    """Create an account."""
    call = Call.of(ctx)
    terms = _terms(call, parent, description, organisation, shares, qos, default_qos, limit)
    reply = call.client().post_once("/v1/accounts", {"name": name, **terms})
    return call.put_outcome(reply, name, f"account {name} created")


@app.command(cls=Verb, epilog="odcctl account edit lasers --limit group.gpus=64")
def edit(
    ctx: typer.Context,
    name: Name,
    parent: Parent = None,
    description: Description = None,
    organisation: Organisation = None,
    shares: Shares = None,
    qos: Qos = None,
    default_qos: DefaultQos = None,
    limit: Limits = None,
) -> int:
    """Change an account."""
    call = Call.of(ctx)
    terms = _terms(call, parent, description, organisation, shares, qos, default_qos, limit)
    if not terms:
        call.wrong("name at least one setting to change")
    reply = call.client().patch(f"/v1/accounts/{quote(name)}", terms)
    return call.put_outcome(reply, name, f"account {name} changed")


@app.command(cls=Verb, epilog="odcctl account delete lasers")
def delete(ctx: typer.Context, name: Name) -> int:
    """Delete an account."""
    call = Call.of(ctx)
    reply = call.client().delete(f"/v1/accounts/{quote(name)}")
    return call.put_outcome(reply, name, f"account {name} deleted")


@app.command(cls=Verb, epilog="odcctl account settings --enforce on")
def settings(
    ctx: typer.Context,
    enforce: Annotated[
        OnOff | None,
        typer.Option(
            "--enforce", metavar="on|off",
            help="whether only the users of an account may use it",
        ),
    ] = None,
    cpus_per_gpu: Annotated[
        int | None,
        typer.Option("--cpus-per-gpu", metavar="N", help="how many CPUs are billed as one GPU"),
    ] = None,
) -> int:  # fmt: skip
    """Show the settings of all accounts, or change them."""
    call = Call.of(ctx)
    given = {"enforce": is_on(enforce), "cpus_per_gpu": cpus_per_gpu}
    terms = {field: value for field, value in given.items() if value is not None}
    client = call.client()
    reply = client.patch("/v1/accounting", terms) if terms else client.get("/v1/accounting")
    now: dict[str, Any] = reply.json()
    who = (
        "only its users may use an account" if now["enforce"] else "everyone may use every account"
    )
    billed = f"{now['cpus_per_gpu']} CPUs are billed as one GPU"
    return call.put_outcome(reply, "settings", f"{who}; {billed}")


def _terms(
    call: Call, parent: str | None, description: str | None, organisation: str | None,
    shares: int | None, qos: list[str] | None, default_qos: str | None, limit: list[str] | None,
) -> dict[str, Any]:  # fmt: skip
    """The given options, in the API's format; an empty text is null."""
    texts = {
        "parent": parent, "description": description, "organisation": organisation,
        "default_qos": default_qos,
    }  # fmt: skip
    terms: dict[str, Any] = {
        field: text or None for field, text in texts.items() if text is not None
    }
    if shares is not None:
        terms["shares"] = shares
    if qos is not None:
        terms["qos"] = names_of(qos)
    if limit is not None:
        terms["limits"] = limits_of(call, limit)
    return terms
