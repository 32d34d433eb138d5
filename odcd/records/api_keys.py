"""API keys: random, shown once, and kept as their SHA-256."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

HEAD = "odc_"
PREFIX_LENGTH = 8
LIFE = timedelta(hours=2)
LONGEST = timedelta(hours=12)
"""From a login on: rotation makes a session last no longer."""


class NewKey(NamedTuple):
    """prefix: the first characters after odc_, which tell it from others and give nothing away."""

    key: str
    digest: str
    prefix: str


class Ends(NamedTuple):
    """When a key ends that nobody has ended. until_at: what cannot be taken up again ends then."""

    expires_at: datetime
    until_at: datetime


def new_key() -> NewKey:
    key = f"{HEAD}{secrets.token_urlsafe(32)}"
    start = len(HEAD)
    return NewKey(key, digest_of(key.encode()), key[start : start + PREFIX_LENGTH])


def digest_of(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()
