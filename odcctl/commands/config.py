"""odcctl config: what odcctl and ssh keep on this machine, and one's name at GitHub."""

from __future__ import annotations

from typing import Any

from odcctl.exits import DONE, Failure
from odcctl.http.address import config_path, find_server, parse_address, read_config
from odcctl.http.client import Client
from odcctl.options import Arguments, Command
from odcctl.reservations.lookup import named_or_only
from odcctl.text import render

WHO_S = 5.0
KEYS = ("server", "github_user", "forward_agent")


def run(arguments: Arguments) -> int:
    what, *words = arguments.words or ["show"]
    if what == "show" and not words:
        return _show(arguments)
    if what == "set" and len(words) == 2:
        return _set(arguments, *words)
    if what == "ssh-include" and words in (["enable"], ["disable"]):
        return _include(arguments, on=words == ["enable"])
    if what == "ssh" and len(words) < 2:
        arguments.words = words
        return _ssh(arguments)
    arguments.command.wrong(f'"{" ".join(arguments.words)}" is not what it does')


def _show(arguments: Arguments) -> int:
    from odcctl.ssh.host_files import FORWARD, REMEMBERED

    config = read_config()
    told: dict[str, Any] = {
        "file": config_path(),
        "server": str(find_server(arguments.value("server")).addresses[0]),
        "github_user": config.get("github_user"),
        REMEMBERED: config.get(REMEMBERED),
        FORWARD: config.get(FORWARD) is not False,
        "token": "set" if config.get("token") else None,
        "user": _who(arguments),
    }
    if arguments.form == "json":
        render.put_json(told)
        return DONE
    included = {True: "enabled", False: "disabled"}.get(told[REMEMBERED], "not decided")
    pairs = [
        ("file", str(told["file"])),
        ("server", str(told["server"])),
        ("github_user", render.clean(str(told["github_user"] or "not set"))),
        ("ssh-include", included),
        ("ssh-agent", "forwarded" if told[FORWARD] else "left to ssh"),
        ("token", str(told["token"] or "")),
        ("you are", render.clean(told["user"] or "not known: the server does not say")),
    ]
    render.put(render.block("", pairs))
    return DONE


def _who(arguments: Arguments) -> str | None:
    """As the server knows who asks, of AWS too; None: it does not answer, or not to us."""
    try:
        return str(Client.of(arguments).get("/v1/users/me", timeout_s=WHO_S).json()["user"])
    except Failure:
        return None


def _set(arguments: Arguments, key: str, value: str) -> int:
    from odcctl.http.config import keep

    if key not in KEYS:
        arguments.command.wrong(f'"{key}" cannot be set; what can: {", ".join(KEYS)}')
    if key == "server":
        keep(key, str(parse_address(value)))
    elif key == "forward_agent":
        if value not in ("on", "off"):
            arguments.command.wrong(f'forward_agent is on or off, not "{value}"')
        keep(key, value == "on")
    else:
        # The daemon keeps it, for it is the one that asks GitHub; here it is only remembered.
        told = Client.of(arguments).put("/v1/users/me", {"github_user": value}).json()
        value = str(told["github_user"])
        keep(key, value)
    render.note(f"odcctl: {key} is {render.clean(value)}")
    return DONE


def _include(arguments: Arguments, *, on: bool) -> int:
    from odcctl.ssh.host_files import INCLUDE, include

    changed = include(on)
    for path in changed:
        render.note(f"odcctl: {path} {'begins with' if on else 'has no'} line: {INCLUDE}")
    if not changed:
        render.note(f"odcctl: ssh-include was {'enabled' if on else 'disabled'} already")
    return DONE


def _ssh(arguments: Arguments) -> int:
    """Make ssh find a reservation, and say where that stands."""
    from odcctl.reservations.errors import not_now
    from odcctl.ssh import host_files as ssh

    client = Client.of(arguments)
    chosen = named_or_only(client, arguments, ("active",))
    reply = client.get(f"/v1/reservations/{chosen['id']}")
    one = reply.json()
    if one["status"] != "active" or one.get("connect") is None:
        raise not_now(client, one, reply.now_s)
    if one["connect"] != "ssh":
        raise Failure(
            f"reservation {one['id']} is not reached by SSH", f"odcctl connect {one['id']}"
        )
    path = ssh.write(client, one)
    if arguments.form == "json":
        render.put_json({"id": one["id"], "host": ssh.host_of(one["id"]), "file": path})
    else:
        render.put(f"{path}\n")
    return DONE


COMMAND = Command(
    name="config",
    summary="Show and change what is kept here: the server, GitHub name, ssh's Include line",
    usage="config [show] | set KEY VALUE | ssh-include enable|disable | ssh [ID]",
    words=(0, 3),
    notes=(
        "`set server ADDRESS` writes the config file. `set github_user NAME` names the GitHub "
        "account whose SSH keys enter your dev servers. `set forward_agent off` leaves agent "
        "forwarding to ssh's own files. `ssh-include enable` adds one line to ~/.ssh/config and "
        "Cursor's ~/.cursor/ssh_config, by which `ssh odc-12`, VS Code and Cursor find your "
        "reservations; disable removes it. `ssh [ID]` writes the ssh configuration of one "
        "reservation and prints its path, for `ssh -F`."
    ),
    example="odcctl config set github_user octocat\nodcctl config ssh-include enable",
    run=run,
    what="nothing changed",
)
