"""The common parts of all responses of the page: headers, compression, and error pages."""

from __future__ import annotations

import gzip
import logging
import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from odcd.api.http.identity import PEER
from odcd.api.http.problems import unexpected
from odcd.api.http.streaming import send_in_pieces
from odcd.errors import NotAuthenticated, OdcError
from odcd.fairness.answers import SMALL, Answers
from odcd.page.files import templates
from odcd.page.places import PROXY_HINT
from odcd.records.job import Identity

log = logging.getLogger(__name__)

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    # Not no-referrer: browsers would then omit the origin that shows that a form is ours.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
WORTH_BYTES = 1000
LEVEL = 3
THEMES = ("light", "dark")
THEME = "odc-theme"


def html(
    request: Request, template: str, status: int = 200, *, who: Identity | None = None,
    here: str = "", live: str = "", **more: Any,
) -> Response:  # fmt: skip
    """live: the URL of the view's updates."""
    theme = request.cookies.get(THEME)
    text = templates().get_template(template).render(
        who=who, here=here, live=live, theme=theme if theme in THEMES else None,
        over_tcp=PEER not in request.scope.get("state", {}), **more,
    )  # fmt: skip
    return packed(request, text.encode(), "text/html; charset=utf-8", status)


def packed(request: Request, body: bytes, media_type: str, status: int = 200) -> Response:
    headers = {**HEADERS, "vary": "accept-encoding"}
    if len(body) >= WORTH_BYTES and takes_gzip(request):
        headers["content-encoding"] = "gzip"
        body = gzip.compress(body, LEVEL, mtime=0)
    return Response(body, status, headers, media_type)


class Counted(Response):
    """A response whose body counts for its user until the client has read it."""

    def __init__(self, response: Response, who: Identity, answers: Answers) -> None:
        """Raises TooManyRequests and DaemonBusy."""
        if len(response.body) > SMALL:
            answers.check(who, len(response.body))
        super().__init__(response.body, response.status_code)
        self.raw_headers = response.raw_headers
        self._who = who
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        plain = Response(self.body, self.status_code)
        plain.raw_headers = self.raw_headers
        with self._answers.hold(self._who, len(self.body), done=True):
            await send_in_pieces(plain, scope, receive, send)


def takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def seen_other(path: str) -> Response:
    return Response(status_code=303, headers={**HEADERS, "location": path})


def problem(request: Request, error: OdcError, who: Identity | None = None) -> Response:
    if isinstance(error, NotAuthenticated):
        message = error.message[:1].upper() + error.message[1:] + "."
        hint = error.hint if error.hint == PROXY_HINT else None
        return html(request, "enter.html", error.status, message=message, hint=hint)
    return html(
        request, "problem.html", error.status, who=who, title=words(error.title), code=error.code,
        message=error.message, hint=error.hint,
    )  # fmt: skip


def words(title: str) -> str:
    """The name of an error as words: UnknownJob is "Unknown job"."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]*", title) or [title]
    return " ".join(
        [parts[0], *(p if p.isupper() and len(p) > 1 else p.lower() for p in parts[1:])]
    )


def failed(request: Request, error: Exception, who: Identity | None = None) -> Response:
    unexpected(error, request.method, request.url.path)
    return html(
        request, "problem.html", 500, who=who, title="Internal error", code="OD000",
        message="odcd could not answer this request.",
        hint="This is a bug. The daemon's log has the details.",
    )  # fmt: skip
