"""Checks whether a GitHub user is a member of the organisation or team that this server is for."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from odcd.clock import Clock
from odcd.errors import BadRequest, IdentityDown, LoginRefused
from odcd.login.identity_server import IdentityServer

USER = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}", re.ASCII)
GROUP = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]{0,99})(?:/([A-Za-z0-9][A-Za-z0-9_.-]{0,99}))?")
YES_KEPT_S = 600.0
NO_KEPT_S = 60.0
KEPT = 10_000


class _Membership(msgspec.Struct):
    state: str


class GitHub:
    """group: ORGANISATION, or ORGANISATION/TEAM. Only a clear yes from GitHub admits a user."""

    def __init__(self, server: IdentityServer, group: str, token_file: Path, clock: Clock) -> None:
        self._server = server
        self._group = group
        self._token_file = token_file
        self._clock = clock
        self._known: dict[str, tuple[float, bool]] = {}

    async def check(self, user: str | None) -> str:
        """Return the user's name. Raises LoginRefused, or IdentityDown when GitHub gives no
        answer."""
        if user is None:
            raise LoginRefused(
                f"this server is for members of {self._group} at GitHub; no GitHub name was given",
                "Give your GitHub name: odcctl login --github-user NAME",
                reason="github",
            )
        if not USER.fullmatch(user):
            raise LoginRefused(
                "that is not a valid GitHub user name",
                "A name has 1 to 39 letters, digits and single dashes.",
                reason="github",
            )
        if not await self._is_member(user.lower()):
            raise LoginRefused(
                f"{user} is not a member of {self._group} at GitHub",
                f"Ask its owners to add you; odc notices that within {NO_KEPT_S:.0f} s.",
                reason="github",
            )
        return user

    async def _is_member(self, user: str) -> bool:
        until, member = self._known.get(user, (0.0, False))
        if until <= self._clock.monotonic():
            member = await self._ask(user)
            if len(self._known) >= KEPT:
                self._known.clear()
            kept_s = YES_KEPT_S if member else NO_KEPT_S
            self._known[user] = (self._clock.monotonic() + kept_s, member)
        return member

    async def _ask(self, user: str) -> bool:
        org, _, team = self._group.partition("/")
        path = f"/orgs/{org}/members/{user}"
        if team:
            path = f"/orgs/{org}/teams/{team}/memberships/{user}"
        answer = await self._server.get(
            path,
            {"Authorization": f"Bearer {self._token()}", "Accept": "application/vnd.github+json"},
        )
        if answer.status == 404 or (answer.status == 302 and not team):
            return False
        if answer.status == 204 and not team:
            return True
        if answer.status == 200 and team:
            try:
                return msgspec.json.decode(answer.body, type=_Membership).state == "active"
            except msgspec.DecodeError:
                raise self._server.down("sent an answer that is not a membership") from None
        raise self._server.down(f"answered with status {answer.status}; check its token")

    def _token(self) -> str:
        try:
            token = self._token_file.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            token = ""
        if not re.fullmatch(r"[!-~]{1,1000}", token):
            raise IdentityDown(
                "this server cannot check the membership at GitHub: it has no token",
                f"An operator must check {self._token_file} (ODC_GITHUB_TOKEN_FILE).",
            )
        return token


def check_group(text: str) -> str:
    if not GROUP.fullmatch(text):
        raise BadRequest(
            f'ODC_GITHUB_ORG="{text}" is not an organisation', "Write ORGANISATION or ORG/TEAM."
        )
    return text
