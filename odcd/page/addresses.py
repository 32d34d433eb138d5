"""The addresses of the page: their queries, and those of a view's updates."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from odcd.api.http.problems import malformed
from odcd.api.http.validation import misfit
from odcd.errors import BadRequest
from odcd.page.queries import PageQuery

A = TypeVar("A", bound=PageQuery)


def query_of(request: Request, form: type[A], **more: str) -> A:
    given = {k: v for k, v in request.query_params.items() if k != "done"}
    return convert(given | more, form)


def convert(given: dict[str, str], form: type[A]) -> A:
    """Raises BadRequest. Empty fields of a form count as absent."""
    filled = {name: value for name, value in given.items() if value}
    if any("\0" in value for value in filled.values()):
        raise BadRequest("the address contains a NUL byte", "Leave it out.")
    try:
        return msgspec.convert(filled, form, strict=False)
    except msgspec.ValidationError as error:
        explained = misfit(error, filled, form, partial(msgspec.convert, type=form, strict=False))
        raise explained or malformed(error, "address", "Start from the overview.") from None


def live_path(path: str, query: PageQuery) -> str:
    given: dict[str, Any] = {k: v for k, v in msgspec.to_builtins(query).items() if v is not None}
    return "/page/live?" + urlencode({"of": path, **given})
