"""odcctl page: the address that lets a browser in."""

from __future__ import annotations

import json

from odcctl import render
from odcctl.client import Client
from odcctl.exits import DONE
from odcctl.options import Arguments, Command, Option


def run(arguments: Arguments) -> int:
    client = Client.of(arguments)
    reply = client.post("/v1/page/tickets", {})
    answer = reply.json()
    # Over TCP the server does not know by which name it was reached: it is the one that was asked.
    url = answer["url"] or f"{client.addresses[0]}{answer['path']}"
    if arguments.form == "json":
        render.put(json.dumps({**answer, "url": url}) + "\n")
    else:
        render.put(f"{url}\n")
        if arguments.form == "table":
            render.note("It lets one browser in, once, within a minute; you stay for 12 hours.")
    if arguments.flag("open"):
        _open(url)
    return DONE


def _open(url: str) -> None:
    import webbrowser  # for --open alone

    if not webbrowser.open(url):
        render.note("odcctl: there is no browser here; open that address yourself")


COMMAND = Command(
    name="page",
    summary="Print the address that lets a browser in to the live page",
    usage="page [--open]",
    notes=(
        "The address holds a ticket that works once, for a minute. The page shows queue, nodes and "
        "plan as they are, and your own jobs with their output. Where the daemon is on another "
        "machine and listens on 127.0.0.1 there, forward its port: ssh -L 7070:127.0.0.1:7070 HOST."
    ),
    options=(Option("open", None, None, "open it in the browser of this machine"),),
    example="odcctl page --open",
    run=run,
)
