"""A presigned sts:GetCallerIdentity request, checked before anything is sent.

The request to STS is built from the checked parts; no client text is passed on unchanged. Only STS
can verify the signature. This module checks what the signature would authorize.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote

from odcd.errors import LoginRefused

SERVER_HEADER = "x-odc-server-id"
MAX_URL = 8 * 1024
MAX_AGE = timedelta(minutes=15)
"""AWS rejects older signatures."""
MAX_AHEAD = timedelta(minutes=5)
"""How far a client's clock may be ahead of ours."""
_PLAIN = re.compile(r"[!-~]*", re.ASCII)
_VALUE = re.compile(r"(?:[A-Za-z0-9._~/:;=,@!$'()*-]|%[0-9A-Fa-f]{2})*", re.ASCII)
_PARAMETERS: Mapping[str, re.Pattern[str]] = {
    "Action": re.compile(r"GetCallerIdentity"),
    "Version": re.compile(r"2011-06-15"),
    "X-Amz-Algorithm": re.compile(r"AWS4-HMAC-SHA256"),
    "X-Amz-Credential": re.compile(r"[A-Z0-9]{16,128}/[0-9]{8}/[a-z0-9-]{1,40}/sts/aws4_request"),
    "X-Amz-Date": re.compile(r"[0-9]{8}T[0-9]{6}Z"),
    "X-Amz-Expires": re.compile(r"[0-9]{1,5}"),
    "X-Amz-SignedHeaders": re.compile(r"[a-z0-9;-]{1,200}"),
    "X-Amz-Signature": re.compile(r"[0-9a-f]{64}"),
    "X-Amz-Security-Token": re.compile(r"[A-Za-z0-9+/=_-]{1,6000}"),
}
_OPTIONAL = frozenset({"X-Amz-Security-Token"})
_SIGNED = {"host", SERVER_HEADER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Presigned:
    """target: path and query to send; credential: the id of the access key; digest: of the
    signature; expires_at: when AWS stops accepting it."""

    target: str
    credential: str
    digest: str
    expires_at: datetime


def check_presigned(
    url: str, headers: Mapping[str, str], method: str, *, authority: str, server_id: str,
    now: datetime,
) -> Presigned:  # fmt: skip
    """authority: of the configured STS endpoint. Raises LoginRefused with its reason."""
    if method != "GET":
        raise LoginRefused("only presigned GET requests are accepted", SIGN, reason="method")
    given = _parameters(_query(url, authority))
    moment, expires_at = _times(given, now)
    _check_headers(given["X-Amz-SignedHeaders"], headers, authority, server_id)
    query = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in given.items())
    signature = given["X-Amz-Signature"]
    return Presigned(
        target=f"/?{query}",
        credential=given["X-Amz-Credential"].partition("/")[0],
        digest=hashlib.sha256(signature.encode()).hexdigest(),
        # By our clock, which may differ from that of AWS.
        expires_at=max(expires_at, moment + MAX_AGE) + MAX_AHEAD,
    )


SIGN = "Log in with: odcctl login. docs/operating/login.md describes what to sign."


def _query(url: str, authority: str) -> str:
    if len(url) > MAX_URL:
        raise LoginRefused(f"the URL has more than {MAX_URL} characters", SIGN, reason="size")
    if not _PLAIN.fullmatch(url):
        raise LoginRefused("the URL has blanks or characters other than ASCII", SIGN, reason="form")
    if not url.startswith("https://"):
        raise LoginRefused("the URL does not begin with https://", SIGN, reason="scheme")
    found, slash, rest = url.removeprefix("https://").partition("/")
    # Compared literally: no user, no port, no other spelling of the host.
    if found != authority:
        raise LoginRefused(
            f"the request is signed for another host than {authority}, which this server uses",
            f"Sign for {authority}; set AWS_REGION to its region.",
            reason="host",
        )
    if not slash or not rest.startswith("?") or "#" in rest:
        raise LoginRefused("the URL's path is not /", SIGN, reason="path")
    return rest[1:]


def _parameters(query: str) -> dict[str, str]:
    """The decoded parameters, after checking that all required ones are present, and no others."""
    given: dict[str, str] = {}
    for piece in query.split("&"):
        name, equals, raw = piece.partition("=")
        pattern = _PARAMETERS.get(name)
        if pattern is None:
            raise LoginRefused("the URL has an unexpected parameter", SIGN, reason="parameter")
        if name in given:
            raise LoginRefused(f"{name} is in the URL twice", SIGN, reason="parameter")
        value = unquote(raw, errors="replace") if equals and _VALUE.fullmatch(raw) else None
        if name == "Action" and value != "GetCallerIdentity":
            raise LoginRefused(
                "the request is for another action than GetCallerIdentity", SIGN, reason="action"
            )
        if value is None or not pattern.fullmatch(value):
            raise LoginRefused(f"{name} has an invalid value", SIGN, reason="parameter")
        given[name] = value
    missing = _PARAMETERS.keys() - given.keys() - _OPTIONAL
    if "Action" in missing:
        raise LoginRefused("the request names no action", SIGN, reason="action")
    if missing:
        raise LoginRefused(f"the URL lacks {', '.join(sorted(missing))}", SIGN, reason="parameter")
    return given


def _times(given: Mapping[str, str], now: datetime) -> tuple[datetime, datetime]:
    """When it was signed, and when it expires."""
    life = timedelta(seconds=int(given["X-Amz-Expires"]))
    if not timedelta(0) < life <= MAX_AGE:
        raise LoginRefused(
            f"the signature is valid for {life.total_seconds():.0f} s, more than "
            f"the {MAX_AGE.total_seconds():.0f} s allowed",
            SIGN,
            reason="expiry",
        )
    try:
        # strptime would import a module, and the daemon may not be able to read root's Python.
        signed_at = datetime.fromisoformat(given["X-Amz-Date"]).astimezone(UTC)
        if signed_at.year < 2000:
            raise ValueError
    except ValueError:
        raise LoginRefused("X-Amz-Date is not a time", SIGN, reason="parameter") from None
    if signed_at > now + MAX_AHEAD:
        raise LoginRefused(
            "the request is signed for a time in the future",
            "Set the client's clock.",
            reason="date",
        )
    if now > min(signed_at + life, signed_at + MAX_AGE):
        raise LoginRefused(
            "the signature has expired",
            "Log in again; if that does not help, set the client's clock.",
            reason="date",
        )
    return signed_at, signed_at + life


def _check_headers(signed: str, headers: Mapping[str, str], authority: str, server_id: str) -> None:
    names = signed.split(";")
    if SERVER_HEADER not in names:
        raise LoginRefused(
            f"the signature does not cover the header {SERVER_HEADER}", SIGN, reason="unsigned"
        )
    if len(names) != len(_SIGNED) or set(names) != _SIGNED:
        raise LoginRefused(
            f"the signature covers headers other than host and {SERVER_HEADER}", SIGN,
            reason="header",
        )  # fmt: skip
    given = {name.lower(): value for name, value in headers.items()}
    if len(given) != len(headers) or not {SERVER_HEADER} <= given.keys() <= _SIGNED:
        raise LoginRefused(
            f"the headers must be {SERVER_HEADER} and, optionally, host, each once", SIGN,
            reason="header",
        )  # fmt: skip
    if given.get("host", authority) != authority:
        raise LoginRefused("the header host does not match the URL", SIGN, reason="header")
    if given[SERVER_HEADER] != server_id:
        raise LoginRefused(
            "the request is signed for another server than this one",
            f'This server is "{server_id}": use that address, or set ODC_SERVER_ID.',
            reason="server_id",
        )
