"""Errors as application/problem+json: the cause, its OD code and a hint."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from odcd.errors import (
    BadRequest,
    LoginRefused,
    MethodNotAllowed,
    NotAuthenticated,
    OdcError,
    TooManyLogins,
    TooManyRequests,
    Unavailable,
    UnknownPath,
)
from odcd.records.fields import shown

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1
LOGIN_AFTER_S = 60
MAX_PATH = 200
_AT = re.compile(r"^(?P<what>.*) - at `(?P<key>key in )?\$(?P<path>[^`]*)`$", re.DOTALL)
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<name>.*)`$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(?P<name>.*)`$", re.DOTALL)
_TYPES = re.compile(r"`(\w+(?: \| \w+)*)`")
_PLAIN = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "datetime": "a time as 2026-01-31T12:00:00Z",
}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457. Additional members where they apply: index (in a batch), script_path, reason (of a
    refused login), faults (of a table of recurring jobs: line, message, hint)."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    hint: str | None = None


def problem_of(
    error: OdcError, *, headers: Mapping[str, str] | None = None, **more: object
) -> Response:
    headers = dict(headers or {})
    if isinstance(error, Unavailable):
        headers["retry-after"] = str(RETRY_AFTER_S)
    if isinstance(error, TooManyRequests):
        headers["retry-after"] = str(error.retry_after_s)
    if isinstance(error, TooManyLogins):
        headers["retry-after"] = str(LOGIN_AFTER_S)
    if isinstance(error, LoginRefused):
        more = {"reason": error.reason, **more}
    if isinstance(error, NotAuthenticated):
        headers["www-authenticate"] = "Bearer"
    return _problem(error.title, error.status, error.code, error.message, error.hint, more, headers)


def unexpected(error: Exception, method: str, path: str) -> Response:
    """The answer contains only an id; the log has the details under that id."""
    error_id = uuid.uuid4().hex[:12]
    log.error(
        "api.failed", exc_info=error, extra={"error_id": error_id, "method": method, "path": path}
    )
    return _problem(
        "InternalError",
        500,
        "OD000",
        f"odcd failed on this request (error {error_id})",
        f"This is a bug. The daemon's log has the details under {error_id}.",
        {},
        {},
    )


def not_served(method: str, path: str, accepted: Sequence[str]) -> Response:
    """404, or 405 if the path accepts other methods."""
    hint = "GET /openapi.json lists the paths and their methods."
    name = shown(path[:MAX_PATH]).replace("\n", "?")
    if not accepted:
        return problem_of(UnknownPath(f"{name} does not exist", hint))
    allow = ", ".join(accepted)
    refused = MethodNotAllowed(f"{name} does not accept {method}", f"It accepts {allow}. {hint}")
    return problem_of(refused, headers={"allow": allow})


def malformed(error: Exception, what: str, hint: str = "See /docs for the fields.") -> BadRequest:
    """Report a value that does not fit by the name of its field. what: body, query, address."""
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return BadRequest(
            f"the {what} is not valid JSON: {_lower(text)}", "Send one JSON object in UTF-8."
        )
    found = _AT.match(text)
    path = found["path"].lstrip(".") if found else ""
    what_is = found["what"] if found else text
    for pattern, verdict in ((_UNKNOWN, "is unknown"), (_MISSING, "is missing")):
        if named := pattern.match(what_is):
            inner = f"{path}.{named['name']}" if path else named["name"]
            return BadRequest(f'{what}: the field "{inner}" {verdict}', hint)
    what_is = _TYPES.sub(_plain, what_is)
    where = f'the field "{path}"' if path else "the whole"
    return BadRequest(f"{what}: {where}: {_lower(what_is)}", hint)


def _plain(types: re.Match[str]) -> str:
    """`int | null` in plain words; text that is not a type stays unchanged."""
    names = types[1].split(" | ")
    known = [_PLAIN[name] for name in names if name in _PLAIN]
    return " or ".join(known) if len(known) == len(names) else types[0]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _problem(
    title: str,
    status: int,
    code: str,
    detail: str,
    hint: str | None,
    more: dict[str, Any],
    headers: dict[str, str],
) -> Response:
    body: dict[str, Any] = {
        "type": f"/docs#{title}",
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "hint": hint,
    }
    return Response(
        msgspec.json.encode(body | more), status_code=status, headers=headers, media_type=MEDIA_TYPE
    )
