"""Let users in by AWS identity: every check in its order, and every outcome in the audit log."""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from odcd.clock import Clock
from odcd.errors import LoginRefused, OdcError, TooManyLogins
from odcd.keys import LIFE, LONGEST, NewKey, new_key
from odcd.login.github import GitHub
from odcd.login.https import TIMEOUT_S, Https, parse_place
from odcd.login.limiter import Limiter
from odcd.login.presigned import Presigned, check_presigned
from odcd.login.settings import LoginSettings
from odcd.login.sts import Caller, Sts

log = logging.getLogger(__name__)

USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,63}", re.ASCII)
NOBODYS = frozenset({"root", "odcd", "odc", "nobody", "me", "all"})
"""Names that are no person's, or mean something else here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a client sends: a presigned request, who it is at GitHub, and where it comes from."""

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

    async def refuse_login(self, detail: Mapping[str, str], now: datetime) -> None: ...


class Logins:
    """own_uid: the daemon's. context: whom TLS trusts; None: whom the machine does."""

    def __init__(
        self,
        settings: LoginSettings,
        store: LoginStore,
        clock: Clock,
        *,
        own_uid: int,
        context: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        assert settings.server_id is not None
        self._server_id = settings.server_id
        self._domain = settings.aws_domain
        self._store = store
        self._clock = clock
        self._own_uid = own_uid
        self._limiter = Limiter(clock)
        context = context or ssl.create_default_context()
        place = parse_place(settings.sts_endpoint, "ODC_STS_ENDPOINT")
        self._sts = Sts(
            Https(place, "AWS STS", context=context, timeout_s=timeout_s),
            self._server_id,
            settings.aws_roles,
        )
        self._github: GitHub | None = None
        if settings.github_org is not None and settings.github_token_file is not None:
            place = parse_place(settings.github_api, "ODC_GITHUB_API")
            https = Https(place, "GitHub", context=context, timeout_s=timeout_s)
            self._github = GitHub(https, settings.github_org, settings.github_token_file, clock)

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
        """What costs no more than reading it, and so is not counted when it is refused."""
        return check_presigned(
            proof.url, proof.headers, proof.method, authority=self._sts.authority,
            server_id=self._server_id, now=self._clock.now(),
        )  # fmt: skip

    async def _log_in(self, proof: Proof, request: Presigned, known: dict[str, str]) -> LoggedIn:
        """known: fills with what is known for sure."""
        now = self._clock.now()
        if not await self._store.use_signature(request.digest, request.expires_at, now):
            raise LoginRefused(
                "this signature was used before", "Each is good for one login.", reason="replayed"
            )
        caller = await self._sts.ask(request)
        known |= {"account": caller.account, "role": caller.role, "session": caller.session}
        self._sts.check_role(caller)
        user = self._user(caller)
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

    def _user(self, caller: Caller) -> str:
        name = caller.session
        if self._domain is not None:
            name, at, domain = name.rpartition("@")
            if not at or domain.lower() != self._domain.lower():
                raise LoginRefused(
                    f'the session "{caller.session}" is not one of {self._domain}',
                    "Log in with a profile whose sessions are.",
                )
        if not USER.fullmatch(name) or name.lower() in NOBODYS:
            raise LoginRefused(
                f'"{name}" is no name of a user here',
                "A user's name has letters, digits, dots, dashes and underscores. It is the name "
                "of the role's session, without the domain of ODC_AWS_DOMAIN.",
            )
        return name

    async def _note(self, reason: str, known: Mapping[str, str]) -> None:
        if not self._limiter.may_note(known["from"]):
            return
        log.warning("login.refused", extra={"reason": reason, **known})
        try:
            await self._store.refuse_login({"reason": reason, **known}, self._clock.now())
        except OdcError as error:
            log.error("login.untold", extra={"reason": reason, "why": error.message})
