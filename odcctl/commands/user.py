"""odcctl user list | show | add | edit | remove | coordinator: users and their accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Listing, Verb, new_app
from odcctl.cli.params import Limits, limits_of, names_of
from odcctl.exits import DONE
from odcctl.http.client import quote
from odcctl.listing import refuse_unknown
from odcctl.text import render
from odcctl.text.limit_args import qos_text, text_of

HEADER = ("USER", "ACCOUNT", "PARTITION", "SHARES", "QOS", "LIMITS")

app = new_app(
    Actions,
    "Manage the users and coordinators of accounts.\n\n"
    "Operators, and the coordinators of an account or of one above it, can change its users. "
    "Operators appoint coordinators. A * marks the default account or QOS.",
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="the user", autocompletion=complete.users)
]
Account = Annotated[
    str | None,
    typer.Option(
        "--account", "-A", metavar="NAME", help="the account",
        autocompletion=complete.accounts,
    ),
]  # fmt: skip
Partition = Annotated[
    str | None,
    typer.Option(
        "--partition", "-p", metavar="NAME", help="limit the membership to this partition",
        autocompletion=complete.partitions,
    ),
]  # fmt: skip
Default = Annotated[
    bool,
    typer.Option("--default", help="use it for the user's jobs that name no account"),
]
Shares = Annotated[
    int | None,
    typer.Option(
        "--shares", metavar="N", help="the user's part of the account, relative to its other users"
    ),
]
Qos = Annotated[
    list[str] | None,
    typer.Option(
        "--qos", metavar="NAMES",
        help="the QOS that the user may use there; none: those of the account",
        autocompletion=complete.qos,
    ),
]  # fmt: skip
DefaultQos = Annotated[
    str | None,
    typer.Option(
        "--default-qos", metavar="NAME", autocompletion=complete.qos,
        help="the QOS of jobs that name none; '' for the account's default",
    ),
]  # fmt: skip
Uid = Annotated[
    int | None,
    typer.Option(
        "--uid", metavar="N", help="the uid of a name that the daemon's machine does not know"
    ),
]


@app.command("list", cls=Listing, epilog="odcctl user list --account lasers")
def list_users(ctx: typer.Context, account: Account = None) -> int:
    """List users with their accounts."""
    call = Call.of(ctx)
    client = call.client()
    reply = client.get("/v1/users")
    users: list[dict[str, Any]] = reply.json()["users"]
    lines = [
        (user, member)
        for user in users
        for member in user["accounts"]
        if account in (None, member["account"])
    ]
    if account and not lines and call.form != "json":
        there = client.get("/v1/accounts").json()["accounts"]
        refuse_unknown("account", [account], (one["name"] for one in there))
    names = dict.fromkeys(user["user"] for user, _ in lines)
    return call.put_list(reply, names, HEADER, [_row(user, member) for user, member in lines])


def _row(user: Mapping[str, Any], member: Mapping[str, Any]) -> Sequence[str]:
    star = "*" if member["account"] == user["default_account"] else ""
    cells = (
        user["user"], member["account"] + star, member["partition"] or "all",
        str(member["shares"]), qos_text(member) or "-", text_of(member["limits"]) or "-",
    )  # fmt: skip
    return [render.clean(cell) for cell in cells]


@app.command(cls=Verb, epilog="odcctl user show ann")
def show(ctx: typer.Context, name: Name) -> int:
    """Show all details of a user."""
    call = Call.of(ctx)
    reply = call.client().get(f"/v1/users/{quote(name)}")
    if call.form != "table":
        return call.put_outcome(reply, name, "")
    user: dict[str, Any] = reply.json()
    pairs = [
        ("uid", str(user["uid"])),
        ("default account", user["default_account"] or ""),
        ("coordinates", ", ".join(user["coordinates"])),
    ]
    rows = [_row(user, member)[1:] for member in user["accounts"]]
    block = [(key, render.clean(value)) for key, value in pairs]
    render.put(render.block(f"user {render.clean(user['user'])}", block))
    if rows:
        render.put("\n" + render.table(HEADER[1:], rows, render.terminal_width()))
    return DONE


@app.command(
    cls=Verb, epilog="odcctl user add ann --account lasers --default --limit group.gpus=16"
)
def add(
    ctx: typer.Context,
    name: Name,
    account: Account = None,
    partition: Partition = None,
    default: Default = False,
    shares: Shares = None,
    qos: Qos = None,
    default_qos: DefaultQos = None,
    limit: Limits = None,
    uid: Uid = None,
) -> int:
    """Add a user to an account."""
    call = Call.of(ctx)
    terms = _terms(call, partition, default, shares, qos, default_qos, limit)
    body = {"user": name, **terms, **({} if uid is None else {"uid": uid})}
    path = f"/v1/accounts/{quote(_given(call, account))}/users"
    reply = call.client().post_once(path, body)
    return call.put_outcome(reply, name, f"user {name} added to account {account}")


@app.command(cls=Verb, epilog="odcctl user edit ann --account lasers --shares 2")
def edit(
    ctx: typer.Context,
    name: Name,
    account: Account = None,
    partition: Partition = None,
    default: Default = False,
    shares: Shares = None,
    qos: Qos = None,
    default_qos: DefaultQos = None,
    limit: Limits = None,
) -> int:
    """Change a user's membership of an account."""
    call = Call.of(ctx)
    terms = _terms(call, partition, default, shares, qos, default_qos, limit)
    if not terms.keys() - {"partition"}:
        call.wrong("name at least one setting to change")
    reply = call.client().patch(_path(call, account, name), terms)
    return call.put_outcome(reply, name, f"user {name} changed")


@app.command(cls=Verb, epilog="odcctl user remove ann --account lasers")
def remove(
    ctx: typer.Context, name: Name, account: Account = None, partition: Partition = None
) -> int:
    """Remove a user from an account."""
    call = Call.of(ctx)
    path = _path(call, account, name)
    if partition is not None:
        path += f"?partition={quote(partition)}"
    reply = call.client().delete(path)
    return call.put_outcome(reply, name, f"user {name} removed from account {account}")


@app.command(cls=Verb, epilog="odcctl user coordinator bob --account lasers")
def coordinator(
    ctx: typer.Context,
    name: Name,
    account: Account = None,
    uid: Uid = None,
    off: Annotated[bool, typer.Option("--off", help="withdraw the appointment")] = False,
) -> int:
    """Appoint a coordinator of an account, or remove one."""
    call = Call.of(ctx)
    path = f"/v1/accounts/{quote(_given(call, account))}/coordinators"
    if off:
        reply = call.client().delete(f"{path}/{quote(name)}")
        outcome = f"user {name} is no longer a coordinator of account {account}"
    else:
        body = {"user": name, **({} if uid is None else {"uid": uid})}
        reply = call.client().post(path, body)
        outcome = f"user {name} is a coordinator of account {account}"
    return call.put_outcome(reply, name, outcome)


def _given(call: Call, account: str | None) -> str:
    return account or call.wrong("give the account: --account NAME")


def _path(call: Call, account: str | None, user: str) -> str:
    return f"/v1/accounts/{quote(_given(call, account))}/users/{quote(user)}"


def _terms(
    call: Call, partition: str | None, default: bool, shares: int | None,
    qos: list[str] | None, default_qos: str | None, limit: list[str] | None,
) -> dict[str, Any]:  # fmt: skip
    """The given options, in the API's format."""
    given = {"partition": partition, "shares": shares, "default": default or None}
    terms: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    if default_qos is not None:
        terms["default_qos"] = default_qos or None
    if qos is not None:
        terms["qos"] = names_of(qos)
    if limit is not None:
        terms["limits"] = limits_of(call, limit)
    return terms
