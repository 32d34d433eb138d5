"""The daemon's settings for logins, read at its start; see odcd.settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from odcd.errors import BadRequest
from odcd.login.github import check_group
from odcd.login.identities import Rule, parse_role, read_identities
from odcd.outbound import parse_address
from odcd.variables import read_words

STS = "https://sts.us-east-2.amazonaws.com"
GITHUB = "https://api.github.com"
_URL = re.compile(r"(https?)://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::([0-9]{1,5}))?/?", re.ASCII)
_ID = re.compile(r"[!-~]{1,200}")
_DOMAIN = re.compile(r"[A-Za-z0-9.-]{1,60}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSettings:
    aws_roles: tuple[Rule, ...] = ()
    """ODC_AWS_ROLES. Roles whose sessions may log in by AWS, under the session's name, but not as
    operators or system accounts: arn:aws:iam::ACCOUNT:role/NAME, separated by commas; the name may
    have a *. Default none."""
    aws_identities: tuple[Rule, ...] = ()
    """ODC_AWS_IDENTITIES. A TOML file that maps AWS roles and users to user names; see
    docs/operating/login.md. It takes precedence over ODC_AWS_ROLES. Default none."""
    aws_domain: str | None = None
    """ODC_AWS_DOMAIN. Sessions are named NAME@DOMAIN, and the user is NAME; other sessions are
    rejected. Default none: a session's name is the user's."""
    sts_endpoint: str = STS
    """ODC_STS_ENDPOINT. The only AWS STS endpoint that is used, https://HOST. Default
    https://sts.us-east-2.amazonaws.com."""
    server_id: str | None = None
    """ODC_SERVER_ID. The server name that login requests must be signed for. Default ODC_URL, which
    clients sign for automatically."""
    url: str | None = None
    """ODC_URL. The address at which clients reach the daemon: https://HOST:PORT. Default none."""
    github_org: str | None = None
    """ODC_GITHUB_ORG. Users who log in must also be members of this organisation at GitHub, or of
    ORGANISATION/TEAM. Default none."""
    github_token_file: Path | None = None
    """ODC_GITHUB_TOKEN_FILE. The file with a token that may read members there; read again for each
    request. Default none."""
    github_api: str = GITHUB
    """ODC_GITHUB_API. GitHub's API. Default https://api.github.com."""

    def rules(self) -> tuple[Rule, ...]:
        """The rules that map AWS identities to users; the first match decides."""
        return self.aws_identities + self.aws_roles


def read_login(environment: Mapping[str, str]) -> LoginSettings:
    """Raises BadRequest, naming the invalid variable. An empty variable is not set."""
    environment = {name: text for name, text in environment.items() if text}
    url = environment.get("ODC_URL")
    settings = LoginSettings(
        aws_roles=tuple(map(parse_role, read_words(environment, "ODC_AWS_ROLES"))),
        aws_identities=read_identities(Path(environment["ODC_AWS_IDENTITIES"]).expanduser())
        if "ODC_AWS_IDENTITIES" in environment
        else (),
        aws_domain=environment.get("ODC_AWS_DOMAIN"),
        sts_endpoint=environment.get("ODC_STS_ENDPOINT", STS),
        server_id=environment.get("ODC_SERVER_ID") or (None if url is None else server_url(url)),
        url=url,
        github_org=environment.get("ODC_GITHUB_ORG"),
        github_token_file=_path(environment.get("ODC_GITHUB_TOKEN_FILE")),
        github_api=environment.get("ODC_GITHUB_API", GITHUB),
    )
    _check(settings)
    return settings


def _check(settings: LoginSettings) -> None:
    if parse_address(settings.sts_endpoint, "ODC_STS_ENDPOINT").path:
        raise BadRequest("ODC_STS_ENDPOINT has a path", "Write only https://HOST.")
    parse_address(settings.github_api, "ODC_GITHUB_API")
    if settings.rules() and settings.server_id is None:
        raise BadRequest(
            "ODC_AWS_ROLES or ODC_AWS_IDENTITIES lets users log in, but the server has no name",
            "Set ODC_URL, the address that users use, or ODC_SERVER_ID.",
        )
    if settings.server_id is not None and not _ID.fullmatch(settings.server_id):
        raise BadRequest(
            f'ODC_SERVER_ID="{settings.server_id}" has blanks or characters other than ASCII',
            "Use 1 to 200 letters, digits and signs.",
        )
    if settings.aws_domain is not None and not _DOMAIN.fullmatch(settings.aws_domain):
        raise BadRequest(
            f'ODC_AWS_DOMAIN="{settings.aws_domain}" is not a domain',
            "Write a domain such as example.org.",
        )
    if settings.github_org is not None:
        check_group(settings.github_org)
        if settings.github_token_file is None:
            raise BadRequest(
                "ODC_GITHUB_ORG needs a token for GitHub",
                "Set ODC_GITHUB_TOKEN_FILE to the file that contains it.",
            )


def server_url(text: str) -> str:
    """Normalize a URL as clients do: scheme, host and port, in lower case. Raises BadRequest."""
    found = _URL.fullmatch(text)
    if found is None or not 0 < int(found[3] or 443) < 65536:
        raise BadRequest(f'ODC_URL="{text}" is not an address', "Write https://HOST:PORT.")
    port = found[3] or ("443" if found[1] == "https" else "80")
    return f"{found[1]}://{found[2].lower()}:{int(port)}"


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text).expanduser().absolute()
