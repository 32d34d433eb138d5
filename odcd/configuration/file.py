"""The settings file odcd.toml: found, checked and turned into the variables that it stands for."""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odcd.errors import BadRequest
from odcd.settings import ROOT_HOME

if TYPE_CHECKING:
    from odcd.configuration.declared import Declared

ROOT_FILE = Path("/etc/odc/odcd.toml")
NAME = "odcd.toml"
NONE = "none"
MAX_BYTES = 1024 * 1024
LISTED = "docs/reference/settings.md lists the settings"
WORDS = {
    "whole": "a whole number",
    "number": "a number",
    "switch": "true or false",
    "flag": "true or false",
    "list": 'a text, or a list of texts, as ["a", "b"]',
    "text": "a text in quotes",
}


def find_file(named: str | None, home: Path) -> Path | None:
    """The file that applies: the one named by --config or ODC_CONFIG, else the usual one if it
    exists.

    Root's usual file is in /etc: an account that can write in the home must not set what root's
    daemon does. Raises BadRequest if a named file does not exist.
    """
    if named == NONE:
        return None
    if named:
        path = Path(named).expanduser().absolute()
        if not path.is_file():
            raise BadRequest(
                f"the settings file {path} does not exist",
                "Create it, or name another one with --config or ODC_CONFIG; none: no file.",
            )
        return path
    path = usual_file(home)
    return path if path is not None and path.is_file() else None


def usual_file(home: Path) -> Path | None:
    """Where the file is searched if none is named; None: nowhere."""
    if os.geteuid() != 0:
        return home / NAME
    return ROOT_FILE if home == ROOT_HOME else None


def unread_file(named: str | None, home: Path) -> Path | None:
    """A file in the home of root's daemon, which does not apply."""
    path = home / NAME
    return path if not named and usual_file(home) != path and path.is_file() else None


def read_file(path: Path, mistakes: list[str] | None = None) -> dict[str, str]:
    """Its settings, by variable. mistakes: receives the mistakes; None: they are raised as
    BadRequest, as is a file that is not TOML or that others can write."""
    found, wrong = parse_file(_table(path))
    if mistakes is not None:
        mistakes += wrong
    elif wrong:
        lines = [f"  {one}" for one in wrong]
        raise BadRequest(
            "\n".join([f"the settings file {path} is not valid:", *lines]),
            f"{LISTED}; `odcd config check` checks the file.",
        )
    return found


def parse_file(table: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The settings by variable, and what is wrong with the others, one sentence each."""
    from odcd.configuration.declared import by_key  # it parses sources: only if there is a file

    known = by_key()
    found: dict[str, str] = {}
    mistakes: list[str] = []
    for key, value in table.items():
        one = known.get(key)
        if one is None or one.variable is None:
            mistakes.append(_unknown(key, value, known))
            continue
        text = _text_of(one, value)
        if text is None:
            mistakes.append(f"{key} must be {WORDS[one.kind]}, not {_type_of(value)}")
        else:
            found[one.variable] = text
    return found, mistakes


def _unknown(key: str, value: object, known: Mapping[str, Declared]) -> str:
    if key in ("home", "config"):
        return f"{key} cannot be set in the file: it says where the file is"
    what = "section" if isinstance(value, dict) else "setting"
    plain = key.lower().removeprefix("odc_").replace("-", "_")
    near = difflib.get_close_matches(plain, known, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    if what == "section":
        hint = "; the file has no sections, write SETTING = VALUE on a line of its own"
    return f'there is no {what} "{key}"{hint}'


def _text_of(one: Declared, value: object) -> str | None:
    """A value as its variable has it; None: it has the wrong type."""
    match one.kind, value:
        case ("switch", bool()):
            return "on" if value else "off"
        case ("flag", bool()):
            return "1" if value else "0"
        case ("switch", "on" | "off"):
            return str(value)
        case (_, bool()):
            return None
        case ("whole" | "number", int()) | ("number", float()):
            return str(value)
        case ("text" | "list", str()):
            return value
        case ("list", list()):
            words: list[object] = value  # pyright: ignore[reportUnknownVariableType]
            if all(isinstance(word, str) for word in words):
                return (" " if one.variable == "ODC_NODES" else ",").join(map(str, words))
            return None
        case _:
            return None


def _type_of(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            return f'the text "{value[:100]}"'
        case list():
            return "a list"
        case dict():
            return "a section"
        case _:
            return "a date or time"


def _table(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            _check_owner(path, os.fstat(file.fileno()))
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadRequest(
            f"the settings file {path} cannot be read: {error.strerror}",
            "Check its owner and mode.",
        ) from error
    if len(text) > MAX_BYTES:
        raise BadRequest(f"the settings file {path} has more than 1 MiB", "Shorten it.")
    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadRequest(
            f"the settings file {path} is not TOML: {_reason(error)}",
            "A line is SETTING = VALUE, as lease_s = 10; texts are in quotes.",
        ) from error


def _reason(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error))[:200]


def _check_owner(path: Path, found: os.stat_result) -> None:
    root = os.geteuid() == 0
    writable = stat.S_IWOTH | (stat.S_IWGRP if root else 0)
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & writable:
        whose = "root" if root else "you or root"
        raise BadRequest(
            f"the settings file {path} can be changed by other users: its settings are not used",
            f"It must belong to {whose} and be writable by its owner only: chmod go-w {path}",
        )
