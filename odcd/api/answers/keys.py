"""What answers about who one is look like: logins, keys, tickets."""

from __future__ import annotations

from odcd.api.answers.common import Answer


class PageTicket(Answer):
    """url: the address that lets a browser in, where the daemon knows under which address it is
    reached: over TCP it is the one that was asked."""

    ticket: str
    expires_at: str
    path: str
    url: str | None


class LoginAnswer(Answer):
    key: str
    """Shown this once: send it as Authorization: Bearer KEY."""
    prefix: str
    expires_at: str
    user: str
    uid: int
    account: str
    """At AWS."""
    role: str


class RotatedKey(Answer):
    key: str
    """Shown this once. The one that asked for it has ended."""
    prefix: str
    expires_at: str


class Key(Answer):
    prefix: str | None
    """The first characters of the key, after odc_."""
    made_at: str
    expires_at: str
    last_used_at: str | None
    """To the minute."""


class Me(Answer):
    user: str
    uid: int
    gid: int
    operator: bool
    key: Key | None
    """The key that asks; null on the socket."""
    sessions: int
    """How many of the user's keys hold."""
    page_sessions: int
    """And how many browsers are let in to the page as the user."""
    github_user: str | None
    """Whose SSH keys enter the dev servers of who asks."""


class EndedKeys(Answer):
    """How many of the user's held until now."""

    user: str
    keys: int
    page_sessions: int
