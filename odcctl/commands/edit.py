"""odcctl edit: change a reservation: its end, its name, who may use it, Jupyter."""

from __future__ import annotations

from typing import Any

from odcctl.admin_actions import tell
from odcctl.commands.extend import YES, extend
from odcctl.http.client import Client
from odcctl.options import Arguments, Command, Option
from odcctl.reservation_states import LIVE
from odcctl.reservations.lookup import named_or_only
from odcctl.text import render
from odcctl.text.hours import hours_of
from odcctl.text.prompts import ask_until, choose, on_terminal

CHANGES = {
    "extend": "more hours for it", "name": "its name", "add-user": "let another user in",
    "enable-jupyter": "start Jupyter Lab", "disable-jupyter": "end Jupyter Lab",
}  # fmt: skip
ASKED = {"name": "Its new name", "add-user": "Their name at GitHub"}


def run(arguments: Arguments) -> int:
    given = [name for name in CHANGES if arguments.flag(name)]
    if len(given) > 1:
        arguments.command.wrong(f"--{given[0]} and --{given[1]}: one change at a time")
    if arguments.flag("yes") and given != ["extend"]:
        arguments.command.wrong("--yes belongs to --extend")
    if not given and not on_terminal(arguments):
        arguments.command.wrong("say what to change")
    what, value = (given[0], arguments.value(given[0])) if given else (None, None)
    if value == "" and what in ASKED:
        arguments.command.wrong(f"--{what} is empty")
    hours = hours_of(arguments, "extend", 0.0)
    client = Client.of(arguments)
    one = named_or_only(client, arguments, ("active",) if what == "extend" else LIVE)
    if what is None:
        what, value = _ask()
    if what == "extend":
        return extend(client, arguments, one, hours)
    if what in ("enable-jupyter", "disable-jupyter"):
        return _set_jupyter(client, arguments, one, on=what == "enable-jupyter")
    body, said = _change(what, value)
    reply = client.patch(f"/v1/reservations/{one['id']}", body)
    return tell(arguments, reply, str(one["id"]), f"reservation {one['id']}: {said}")


def _ask() -> tuple[str, str | None]:
    """Ask for the field to change and its new value; an extension asks for the hours itself."""
    what = tuple(CHANGES)[choose("What to change", tuple(CHANGES), tuple(CHANGES.values()))]

    def read(answer: str) -> str:
        if not answer:
            raise ValueError("a name, please")
        return answer

    return what, ask_until(ASKED[what], "", read) if what in ASKED else None


def _change(what: str, value: str | None) -> tuple[dict[str, Any], str]:
    """The body to send, and the message to print when it is done."""
    if what == "name":
        return {"name": value}, f"its name is {render.clean(value or '')}"
    assert what == "add-user"
    return {"add_user": value}, f"{render.clean(value or '')} may use it, too"


def _set_jupyter(
    client: Client, arguments: Arguments, one: dict[str, Any], *, on: bool
) -> int:  # fmt: skip
    """Asked for, and looked at until it is so."""
    from odcctl.reservations import jupyter

    path = f"/v1/reservations/{one['id']}"
    reply = client.patch(path, {"jupyter": on})
    settled = jupyter.until_settled(client, reply.json())
    if settled.get("jupyter") == "failed" or (on and settled.get("jupyter") == "starting"):
        raise jupyter.failure(settled) or AssertionError
    if settled != reply.json():
        reply = client.get(path)
    if settled["status"] != "active":
        said = "Jupyter Lab starts with it" if on else "Jupyter Lab does not start with it"
    else:
        said = f"Jupyter Lab runs: odcctl connect {one['id']} --jupyter" if on else (
            "Jupyter Lab is ended"
        )  # fmt: skip
    return tell(arguments, reply, str(one["id"]), f"reservation {one['id']}: {said}")


COMMAND = Command(
    name="edit",
    summary="Change a reservation: extend it, rename it, share it, Jupyter",
    usage="edit [ID] --extend HOURS | --name NAME | --add-user NAME | --enable-jupyter",
    words=(0, 1),
    takes_jobs=True,
    notes=(
        "One change at a time, on a terminal from a menu when none is named. ID is that of the "
        "reservation, the start of it, or its name; without one it is the only one that there is. "
        "A server that is too old rejects what it does not know."
    ),
    options=(
        Option("extend", None, "HOURS", "as odcctl extend: above 0 and up to 24, as 0.5"),
        YES,
        Option("name", "n", "NAME", "another name"),
        Option("add-user", None, "NAME", "this GitHub user's keys may enter it, too"),
        Option("enable-jupyter", None, None, "start Jupyter Lab in it"),
        Option("disable-jupyter", None, None, "end Jupyter Lab in it"),
    ),
    example="odcctl edit 12 --name debug\nodcctl edit 12 --extend 0.5",
    run=run,
    what="nothing changed",
)
