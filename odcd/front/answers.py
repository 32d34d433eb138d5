"""Answers to clients that are turned away, as bytes: none of their requests was read."""

from __future__ import annotations

import http
import json


def problem(status: int, title: str, code: str, detail: str, hint: str) -> bytes:
    """A complete HTTP response with a problem document; the connection closes after it."""
    body = json.dumps(
        {
            "type": f"/docs#{title}", "title": title, "status": status, "code": code,
            "detail": detail, "hint": hint,
        }
    ).encode()  # fmt: skip
    head = [
        f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}",
        "content-type: application/problem+json",
        f"content-length: {len(body)}",
        "connection: close",
        *(["retry-after: 1"] if status == 429 else []),
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


def bad_request(status: int, detail: str, hint: str) -> bytes:
    return problem(status, "BadRequest", "OD010", detail, hint)


TOO_MANY = problem(
    429, "TooManyRequests", "OD041", "too many connections are open",
    "Close some, or try again in a moment.",
)  # fmt: skip
