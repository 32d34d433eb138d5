"""Names of requests to the API server, for metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


def operation_of(method: str, path: str, query: Sequence[tuple[str, str | int]] = ()) -> str:
    """The operation and object kind of a request: "list pods", "get pods/log"."""
    parts = path.partition("?")[0].strip("/").split("/")
    # api/v1/… or apis/GROUP/VERSION/…, then namespaces/NAME if more path elements follow.
    parts = parts[2 if parts[0] == "api" else 3 :]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    kind = "/".join([*parts[:1], *parts[2:3]]) or "about"
    verb = VERBS[method]
    if method == "GET" and len(parts) == 1:
        verb = "watch" if ("watch", "true") in query else "list"
    return f"{verb} {kind}"
