"""API keys of logins, by server, in keys.json, which only the user may read."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from odcctl.exits import Failure
from odcctl.http.address import Address, config_path

Post = Callable[[Address, Mapping[str, Any]], object]
"""Sends a signed login to a server and returns the decoded answer; None if that is not JSON."""
Entry = dict[str, Any]
"""key, expires_at, user; how to log in again: profile, region, github_user, server_id; and named,
the profile that the environment named at the login. A key that failed is forgotten, the rest stays.
After a logout nothing but {"out": true}."""


def keys_path() -> str:
    return f"{os.path.dirname(config_path())}/keys.json"


def server_name(address: Address) -> str:
    return str(address).lower()


def find(address: Address) -> Entry | None:
    entry = _read().get(server_name(address))
    return entry if isinstance(entry, dict) else None


def keep(address: Address, entry: Entry) -> None:
    with _changing() as entries:
        entries[server_name(address)] = entry


def forget(address: Address, key: str) -> None:
    """This key, and not that of a command that was faster."""
    with _changing() as entries:
        entry = entries.get(server_name(address))
        if isinstance(entry, dict) and entry.get("key") == key:
            del entry["key"]
            entry.pop("expires_at", None)


def named_profile() -> str | None:
    """The AWS profile of the environment; none where keys are in it, which the AWS tools prefer."""
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        return None
    return os.environ.get("AWS_DEFAULT_PROFILE") or os.environ.get("AWS_PROFILE") or None


def is_of_another_profile(entry: Entry) -> bool:
    """Than the one that is named now. A login with --profile goes before what the environment
    named already then."""
    named = named_profile()
    return named is not None and named not in (entry.get("profile"), entry.get("named"))


def _read() -> dict[str, Entry]:
    try:
        with open(keys_path(), encoding="utf-8") as file:
            entries = json.load(file)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except ValueError:
        return {}  # truncated or not ours: the next login replaces it
    return entries if isinstance(entries, dict) else {}


@contextmanager
def _changing() -> Generator[dict[str, Entry]]:
    """Commands that log in at the same time do not undo each other's entries."""
    path = keys_path()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Failure(f"the key cannot be stored in {path}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        entries = _read()
        yield entries
        _write(path, entries)
    except OSError as error:
        raise Failure(f"the key cannot be stored in {path}: {error.strerror}") from error
    finally:
        os.close(lock)


def _write(path: str, entries: dict[str, Entry]) -> None:
    fresh = f"{path}.new"
    # Not what stands there: it may have been made for others to read.
    if os.path.lexists(fresh):
        os.unlink(fresh)
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        json.dump(entries, out, indent=1)
        out.write("\n")
    os.replace(fresh, path)
