"""odcctl login: trade AWS credentials for an API key, which odcctl keeps and renews by itself."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.exits import DONE
from odcctl.http.address import Address, is_safe
from odcctl.http.client import post_login
from odcctl.text import render

app = new_app()


@app.command(cls=Verb, epilog="odcctl --server https://odc.example:8443 login --profile gpu")
def login(
    ctx: typer.Context,
    profile: Annotated[
        str | None,
        typer.Option("--profile", metavar="NAME", help="of ~/.aws/config; default AWS_PROFILE"),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(
            "--region", metavar="NAME",
            help="default AWS_REGION, AWS_DEFAULT_REGION, us-east-2",
        ),
    ] = None,
    github_user: Annotated[
        str | None,
        typer.Option(
            "--github-user", metavar="NAME",
            help="who you are at GitHub, where the server asks for it",
        ),
    ] = None,
    server_id: Annotated[
        str | None,
        typer.Option(
            "--server-id", metavar="TEXT",
            help="what the server calls itself, if not by its address",
        ),
    ] = None,
) -> int:  # fmt: skip
    """Log in to a server elsewhere by AWS credentials.

    The credentials are those the AWS tools would use: a profile, the environment, a session of
    SSO. They stay here; the server gets a signature that identifies you, valid for some minutes
    and once, and gives a key for two hours. The key is kept in ~/.config/odcctl/keys.json and
    renewed by itself as long as the credentials hold. Needs botocore: pip install 'odc[aws]'.
    """
    call = Call.of(ctx, failing="not logged in")
    address = tcp_address(call)
    if not is_safe(address):
        render.note(f"odcctl: {address} has no TLS: the key can be read on the way")
    from odcctl.http.login import Choice, log_in

    choice = Choice(profile=profile, region=region, github_user=github_user, server_id=server_id)
    answer = log_in(address, choice, post_login)
    # The key is in its file, and nowhere else.
    shown: dict[str, Any] = {name: value for name, value in answer.items() if name != "key"}
    if call.form == "json":
        render.put(json.dumps({"server": str(address), **shown}) + "\n")
    elif call.form == "quiet":
        render.put(f"{render.clean(shown['user'])}\n")
    else:
        render.put(
            f"logged in to {address} as {render.clean(shown['user'])} "
            f"(role {render.clean(shown['role'])}) until {render.when(shown['expires_at'])}\n"
        )
    return DONE


def tcp_address(call: Call) -> Address:
    """The one server a key could be for."""
    [address, *others] = call.client().addresses
    if others or address.path is not None:
        call.wrong(
            "on the daemon's machine its socket identifies you; a login is for a server "
            "elsewhere: --server https://HOST:PORT, or `server` of the config file"
        )
    return address
