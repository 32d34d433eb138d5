"""Log in with AWS credentials: sign a request, send it to the server, store the key it returns.

The server receives a presigned request by which AWS reports who signed it. It is valid for a few
minutes, for this server only, and once. The credentials do not leave this machine.
"""

from __future__ import annotations

import os
import re
import secrets
from typing import Any, NamedTuple

from odcctl.exits import Failure, WrongUsage
from odcctl.http import keys
from odcctl.http.address import (
    Address,
    check_configured,
    is_safe,
    parse_address,
    read_config,
)
from odcctl.http.keys import Post

DEFAULT_REGION = "us-east-2"
SERVER_ID = "ODC_SERVER_ID"
MIN_LIFE_S = 60
MORE_LIFE_S = 240
"""A random lifetime makes two signatures of one second differ: each is accepted once."""
_REGION = re.compile(r"[a-z0-9-]{1,40}")


class Choice(NamedTuple):
    """The options of a login; None: taken from the environment."""

    profile: str | None = None
    region: str | None = None
    github_user: str | None = None
    server_id: str | None = None


def log_in(address: Address, choice: Choice, post: Post) -> dict[str, Any]:
    """Log in and store the key; return the server's answer. Raises Failure."""
    answer = _request_key(address, choice, post)
    _keep(address, choice, answer, keys.named_profile())
    return answer


def log_in_again(address: Address, entry: keys.Entry, post: Post) -> str:
    """Replace a key that has expired or will soon; return the new one. It must be the same user's,
    unless the environment now names another profile."""
    choice = Choice(**{name: entry.get(name) for name in Choice._fields})
    named, user = entry.get("named"), entry.get("user")
    if keys.is_of_another_profile(entry):
        choice, named, user = choice._replace(profile=None), keys.named_profile(), None
    answer = _request_key(address, choice, post)
    if user not in (None, answer["user"]):
        raise Failure(
            f"the AWS credentials here are now those of {answer['user']}, and not of {user}, "
            "who logged in",
            "Log in as the user that you want to be: odcctl login",
        )
    _keep(address, choice, answer, named)
    return answer["key"]


def _request_key(address: Address, choice: Choice, post: Post) -> dict[str, Any]:
    server_id = choice.server_id or _server_id(address) or keys.server_name(address)
    github_user = choice.github_user or _config("github_user", None)
    body: dict[str, Any] = {
        "url": presign(choice, server_id),
        "headers": {"X-Odc-Server-Id": server_id},
    }
    if github_user:
        body["github_user"] = github_user
    answer: Any = post(address, body)
    if not isinstance(answer, dict) or not {"key", "expires_at", "user"} <= answer.keys():
        raise Failure(f"the server at {address} returned no key", "Is it an odc server?")
    return answer


def _server_id(address: Address) -> str | None:
    """The server's id, which the login is signed for: anyone who has the login can use it there.

    Raises WrongUsage if the environment's id is that of another server.
    """
    named = os.environ.get(SERVER_ID)
    if named:
        check_configured(
            address, SERVER_ID, f"Otherwise unset {SERVER_ID}, or log in with --server-id."
        )
    return named or _config("server_id", address)


def _keep(address: Address, choice: Choice, answer: dict[str, Any], named: str | None) -> None:
    entry = {name: answer[name] for name in ("key", "expires_at", "user")}
    how = choice._replace(profile=choice.profile or keys.named_profile())._asdict()
    keys.keep(address, entry | {k: v for k, v in (how | {"named": named}).items() if v})


def may_log_in_automatically(address: Address) -> bool:
    """Whether to log in without a login command: the connection is safe, and botocore can sign."""
    from importlib.util import find_spec

    return is_safe(address) and find_spec("botocore") is not None


def presign(choice: Choice, server_id: str) -> str:
    """A URL that asks AWS who signed it. Raises Failure without botocore or credentials."""
    try:
        from botocore.auth import SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError, ProfileNotFound
        from botocore.session import Session
    except ImportError:
        raise Failure(
            "a login with AWS credentials requires botocore, which is not installed",
            "Install it beside odcctl: pip install 'odc[aws]'",
        ) from None
    region = find_region(choice.region)
    try:
        found = Session(profile=choice.profile).get_credentials()
        credentials = found.get_frozen_credentials() if found else None
    except ProfileNotFound as error:
        raise Failure(str(error).lower(), "See: aws configure list-profiles") from None
    except BotoCoreError as error:
        profile = choice.profile or os.environ.get("AWS_PROFILE")
        raise Failure(
            f"AWS returned no credentials: {error}",
            f"Try: aws sso login{f' --profile {profile}' if profile else ''}",
        ) from None
    if credentials is None:
        raise Failure(
            "no AWS credentials were found",
            "Choose a profile (--profile, AWS_PROFILE), or set some up: aws configure sso",
        )
    request = AWSRequest(
        "GET", f"{sts_endpoint(region)}/",
        params={"Action": "GetCallerIdentity", "Version": "2011-06-15"},
        headers={"X-Odc-Server-Id": server_id},
    )  # fmt: skip
    life_s = MIN_LIFE_S + secrets.randbelow(MORE_LIFE_S)
    SigV4QueryAuth(credentials, "sts", region, expires=life_s).add_auth(request)
    return str(request.url)


def find_region(option: str | None) -> str:
    """--region, AWS_REGION, AWS_DEFAULT_REGION, us-east-2: the first that is set."""
    environment = os.environ
    region = option or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    region = region or DEFAULT_REGION
    if not _REGION.fullmatch(region):
        raise WrongUsage(f'"{region}" is not an AWS region', "For example: us-east-2.")
    return region


def sts_endpoint(region: str) -> str:
    """The endpoint that the signature is for, found as the AWS SDKs find it."""
    named = os.environ.get("AWS_ENDPOINT_URL_STS")
    if named:
        return named.rstrip("/")
    tail = ".cn" if region.startswith("cn-") else ""
    return f"https://sts.{region}.amazonaws.com{tail}"


def _config(name: str, address: Address | None) -> str | None:
    """A value of the config file; with address: only if the file is for that server."""
    config = read_config()
    if address is not None:
        server = config.get("server")
        if not server or keys.server_name(parse_address(str(server))) != keys.server_name(address):
            return None
    value = config.get(name)
    return str(value) if value else None
