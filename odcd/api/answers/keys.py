"""Answers about logins, API keys and page tickets."""

from __future__ import annotations

from odcd.api.answers.common import Answer


class PageTicket(Answer):
    """url: the link that logs a browser in. null over TCP, where the client already knows the
    daemon's address."""

    ticket: str
    expires_at: str
    path: str
    url: str | None


class LoginAnswer(Answer):
    key: str
    """Shown only once. Send it as Authorization: Bearer KEY."""
    prefix: str
    expires_at: str
    user: str
    uid: int
    account: str
    """The AWS account."""
    role: str


class RotatedKey(Answer):
    key: str
    """Shown only once. The key that requested it has ended."""
    prefix: str
    expires_at: str


class Key(Answer):
    prefix: str | None
    """The first characters of the key, after odc_."""
    made_at: str
    expires_at: str
    last_used_at: str | None
    """With a precision of one minute."""


class Me(Answer):
    user: str
    uid: int
    gid: int
    operator: bool
    key: Key | None
    """The key of this request; null on the socket."""
    sessions: int
    """The number of valid keys of the user."""
    page_sessions: int
    """The number of browsers that are logged in to the page as the user."""
    github_user: str | None
    """The GitHub user whose SSH keys may connect to the caller's dev servers."""


class EndedKeys(Answer):
    """The number of the user's keys and page sessions that were valid until now."""

    user: str
    keys: int
    page_sessions: int
