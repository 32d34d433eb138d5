"""Tickets and sessions of the page: rows in the table of API keys that no API request can use.

Their digests have a prefix that the digest of a bearer token never has. Sessions made with an API
key end with it.
"""

from __future__ import annotations

from datetime import timedelta

from odcd.records.api_keys import NewKey, digest_of, new_key

TICKET_LIFE = timedelta(seconds=60)
SESSION_LIFE = timedelta(hours=12)


def ticket_of() -> NewKey:
    return _of_page("ticket")


def session_of() -> NewKey:
    return _of_page("session")


def ticket_digest(ticket: str) -> str:
    return _digest("ticket", ticket)


def session_digest(session: str) -> str:
    return _digest("session", session)


def _of_page(kind: str) -> NewKey:
    made = new_key()
    return made._replace(digest=_digest(kind, made.key))


def _digest(kind: str, key: str) -> str:
    return f"page-{kind}:{digest_of(key.encode())}"
