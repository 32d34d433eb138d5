"""odcctl config: the settings of odcctl and ssh on this machine, and the user's GitHub name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Verb, new_app
from odcctl.cli.params import Reservation
from odcctl.exits import DONE, Failure
from odcctl.http.address import config_path, find_server, parse_address, read_config
from odcctl.reservations.lookup import named_or_only
from odcctl.text import render

WHO_S = 5.0
KEYS = ("server", "github_user", "forward_agent")
FAILING = "nothing changed"

app = new_app(Actions)


@app.callback(invoke_without_command=True)
def config(ctx: typer.Context) -> int | None:
    """Show or change local settings: the server, your GitHub name, ssh's Include line.

    Without an action, shows the settings.
    """
    return show(ctx) if ctx.invoked_subcommand is None else None


@app.command(cls=Verb, epilog="odcctl config show --json")
def show(ctx: typer.Context) -> int:
    """Show the local settings, and who you are to the server."""
    from odcctl.ssh.host_files import CHOICE_KEY, FORWARD_KEY

    call = Call.of(ctx)
    kept = read_config()
    facts: dict[str, Any] = {
        "file": config_path(),
        "server": str(find_server(call.server).addresses[0]),
        "github_user": kept.get("github_user"),
        CHOICE_KEY: kept.get(CHOICE_KEY),
        FORWARD_KEY: kept.get(FORWARD_KEY) is not False,
        "token": "set" if kept.get("token") else None,
        "user": _who(call),
    }
    if call.form == "json":
        render.put_json(facts)
        return DONE
    included = {True: "enabled", False: "disabled"}.get(facts[CHOICE_KEY], "not decided")
    pairs = [
        ("file", str(facts["file"])),
        ("server", str(facts["server"])),
        ("github_user", render.clean(str(facts["github_user"] or "not set"))),
        ("ssh-include", included),
        ("ssh-agent", "forwarded" if facts[FORWARD_KEY] else "as ssh is configured"),
        ("token", str(facts["token"] or "")),
        ("you are", render.clean(facts["user"] or "unknown: the server did not answer")),
    ]
    render.put(render.block("", pairs))
    return DONE


def _who(call: Call) -> str | None:
    """The user's name on the server; None if the server gives no answer."""
    try:
        return str(call.client().get("/v1/users/me", timeout_s=WHO_S).json()["user"])
    except Failure:
        return None


@app.command("set", cls=Verb, epilog="odcctl config set github_user octocat")
def set_value(
    ctx: typer.Context,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help=", ".join(KEYS), autocompletion=lambda: list(KEYS))
    ],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="its value")],
) -> int:
    """Set the server, your GitHub name, or whether your SSH agent is forwarded.

    `set server ADDRESS` writes the config file. `set github_user NAME` sets the GitHub user
    whose SSH keys may connect to your dev servers. `set forward_agent off` leaves agent
    forwarding to ssh's own configuration.
    """
    from odcctl.http.config import keep

    call = Call.of(ctx, failing=FAILING)
    if key not in KEYS:
        call.wrong(f'"{key}" cannot be set; the settings are {", ".join(KEYS)}')
    if key == "server":
        keep(key, str(parse_address(value)))
    elif key == "forward_agent":
        if value not in ("on", "off"):
            call.wrong(f'forward_agent must be on or off, not "{value}"')
        keep(key, value == "on")
    else:
        # The daemon stores it, because it asks GitHub for the keys; here it is only a copy.
        reply = call.client().put("/v1/users/me", {"github_user": value})
        value = str(reply.json()["github_user"])
        keep(key, value)
    render.note(f"odcctl: {key} is {render.clean(value)}")
    return DONE


@app.command("ssh-include", cls=Verb, epilog="odcctl config ssh-include enable")
def ssh_include(
    ctx: typer.Context,
    state: Annotated[
        str,
        typer.Argument(
            metavar="enable|disable", help="add the line, or remove it",
            autocompletion=lambda: ["enable", "disable"],
        ),
    ],
) -> int:  # fmt: skip
    """Add an Include line to the configuration of ssh and Cursor, or remove it.

    With this line in ~/.ssh/config and ~/.cursor/ssh_config, `ssh odc-12`, VS Code and Cursor
    find your reservations.
    """
    from odcctl.ssh.host_files import INCLUDE, include

    if state not in ("enable", "disable"):
        Call.of(ctx).wrong(f'ssh-include must be enable or disable, not "{state}"')
    on = state == "enable"
    changed = include(on)
    for path in changed:
        render.note(f"odcctl: {path} {'begins with' if on else 'has no'} line: {INCLUDE}")
    if not changed:
        render.note(f"odcctl: ssh-include was already {'enabled' if on else 'disabled'}")
    return DONE


@app.command(cls=Verb, epilog="ssh -F $(odcctl config ssh 12) odc-12")
def ssh(ctx: typer.Context, reservation: Reservation = None) -> int:
    """Write the ssh configuration of one reservation, and print its path, for `ssh -F`."""
    from odcctl.reservations.errors import not_now
    from odcctl.ssh import host_files

    call = Call.of(ctx, failing=FAILING)
    client = call.client()
    chosen = named_or_only(call, reservation, ("active",))
    reply = client.get(f"/v1/reservations/{chosen['id']}")
    one = reply.json()
    if one["status"] != "active" or one.get("connect") is None:
        raise not_now(client, one, reply.now_s)
    if one["connect"] != "ssh":
        raise Failure(f"reservation {one['id']} does not use SSH", f"odcctl connect {one['id']}")
    path = host_files.write(client, one)
    if call.form == "json":
        render.put_json({"id": one["id"], "host": host_files.host_of(one["id"]), "file": path})
    else:
        render.put(f"{path}\n")
    return DONE
