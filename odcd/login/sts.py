"""AWS STS says whose signature it is, and which roles are let in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from odcd.errors import BadRequest, LoginRefused
from odcd.login.https import Https
from odcd.login.presigned import SERVER_HEADER, Presigned

NAMESPACE = "{https://sts.amazonaws.com/doc/2011-06-15/}"
_PATTERN = re.compile(
    r"arn:(aws|aws-cn|aws-us-gov):iam::([0-9]{12}):role/([A-Za-z0-9+=.@_*-]{1,64})", re.ASCII
)
_ARN = re.compile(
    r"arn:(aws|aws-cn|aws-us-gov):sts::([0-9]{12}):assumed-role/([A-Za-z0-9+=,.@_-]{1,64})"
    r"/([A-Za-z0-9+=,.@_-]{1,64})",
    re.ASCII,
)
_ERROR = re.compile(rb"<Code>([A-Za-z]{1,60})</Code>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role that is let in, of ODC_AWS_ROLES; * in its name stands for anything."""

    partition: str
    account: str
    name: str

    def admits(self, caller: Caller) -> bool:
        words = ".*".join(re.escape(part) for part in self.name.split("*"))
        return (self.partition, self.account) == (caller.partition, caller.account) and bool(
            re.fullmatch(words, caller.role)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who signed, as STS says: a session of a role."""

    partition: str
    account: str
    role: str
    session: str

    @property
    def role_arn(self) -> str:
        return f"arn:{self.partition}:iam::{self.account}:role/{self.role}"


def parse_role(text: str) -> Role:
    """Raises BadRequest naming the setting."""
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise BadRequest(
            f'ODC_AWS_ROLES: "{text}" is not a role',
            "Write arn:aws:iam::123456789012:role/NAME; the name, which comes without its path, "
            "may have a *.",
        )
    return Role(partition=found[1], account=found[2], name=found[3])


class Sts:
    def __init__(self, https: Https, server_id: str, roles: Sequence[Role]) -> None:
        self._https = https
        self._server_id = server_id
        self._roles = tuple(roles)

    @property
    def authority(self) -> str:
        return self._https.place.authority

    async def ask(self, request: Presigned) -> Caller:
        """Send it. Raises LoginRefused when AWS does not take it, or it is nobody's whom it could
        be; IdentityDown when AWS gives no answer."""
        answer = await self._https.get(
            request.target, {SERVER_HEADER: self._server_id, "Accept": "text/xml"}
        )
        if answer.status in (400, 401, 403):
            code = _ERROR.search(answer.body)
            why = code[1].decode() if code else f"status {answer.status}"
            raise LoginRefused(
                f"AWS does not take the signature: {why}",
                "Are the credentials still good? Try: aws sts get-caller-identity",
                reason="sts",
            )
        if answer.status != 200:
            raise self._https.down(f"answered with status {answer.status}")
        return self._read(answer.body)

    def check_role(self, caller: Caller) -> None:
        if not any(role.admits(caller) for role in self._roles):
            raise LoginRefused(
                f"the role {caller.role_arn} is not let in",
                "Use a profile whose role is; operators list them in ODC_AWS_ROLES.",
                reason="role",
            )

    def _read(self, body: bytes) -> Caller:
        told = _identity(body)
        if told is None:
            raise self._https.down("answered with something else than an identity")
        arn, account = told
        found = _ARN.fullmatch(arn)
        if found is None:
            raise LoginRefused(
                "who signed is no session of a role: users and the root of an account are not "
                "let in",
                "Assume a role first, as AWS SSO does.",
                reason="identity",
            )
        if found[2] != account:
            raise self._https.down("answered with an identity that contradicts itself")
        return Caller(partition=found[1], account=account, role=found[3], session=found[4])


def _identity(body: bytes) -> tuple[str, str] | None:
    """ARN and account of an answer, if it is one."""
    if b"<!" in body:  # no entities, no comments: AWS sends none
        return None
    try:
        root = ElementTree.fromstring(body)
    except (ElementTree.ParseError, ValueError, LookupError):
        return None
    if root.tag != f"{NAMESPACE}GetCallerIdentityResponse":
        return None
    results = root.findall(f"{NAMESPACE}GetCallerIdentityResult")
    if len(results) != 1:
        return None
    arns = results[0].findall(f"{NAMESPACE}Arn")
    accounts = results[0].findall(f"{NAMESPACE}Account")
    if len(arns) != 1 or len(accounts) != 1 or len(arns[0]) or len(accounts[0]):
        return None
    return arns[0].text or "", accounts[0].text or ""
