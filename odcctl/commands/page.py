"""odcctl page: the address that lets a browser in."""

from __future__ import annotations

import json
import os

from odcctl.exits import DONE
from odcctl.http.client import Client
from odcctl.options import Arguments, Command, Option
from odcctl.text import render


def run(arguments: Arguments) -> int:
    client = Client.of(arguments)
    uid = _browser_uid(arguments)
    path = "/v1/page/tickets" + ("" if uid is None else f"?browser_uid={uid}")
    answer = client.post(path, {}).json()
    # Over TCP the server does not know by which name it was reached: it is the one that was asked.
    base = (answer["url"] or str(client.addresses[0])).removesuffix(answer["path"])
    url = f"{_through(arguments, base)}{answer['path']}"
    if arguments.form == "json":
        render.put(json.dumps({**answer, "url": url}) + "\n")
    else:
        render.put(f"{url}\n")
        if arguments.form == "table":
            render.note("It lets one browser in, once, within a minute; you stay for 12 hours.")
    if arguments.flag("open"):
        _open(url)
    return DONE


def _browser_uid(arguments: Arguments) -> int | None:
    """The uid of the browser on the daemon's machine; None: the caller's."""
    named = arguments.value("browser")
    if named is None:
        caller = os.environ.get("SUDO_UID", "")
        return int(caller) if caller.isdecimal() else None
    if named.isdecimal():
        return int(named)
    import pwd  # for --browser alone

    try:
        return pwd.getpwnam(named).pw_uid
    except KeyError:
        arguments.command.wrong(f'this machine has no user "{named}"; give the number')


def _through(arguments: Arguments, base: str) -> str:
    """The address by a port of the browser's machine that leads to the daemon's."""
    port = arguments.value("port")
    if port is None:
        return base
    if not port.isdecimal() or not 0 < int(port) < 65536:
        arguments.command.wrong(f'"{port}" is not a port')
    scheme = base.partition("://")[0]
    return f"{scheme}://127.0.0.1:{int(port)}"


def _open(url: str) -> None:
    import webbrowser  # for --open alone

    from odcctl.http import redirect

    # A command line can be read by every user of the machine, a file by its owner alone.
    file = redirect.make(url)
    if webbrowser.open(file.as_uri()):
        redirect.remove_later(file)
    else:
        redirect.remove(file)
        render.note("odcctl: there is no browser here; open that address yourself")


COMMAND = Command(
    name="page",
    summary="Print the address that lets a browser in to the live page",
    usage="page [--open] [--browser USER] [--port N]",
    notes=(
        "The address holds a ticket that works once, for a minute. The page shows queue, nodes and "
        "plan as they are, and your own jobs with their output. On the daemon's machine the ticket "
        "works in a browser of the same user only. Where the daemon is on another machine and "
        "listens on 127.0.0.1 there, forward its port, for example 720: "
        "ssh -L 7070:127.0.0.1:720 HOST; `odcctl page --port 7070` prints the address for that."
    ),
    options=(
        Option("open", None, None, "open it in the browser of this machine"),
        Option(
            "browser", None, "USER",
            "who runs the browser on the daemon's machine, or forwards its port by ssh; default "
            "you, under sudo who called it",
        ),
        Option("port", None, "N", "the port of the browser's machine that leads to the daemon's"),
    ),
    example="odcctl page --open",
    run=run,
)  # fmt: skip
