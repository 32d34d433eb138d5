"""Settings read from environment variables."""

from __future__ import annotations

import pwd
import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path

from odcd.errors import BadRequest

URL = re.compile(r"^https?://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9._~/-]*)?$")
ADDRESS = re.compile(r"^(?P<host>\[[0-9a-fA-F:]+\]|[^:]*):(?P<port>\d{1,5})$")


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


def read_audit(environment: Mapping[str, str], *, detached: bool) -> str | None:
    """Raises BadRequest for a path that depends on the current folder, or for - if the daemon has
    no standard output of its own."""
    place = environment.get("ODC_AUDIT_LOG") or None
    if place == "-" and detached:
        raise BadRequest(
            "ODC_AUDIT_LOG=- needs standard output, which --detach redirects to the daemon's log",
            "Name a file, or leave out --detach.",
        )
    if place not in (None, "-") and not Path(place).is_absolute():
        raise BadRequest(
            f'ODC_AUDIT_LOG="{place}" is not an absolute path',
            "For example /var/log/odc/audit.log.",
        )
    return place


def parse_address(text: str, by: str = "--listen") -> tuple[str, int]:
    """Parse HOST:PORT; an empty host means all addresses. by: the setting it comes from."""
    found = ADDRESS.match(text)
    if found is None or int(found["port"]) > 65535:
        raise BadRequest(
            f'{by} "{text[:100]}" is not HOST:PORT', "For example --listen 127.0.0.1:7070."
        )
    return found["host"].strip("[]") or "0.0.0.0", int(found["port"])


def read_choice(environment: Mapping[str, str], name: str, choices: Collection[str]) -> str | None:
    """One of the choices; None: not set. Raises BadRequest."""
    text = environment.get(name) or None
    if text is not None and text not in choices:
        words = " or ".join(choices)
        raise BadRequest(f'{name}="{text[:100]}" is not {words}', f"Use {words}.")
    return text
