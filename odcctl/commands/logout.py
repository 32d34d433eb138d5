"""odcctl logout: end the key of a login, there and here."""

from __future__ import annotations

from odcctl import keys, render
from odcctl.client import Client
from odcctl.commands.login import tcp_address
from odcctl.exits import DONE, Failure, Refused
from odcctl.options import Arguments, Command
from odcctl.wire import LostAnswer


def run(arguments: Arguments) -> int:
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
            f"the key is forgotten here, but {address} was not told: {error}",
            f"There it holds until {render.when(entry.get('expires_at'))}.",
        ) from None
    render.put(f"logged out of {address}\n")
    return DONE


COMMAND = Command(
    name="logout",
    summary="End the key that a login gave, there and here",
    usage="logout",
    notes="Other logins of yours, on other machines, go on. What runs goes on, too.",
    example="odcctl logout",
    run=run,
)
