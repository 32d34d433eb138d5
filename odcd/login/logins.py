"""Log users in by AWS identity: all checks in order, with every outcome in the audit log."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from odcd.clock import Clock
from odcd.errors import BadRequest, LoginRefused, OdcError, TooManyLogins
from odcd.login.github import GitHub
from odcd.login.identities import SYSTEM, Caller, Rule, find_rule, name_of
from odcd.login.identity_server import TIMEOUT_S, IdentityServer
from odcd.login.limiter import Limiter
from odcd.login.presigned import Presigned, check_presigned
from odcd.login.settings import LoginSettings
from odcd.login.sts import Sts
from odcd.outbound import parse_address
from odcd.records.api_keys import LIFE, LONGEST, NewKey, new_key

log = logging.getLogger(__name__)

MIN_UID = 1000
"""Lower uids are system accounts of the daemon's machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A client's login request: a presigned request, its GitHub user, and its address."""

    url: str
    headers: Mapping[str, str]
    method: str
    github_user: str | None
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn:
    key: NewKey
    user: str
    uid: int
    account: str
    role: str
    expires_at: datetime


class LoginStore(Protocol):
    async def use_signature(self, digest: str, expires_at: datetime, now: datetime) -> bool: ...

    async def log_in(
        self, user: str, detail: Mapping[str, str], github_user: str | None, own_uid: int,
        key: NewKey, now: datetime, expires_at: datetime, until: datetime,
    ) -> int: ...  # fmt: skip

    async def refuse(self, detail: Mapping[str, str], now: datetime) -> None: ...


class Logins:
    """own_uid: the daemon's. operators: names of users who are operators. context: the certificates
    that TLS trusts; None: the machine's."""

    def __init__(
        self,
        settings: LoginSettings,
        store: LoginStore,
        clock: Clock,
        *,
        own_uid: int,
        operators: Collection[str] = (),
        context: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        assert settings.server_id is not None
        self._server_id = settings.server_id
        self._domain = settings.aws_domain
        self._store = store
        self._clock = clock
        self._own_uid = own_uid
        self._operators = frozenset(operators)
        self._rules = settings.rules()
        self._limiter = Limiter(clock)
        context = context or ssl.create_default_context()
        address = parse_address(settings.sts_endpoint, "ODC_STS_ENDPOINT")
        aws = IdentityServer(address, "AWS STS", context=context, timeout_s=timeout_s)
        self._servers = [aws]
        self._sts = Sts(aws, self._server_id)
        self._github: GitHub | None = None
        if settings.github_org is not None and settings.github_token_file is not None:
            address = parse_address(settings.github_api, "ODC_GITHUB_API")
            github = IdentityServer(address, "GitHub", context=context, timeout_s=timeout_s)
            self._servers.append(github)
            self._github = GitHub(github, settings.github_org, settings.github_token_file, clock)

    async def close(self) -> None:
        for server in self._servers:
            await server.close()

    async def log_in(self, proof: Proof) -> LoggedIn:
        """Raises LoginRefused, TooManyLogins, IdentityDown."""
        known: dict[str, str] = {"from": proof.address}
        try:
            request = self._check(proof)
            self._limiter.check(proof.address, request.credential)
            try:
                done = await self._log_in(proof, request, known)
            except LoginRefused:
                self._limiter.refused(proof.address, request.credential)
                raise
            self._limiter.accepted(proof.address, request.credential)
            return done
        except TooManyLogins:
            raise
        except LoginRefused as error:
            await self._note(error.reason, known)
            raise
        except OdcError as error:
            await self._note(error.title, known)
            raise

    def _check(self, proof: Proof) -> Presigned:
        """Cheap checks: a request that fails them does not count as a refused login."""
        return check_presigned(
            proof.url, proof.headers, proof.method, authority=self._sts.authority,
            server_id=self._server_id, now=self._clock.now(),
        )  # fmt: skip

    async def _log_in(self, proof: Proof, request: Presigned, known: dict[str, str]) -> LoggedIn:
        """known: filled with verified facts."""
        now = self._clock.now()
        if not await self._store.use_signature(request.digest, request.expires_at, now):
            raise LoginRefused(
                "this signature was used before",
                "A signature is valid for one login.",
                reason="replayed",
            )
        caller = await self._sts.ask(request)
        known |= {"account": caller.account, "role": caller.role}
        if caller.session is not None:
            known["session"] = caller.session
        rule = find_rule(self._rules, caller)
        user = name_of(rule, caller, self._domain)
        if rule.chosen:
            await self._check_chosen(user, rule, caller)
        github_user = await self._github.check(proof.github_user) if self._github else None
        key, now = new_key(), self._clock.now()
        detail = {name: known[name] for name in ("account", "role", "from")}
        uid = await self._store.log_in(
            user, detail, github_user, self._own_uid, key, now, now + LIFE, now + LONGEST
        )
        log.info("login.done", extra={"user": user, "uid": uid, "from": proof.address})
        return LoggedIn(
            key=key, user=user, uid=uid, account=caller.account, role=caller.role,
            expires_at=now + LIFE,
        )  # fmt: skip

    async def _check_chosen(self, user: str, rule: Rule, caller: Caller) -> None:
        """Check a name from AWS. The caller who assumes a role chooses the session's name, so it
        cannot name an operator or a system account unless the rule allows it. Raises
        LoginRefused."""
        if user in self._operators and not rule.operators:
            raise LoginRefused(
                f"user {user} is an operator, and the {caller.kind} {caller.arn} may not log in as "
                "one",
                "An operator who trusts that role says so in the file of ODC_AWS_IDENTITIES: "
                "operators = true",
            )
        if rule.system and user.lower() != "root":
            return
        # In a thread: the user database may be remote (LDAP).
        if user.lower() in SYSTEM or await asyncio.to_thread(_is_system, user):
            raise LoginRefused(
                f'"{user}" is not a valid user name here: it belongs to a system account',
                "Log in under your own name.",
            )

    async def _note(self, reason: str, known: Mapping[str, str]) -> None:
        if not self._limiter.may_note(known["from"]):
            return
        log.warning("login.refused", extra={"reason": reason, **known})
        try:
            await self._store.refuse({"reason": reason, **known}, self._clock.now())
        except OdcError as error:
            log.error("login.not_recorded", extra={"reason": reason, "why": error.message})


def _is_system(name: str) -> bool:
    try:
        return pwd.getpwnam(name).pw_uid < MIN_UID
    except (KeyError, ValueError):
        return False


def make_logins(
    own: LoginSettings, store: LoginStore, clock: Clock, operators: Collection[str],
    serves_uid: int | None,
) -> Logins | None:  # fmt: skip
    """Return None if no rule lets anyone log in. serves_uid: the only user that is served."""
    if not own.rules():
        return None
    if serves_uid is not None:
        raise BadRequest(
            "ODC_AWS_ROLES or ODC_AWS_IDENTITIES lets others log in, but this daemon serves "
            "only its own user",
            "Run it as root, or with --executor kubernetes.",
        )
    return Logins(own, store, clock, own_uid=os.getuid(), operators=operators)
