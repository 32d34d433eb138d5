"""Asks AWS STS whose signature a request has."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from odcd.errors import LoginRefused
from odcd.login.identities import Caller, parse_caller
from odcd.login.identity_server import IdentityServer
from odcd.login.presigned import SERVER_HEADER, Presigned

NAMESPACE = "{https://sts.amazonaws.com/doc/2011-06-15/}"
_ERROR = re.compile(rb"<Code>([A-Za-z]{1,60})</Code>")


class Sts:
    def __init__(self, server: IdentityServer, server_id: str) -> None:
        self._server = server
        self._server_id = server_id

    @property
    def authority(self) -> str:
        return self._server.address.authority

    async def ask(self, request: Presigned) -> Caller:
        """Send the request. Raises LoginRefused when AWS rejects it, or the identity cannot be a
        user; IdentityDown when AWS gives no answer."""
        answer = await self._server.get(
            request.target, {SERVER_HEADER: self._server_id, "Accept": "text/xml"}
        )
        if answer.status in (400, 401, 403):
            code = _ERROR.search(answer.body)
            why = code[1].decode() if code else f"status {answer.status}"
            raise LoginRefused(
                f"AWS rejects the signature: {why}",
                "Check whether the credentials are still valid: aws sts get-caller-identity",
                reason="sts",
            )
        if answer.status != 200:
            raise self._server.down(f"answered with status {answer.status}")
        return self._read(answer.body)

    def _read(self, body: bytes) -> Caller:
        identity = _identity(body)
        if identity is None:
            raise self._server.down("sent an answer that is not an identity")
        arn, account = identity
        found = parse_caller(arn)
        if found is None:
            raise LoginRefused(
                "the signer is neither a session of a role nor an IAM user: the root of an "
                "account and federated users may not log in",
                "Assume a role first, as AWS SSO does.",
                reason="identity",
            )
        if found[0] != account:
            raise self._server.down("sent an identity that contradicts itself")
        return found[1]


def _identity(body: bytes) -> tuple[str, str] | None:
    """ARN and account of an answer; None if it is not a valid one."""
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
