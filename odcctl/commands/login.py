"""odcctl login: trade AWS credentials for an API key, which odcctl keeps and renews by itself."""

from __future__ import annotations

import json
from typing import Any

from odcctl.exits import DONE
from odcctl.http.address import Address, is_safe
from odcctl.http.client import Client, post_login
from odcctl.options import Arguments, Command, Option
from odcctl.text import render


def run(arguments: Arguments) -> int:
    address = tcp_address(arguments)
    if not is_safe(address):
        render.note(f"odcctl: {address} has no TLS: the key can be read on the way")
    from odcctl.http.login import Choice, log_in

    answer = log_in(
        address,
        Choice(
            profile=arguments.value("profile"),
            region=arguments.value("region"),
            github_user=arguments.value("github-user"),
            server_id=arguments.value("server-id"),
        ),
        post_login,
    )
    # The key is in its file, and nowhere else.
    told: dict[str, Any] = {name: value for name, value in answer.items() if name != "key"}
    if arguments.form == "json":
        render.put(json.dumps({"server": str(address), **told}) + "\n")
    elif arguments.form == "quiet":
        render.put(f"{render.clean(told['user'])}\n")
    else:
        render.put(
            f"logged in to {address} as {render.clean(told['user'])} "
            f"(role {render.clean(told['role'])}) until {render.when(told['expires_at'])}\n"
        )
    return DONE


def tcp_address(arguments: Arguments) -> Address:
    """The one server a key could be for."""
    [address, *others] = Client.of(arguments).addresses
    if others or address.path is not None:
        arguments.command.wrong(
            "on the daemon's machine its socket identifies you; a login is for a server "
            "elsewhere: --server https://HOST:PORT, or `server` of the config file"
        )
    return address


COMMAND = Command(
    name="login",
    summary="Log in to a server elsewhere by AWS credentials",
    usage="login [--profile NAME] [OPTIONS]",
    what="not logged in",
    notes=(
        "The credentials are those the AWS tools would use: a profile, the environment, a session "
        "of SSO. They stay here; the server gets a signature that identifies you, valid for some "
        "minutes and once, and gives a key for two hours. The key is kept in "
        "~/.config/odcctl/keys.json and renewed by itself as long as the credentials hold. Needs "
        "botocore: pip install 'odc[aws]'."
    ),
    options=(
        Option("profile", None, "NAME", "of ~/.aws/config; default AWS_PROFILE"),
        Option("region", None, "NAME", "default AWS_REGION, AWS_DEFAULT_REGION, us-east-2"),
        Option("github-user", None, "NAME", "who you are at GitHub, where the server asks for it"),
        Option("server-id", None, "TEXT", "what the server calls itself, if not by its address"),
    ),
    example="odcctl --server https://odc.example:8443 login --profile gpu",
    run=run,
)
