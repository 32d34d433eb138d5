"""odcctl login: use AWS credentials to get an API key, which odcctl stores and renews."""

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
        typer.Option(
            "--profile", metavar="NAME", help="a profile of ~/.aws/config; default AWS_PROFILE"
        ),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(
            "--region", metavar="NAME",
            help="default AWS_REGION, else AWS_DEFAULT_REGION, else us-east-2",
        ),
    ] = None,
    github_user: Annotated[
        str | None,
        typer.Option(
            "--github-user", metavar="NAME",
            help="your GitHub name, if the server requires it",
        ),
    ] = None,
    server_id: Annotated[
        str | None,
        typer.Option(
            "--server-id", metavar="TEXT",
            help="the server's id, if it is not its address",
        ),
    ] = None,
) -> int:  # fmt: skip
    """Log in to a remote server with AWS credentials.

    The credentials are those that the AWS tools would use: a profile, the environment, or an
    SSO session. They stay on this machine. The server receives a signature that identifies you,
    works once and is valid for a few minutes, and returns a key for two hours. The key is
    stored in ~/.config/odcctl/keys.json and renewed while the credentials are valid. Requires
    botocore: pip install 'odc[aws]'.
    """
    call = Call.of(ctx, failing="not logged in")
    address = tcp_address(call)
    if not is_safe(address):
        render.note(f"odcctl: {address} does not use TLS: others on the network can read the key")
    from odcctl.http.login import Choice, log_in

    choice = Choice(profile=profile, region=region, github_user=github_user, server_id=server_id)
    answer = log_in(address, choice, post_login)
    # The key is only in its file.
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
    """The address of the server; a login over a socket is wrong usage."""
    [address, *others] = call.client().addresses
    if others or address.path is not None:
        call.wrong(
            "on the daemon's machine, its socket identifies you. To log in to a remote "
            "server, use --server https://HOST, or `server` in the config file"
        )
    return address
