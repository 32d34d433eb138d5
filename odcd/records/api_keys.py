"""API keys: random, shown once, and stored as their SHA-256."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

HEAD = "odc_"
PREFIX_LENGTH = 8
LIFE = timedelta(hours=2)
LONGEST = timedelta(hours=12)
"""Counted from the login: rotating the key does not extend a session beyond this."""


class NewKey(NamedTuple):
    """prefix: the first characters after odc_; they identify the key without revealing it."""

    key: str
    digest: str
    prefix: str


class Ends(NamedTuple):
    """When a key ends unless it is revoked. until_at: the end of connections that cannot be
    resumed."""

    expires_at: datetime
    until_at: datetime


def new_key() -> NewKey:
    key = f"{HEAD}{secrets.token_urlsafe(32)}"
    start = len(HEAD)
    return NewKey(key, digest_of(key.encode()), key[start : start + PREFIX_LENGTH])


def digest_of(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()
