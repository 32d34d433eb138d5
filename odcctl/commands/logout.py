"""odcctl logout: revoke the key of a login; for operators, all keys of a user."""

from __future__ import annotations

from typing import Annotated

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.commands.login import tcp_address
from odcctl.exits import DONE, Failure, Refused
from odcctl.http import keys
from odcctl.http.client import Client, quote
from odcctl.http.wire import LostAnswer
from odcctl.text import render

app = new_app()


@app.command(cls=Verb, epilog="odcctl logout\nodcctl logout --user ann")
def logout(
    ctx: typer.Context,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", metavar="NAME", autocompletion=complete.users,
            help="end all keys and page sessions of a user (operators)",
        ),
    ] = None,
) -> int:  # fmt: skip
    """Revoke the key of a login on the server, and delete it here.

    Page sessions that were opened with the key end, too. Your logins on other machines and
    running jobs continue.
    """
    call = Call.of(ctx)
    if user is None:
        return _own(call)
    return _of_user(call, user or call.wrong("give the user: --user NAME"))


def _of_user(call: Call, name: str) -> int:
    reply = call.client().delete(f"/v1/users/{quote(name)}/keys")
    ended = reply.json()
    held = render.counted(ended["keys"], "key")
    sessions = render.counted(ended["page_sessions"], "page session")
    outcome = f"ended {held} and {sessions} of {render.clean(name)}"
    if not ended["keys"] + ended["page_sessions"]:
        outcome = f"{render.clean(name)} has no keys and no page sessions"
    return call.put_outcome(reply, name, outcome)


def _own(call: Call) -> int:
    if call.form != "table":
        call.wrong("this command has nothing to print")
    address = tcp_address(call)
    entry = keys.find(address)
    # Prevents later commands from logging in automatically.
    keys.keep(address, {"out": True})
    if entry is None or "key" not in entry:
        render.put(f"not logged in to {address}\n")
        return DONE
    try:
        Client([address], entry["key"], keeps=False).request("DELETE", "/v1/keys/current")
    except Refused as refused:
        if refused.status != 401:  # it was no longer valid
            raise
    except (Failure, LostAnswer) as error:
        raise Failure(
            f"the key was removed here, but {address} could not be reached: {error}",
            f"It remains valid there until {render.when(entry.get('expires_at'))}.",
        ) from None
    render.put(f"logged out of {address}\n")
    return DONE
