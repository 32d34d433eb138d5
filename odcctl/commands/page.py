"""odcctl page: the address that lets a browser in."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.exits import DONE
from odcctl.text import render

app = new_app()


@app.command(cls=Verb, epilog="odcctl page --open")
def page(
    ctx: typer.Context,
    opens: Annotated[
        bool, typer.Option("--open", help="open it in this machine's browser")
    ] = False,
    browser: Annotated[
        str | None,
        typer.Option(
            "--browser", metavar="USER", autocompletion=complete.users,
            help="the user who runs the browser on the daemon's machine, or forwards its port by "
            "ssh; "
            "default: you; under sudo, the user who ran it",
        ),
    ] = None,
    port: Annotated[
        str | None,
        typer.Option(
            "--port", metavar="N",
            help="the port on the browser's machine that is forwarded to the daemon",
        ),
    ] = None,
) -> int:  # fmt: skip
    """Print an address that signs a browser in to the live page.

    The address contains a ticket that works once, within one minute. The page shows the queue,
    the nodes and the plan live, and your own jobs with their output. On the daemon's machine,
    the ticket works only in a browser of the same user.

    If the daemon runs on another machine and listens on 127.0.0.1 there, forward its port, for
    example 720: ssh -L 7070:127.0.0.1:720 HOST; `odcctl page --port 7070` prints the address
    for that.
    """
    call = Call.of(ctx)
    client = call.client()
    uid = _browser_uid(call, browser)
    path = "/v1/page/tickets" + ("" if uid is None else f"?browser_uid={uid}")
    answer = client.post(path, {}).json()
    # Over TCP the server does not know the name by which it was reached; the client does.
    base = (answer["url"] or str(client.addresses[0])).removesuffix(answer["path"])
    url = f"{_through(call, port, base)}{answer['path']}"
    if call.form == "json":
        render.put(json.dumps({**answer, "url": url}) + "\n")
    else:
        render.put(f"{url}\n")
        if call.form == "table":
            render.note(
                "This address signs in one browser, once, within one minute. The session lasts 12 "
                "hours."
            )
    if opens:
        _open(url)
    return DONE


def _browser_uid(call: Call, user: str | None) -> int | None:
    """The uid of the browser on the daemon's machine; None: the caller's."""
    if user is None:
        caller = os.environ.get("SUDO_UID", "")
        return int(caller) if caller.isdecimal() else None
    if user.isdecimal():
        return int(user)
    import pwd  # only for --browser

    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        call.wrong(f'this machine has no user "{user}"; give the uid')


def _through(call: Call, port: str | None, base: str) -> str:
    """The address by a port of the browser's machine that leads to the daemon's."""
    if port is None:
        return base
    if not port.isdecimal() or not 0 < int(port) < 65536:
        call.wrong(f'"{port}" is not a port')
    scheme = base.partition("://")[0]
    return f"{scheme}://127.0.0.1:{int(port)}"


def _open(url: str) -> None:
    import webbrowser  # only for --open

    from odcctl.http import redirect

    # All users of the machine can read a command line, but only the owner the file.
    file = redirect.make(url)
    if webbrowser.open(file.as_uri()):
        redirect.remove_later(file)
    else:
        redirect.remove(file)
        render.note("odcctl: no browser was found; open the address yourself")
