"""odcctl licence list | set | delete: counted goods that jobs hold while they run."""

from __future__ import annotations

from typing import Any

from odcctl.exits import DONE
from odcctl.http.client import Client, quote
from odcctl.options import Arguments, Command, Option
from odcctl.text import render

HEADER = ("LICENCE", "TOTAL", "USED", "FREE", "JOBS")
WORDS = {"list": 0, "set": 2, "delete": 1}


def run(arguments: Arguments) -> int:
    action, *words = arguments.words
    if action not in WORDS:
        arguments.command.wrong(f'"{action}" is not list, set or delete')
    if len(words) != WORDS[action]:
        arguments.command.wrong(
            {
                "list": "list takes no name",
                "set": "set takes a name and a total",
                "delete": "delete takes a name",
            }[action]
        )
    if action != "list" and arguments.flag("no-header"):
        arguments.command.wrong(f"{action} takes no --no-header")
    client = Client.of(arguments)
    if action == "list":
        reply = client.get("/v1/licences")
        licences: list[dict[str, Any]] = reply.json()["licences"]
        said = render.table(
            () if arguments.flag("no-header") else HEADER,
            [_row(licence) for licence in licences],
            render.terminal_width(),
        )
    else:
        name = words[0]
        path = f"/v1/licences/{quote(name)}"
        if action == "set":
            reply = client.put(path, {"total": _total(arguments, words[1])})
            said = f"licence {name}: {reply.json()['total']} in all\n"
        else:
            reply = client.delete(path)
            said = f"licence {name} deleted\n"
        licences = [reply.json()]
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put("".join(f"{licence['name']}\n" for licence in licences))
    else:
        render.put(said)
    return DONE


def _total(arguments: Arguments, text: str) -> int:
    if not text.isdecimal():
        arguments.command.wrong(f'"{text}" is not a total')
    return int(text)


def _row(licence: dict[str, Any]) -> tuple[str, ...]:
    counts = (str(licence[key]) for key in ("total", "used", "free"))
    return (licence["name"], *counts, " ".join(str(job) for job in licence["jobs"]))


COMMAND = Command(
    name="licence",
    summary="Show licences, and say how many there are: list, set, delete",
    usage="licence list | licence set NAME TOTAL | licence delete NAME",
    words=(1, None),
    notes="A job asks for licences by submit --licenses NAME[:N] and holds them while it runs.",
    options=(Option("no-header", None, None, "of list: leave the header line out"),),
    example="odcctl licence set matlab 4\nodcctl licence list",
    run=run,
    what="nothing changed",
)
