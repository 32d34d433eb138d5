"""Settings read from environment variables."""

from __future__ import annotations

import pwd
import re
from collections.abc import Mapping
from datetime import timedelta

from odcd.errors import BadRequest

URL = re.compile(r"^https?://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9._~/-]*)?$")


def read_seconds(
    environment: Mapping[str, str], name: str, default: timedelta, max_s: int = 86_400
) -> timedelta:
    """Raises BadRequest, naming the variable, also when its value is empty."""
    text = environment.get(name)
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= max_s:
        raise BadRequest(f'{name}="{text}" is not a number of seconds', f"Give 1 to {max_s}.")
    return timedelta(seconds=seconds)


def read_words(environment: Mapping[str, str], name: str) -> list[str]:
    """Return the words of a variable, separated by commas or whitespace."""
    return re.findall(r"[^,\s]+", environment.get(name, ""))


def read_url(environment: Mapping[str, str], name: str, default: str) -> str:
    text = environment.get(name) or default
    if not URL.match(text):
        raise BadRequest(f'{name}="{text[:100]}" is not an address', f"For example {default}.")
    return text


def read_accounts(environment: Mapping[str, str], name: str) -> frozenset[int]:
    """The uids of accounts of this machine. Raises BadRequest, naming an account that does not
    exist."""
    found: set[int] = set()
    for word in read_words(environment, name):
        try:
            found.add(int(word) if word.isdecimal() else pwd.getpwnam(word).pw_uid)
        except KeyError:
            raise BadRequest(
                f'{name}: this machine has no account "{word}"',
                "`getent passwd` lists the accounts.",
            ) from None
    return frozenset(found)
