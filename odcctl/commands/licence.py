"""odcctl licence list | set | delete: licences that jobs use while they run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Listing, Verb, new_app
from odcctl.http.client import quote

HEADER = ("LICENCE", "TOTAL", "USED", "FREE", "JOBS")
FAILING = "nothing changed"

app = new_app(
    Actions,
    "List licences, and set how many there are: list, set, delete.\n\n"
    "A job requests licences with submit --licenses NAME[:N] and uses them while it runs. "
    "`odcctl license` is the same command.",
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="the licence", autocompletion=complete.licences)
]


@app.command("list", cls=Listing, epilog="odcctl licence list")
def list_licences(ctx: typer.Context) -> int:
    """List the licences, and the jobs that use them."""
    call = Call.of(ctx)
    reply = call.client().get("/v1/licences")
    licences: list[dict[str, Any]] = reply.json()["licences"]
    names = (licence["name"] for licence in licences)
    return call.put_list(reply, names, HEADER, [_row(licence) for licence in licences])


@app.command("set", cls=Verb, epilog="odcctl licence set matlab 4")
def set_total(
    ctx: typer.Context,
    name: Name,
    total: Annotated[str, typer.Argument(metavar="TOTAL", help="the total")],
) -> int:
    """Set the total of a licence."""
    call = Call.of(ctx, failing=FAILING)
    if not total.isdecimal():
        call.wrong(f'"{total}" is not a whole number')
    reply = call.client().put(f"/v1/licences/{quote(name)}", {"total": int(total)})
    licence = reply.json()
    return call.put_outcome(reply, licence["name"], f"licence {name}: {licence['total']} in all")


@app.command(cls=Verb, epilog="odcctl licence delete matlab")
def delete(ctx: typer.Context, name: Name) -> int:
    """Delete a licence."""
    call = Call.of(ctx, failing=FAILING)
    reply = call.client().delete(f"/v1/licences/{quote(name)}")
    return call.put_outcome(reply, reply.json()["name"], f"licence {name} deleted")


def _row(licence: dict[str, Any]) -> tuple[str, ...]:
    counts = (str(licence[key]) for key in ("total", "used", "free"))
    return (licence["name"], *counts, " ".join(str(job) for job in licence["jobs"]))
