"""odcctl edit: change a reservation: its end, its name, who may use it, Jupyter."""

from __future__ import annotations

from typing import Annotated, Any

import click
import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import Reservation, Yes
from odcctl.commands.extend import give_hours, hours_of
from odcctl.reservation_states import LIVE
from odcctl.reservations.lookup import named_or_only
from odcctl.text import render
from odcctl.text.prompts import choose, prompt_until_valid

CHANGES = {
    "extend": "add hours", "name": "its name", "add-user": "allow another user to connect",
    "enable-jupyter": "start Jupyter Lab", "disable-jupyter": "stop Jupyter Lab",
}  # fmt: skip
QUESTIONS = {"name": "Its new name", "add-user": "Their GitHub name"}

app = new_app()


class EditVerb(Verb):
    """--extend without a value asks for the hours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for at, word in enumerate(args):
            if word == "--extend" and (at + 1 == len(args) or args[at + 1].startswith("-")):
                args[at] = "--extend="
        return super().parse_args(ctx, args)


@app.command(cls=EditVerb, epilog="odcctl edit 12 --name debug\nodcctl edit 12 --extend 0.5")
def edit(
    ctx: typer.Context,
    reservation: Reservation = None,
    more_hours: Annotated[
        str | None,
        typer.Option(
            "--extend", metavar="HOURS",
            help="add this many hours, like odcctl extend: above 0 and up to 24; without HOURS, a "
            "terminal asks for them",
        ),
    ] = None,
    yes: Yes = False,
    name: Annotated[
        str | None, typer.Option("--name", "-n", metavar="NAME", help="the new name")
    ] = None,
    add_user: Annotated[
        str | None,
        typer.Option(
            "--add-user", metavar="NAME", help="allow this GitHub user's keys to connect, too"
        ),
    ] = None,
    enable_jupyter: Annotated[
        bool, typer.Option("--enable-jupyter", help="start Jupyter Lab in it")
    ] = False,
    disable_jupyter: Annotated[
        bool, typer.Option("--disable-jupyter", help="stop Jupyter Lab in it")
    ] = False,
) -> int:  # fmt: skip
    """Change a reservation: extend, rename or share it, start or stop Jupyter.

    Make one change at a time; without options, a terminal shows a menu. Without an ID, changes
    your only reservation. A server that is too old rejects changes that it does not support."""
    call = Call.of(ctx, failing="nothing changed")
    values = {
        "extend": more_hours, "name": name, "add-user": add_user,
        "enable-jupyter": enable_jupyter or None, "disable-jupyter": disable_jupyter or None,
    }  # fmt: skip
    given = [change for change, value in values.items() if value is not None]
    if len(given) > 1:
        both = f"--{given[0]} and --{given[1]}"
        call.wrong(f"{both} cannot be used together: make one change at a time")
    if yes and given != ["extend"]:
        call.wrong("--yes requires --extend")
    if not given and not call.may_prompt():
        call.wrong("name at least one setting to change")
    for change in ("name", "add-user"):
        if values[change] == "":
            call.wrong(f"--{change} is empty")
    if more_hours == "" and not call.may_prompt():
        call.wrong("give the hours to add: --extend HOURS")
    hours = hours_of(call, "extend", more_hours or None)
    one = named_or_only(call, reservation, ("active",) if given == ["extend"] else LIVE)
    change, value = (given[0], name or add_user) if given else _prompt()
    if change == "extend":
        return give_hours(call, one, hours, yes=yes)
    if change in ("enable-jupyter", "disable-jupyter"):
        return _set_jupyter(call, one, on=change == "enable-jupyter")
    body, text = _change(change, value)
    reply = call.client().patch(f"/v1/reservations/{one['id']}", body)
    return call.put_outcome(reply, str(one["id"]), f"reservation {one['id']}: {text}")


def _prompt() -> tuple[str, str | None]:
    """Ask for the field to change and its new value; an extension asks for the hours itself."""
    what = tuple(CHANGES)[choose("Change", tuple(CHANGES), tuple(CHANGES.values()))]

    def read(answer: str) -> str:
        if not answer:
            raise ValueError("enter a name")
        return answer

    return what, prompt_until_valid(QUESTIONS[what], "", read) if what in QUESTIONS else None


def _change(what: str, value: str | None) -> tuple[dict[str, Any], str]:
    """The body to send, and the message to print when it is done."""
    if what == "name":
        return {"name": value}, f"its name is {render.clean(value or '')}"
    assert what == "add-user"
    return {"add_user": value}, f"{render.clean(value or '')} may connect, too"


def _set_jupyter(call: Call, one: dict[str, Any], *, on: bool) -> int:
    """Start or end Jupyter Lab, and wait until that is done."""
    from odcctl.reservations import jupyter

    client, path = call.client(), f"/v1/reservations/{one['id']}"
    reply = client.patch(path, {"jupyter": on})
    settled = jupyter.until_settled(client, reply.json())
    if settled.get("jupyter") == "failed" or (on and settled.get("jupyter") == "starting"):
        raise jupyter.failure(settled) or AssertionError
    if settled != reply.json():
        reply = client.get(path)
    if settled["status"] != "active":
        text = "Jupyter Lab will start with it" if on else "Jupyter Lab will not start with it"
    else:
        text = f"Jupyter Lab is running: odcctl connect {one['id']} --jupyter" if on else (
            "Jupyter Lab was stopped"
        )  # fmt: skip
    return call.put_outcome(reply, str(one["id"]), f"reservation {one['id']}: {text}")
