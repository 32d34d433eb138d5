"""odcctl logout: end the key of a login, there and here; or, by an operator, all keys of a user."""

from __future__ import annotations

from odcctl.admin_actions import tell
from odcctl.commands.login import tcp_address
from odcctl.exits import DONE, Failure, Refused
from odcctl.http import keys
from odcctl.http.client import Client, quote
from odcctl.http.wire import LostAnswer
from odcctl.options import Arguments, Command, Option
from odcctl.text import render


def run(arguments: Arguments) -> int:
    return _user(arguments) if arguments.flag("user") else _own(arguments)


def _user(arguments: Arguments) -> int:
    name = arguments.value("user") or arguments.command.wrong("say which user")
    reply = Client.of(arguments).delete(f"/v1/users/{quote(name)}/keys")
    ended = reply.json()
    held = render.counted(ended["keys"], "key")
    sessions = render.counted(ended["page_sessions"], "session")
    said = f"ended {held} and {sessions} of the page of {render.clean(name)}"
    if not ended["keys"] + ended["page_sessions"]:
        said = f"{render.clean(name)} has no key, and no session of the page"
    return tell(arguments, reply, name, said)


def _own(arguments: Arguments) -> int:
    if arguments.form != "table":
        arguments.command.wrong("there is nothing to print")
    address = tcp_address(arguments)
    entry = keys.find(address)
    # So that no command logs in again by itself.
    keys.keep(address, {"out": True})
    if entry is None or "key" not in entry:
        render.put(f"not logged in to {address}\n")
        return DONE
    try:
        Client([address], entry["key"], keeps=False).request("DELETE", "/v1/keys/current")
    except Refused as refused:
        if refused.status != 401:  # it had ended already
            raise
    except (Failure, LostAnswer) as error:
        raise Failure(
            f"the key was removed here, but {address} could not be reached: {error}",
            f"There it is valid until {render.when(entry.get('expires_at'))}.",
        ) from None
    render.put(f"logged out of {address}\n")
    return DONE


COMMAND = Command(
    name="logout",
    summary="End the key that a login gave, there and here",
    usage="logout [--user NAME]",
    notes=(
        "Where a browser is let in to the page by that key, it is out, too. Other logins of yours, "
        "on other machines, go on. Running jobs continue."
    ),
    options=(Option("user", None, "NAME", "end all keys and page sessions of a user (operators)"),),
    example="odcctl logout\nodcctl logout --user ann",
    run=run,
)
