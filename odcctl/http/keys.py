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
"""key, expires_at, user; profile, region, github_user and server_id, to log in again; and named,
the profile that the environment named at the login. If a key fails, only key and expires_at are
removed. After a logout, the entry is {"out": true}."""


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
    """Remove this key, unless another command has replaced it."""
    with _changing() as entries:
        entry = entries.get(server_name(address))
        if isinstance(entry, dict) and entry.get("key") == key:
            del entry["key"]
            entry.pop("expires_at", None)


def named_profile() -> str | None:
    """The AWS profile of the environment; None if it has keys, since the AWS tools prefer those."""
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        return None
    return os.environ.get("AWS_DEFAULT_PROFILE") or os.environ.get("AWS_PROFILE") or None


def is_of_another_profile(entry: Entry) -> bool:
    """Whether the environment names another profile than the entry has. The profile that it named
    at the login does not count: --profile took precedence over it."""
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
    """Lock the file, so that commands that log in at the same time keep each other's entries."""
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
    # Never write to an existing file: other users may be able to read it.
    if os.path.lexists(fresh):
        os.unlink(fresh)
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        json.dump(entries, out, indent=1)
        out.write("\n")
    os.replace(fresh, path)
