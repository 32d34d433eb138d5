"""The effective settings and where each came from, without passwords."""

from __future__ import annotations

import difflib
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta

from odcd.configuration.declared import PREFIX, Declared, declared
from odcd.configuration.effective import Configured
from odcd.front.proxies import Proxies
from odcd.settings import Settings

MASK = "***"
_URL_PASSWORD = re.compile(r"(://[^:/@?]*:).*@")
_WORD_PASSWORD = re.compile(r"(\w*password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)", re.I)
OF_CLIENTS = frozenset({"ODC_SERVER", "ODC_TOKEN"})
"""Variables that resemble those of the daemon, but are odcctl's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    name: str
    """As in the file; the field's name if it cannot be set there."""
    value: str
    source: str
    """An option, a variable, the file's path, or default."""


def effective(found: Configured, settings: Settings) -> list[Effective]:
    """Every setting with a variable. settings: those that resulted from found."""
    return [
        Effective(name=one.key or one.name, value=without_password(value), source=source)
        for one in declared()
        if one.variable is not None
        for value, source in (_value_of(one, one.variable, found, settings),)
    ]


def _value_of(
    one: Declared, variable: str, found: Configured, settings: Settings
) -> tuple[str, str]:
    option, text = found.options.get(variable), found.environment.get(variable)
    if one.name == "config":
        return str(found.file or "none"), option or (variable if text else "default")
    if option is None and text:
        return text, str(found.file) if found.is_from_file(variable) else variable
    record = getattr(settings, one.group) if one.group else settings
    return _shown(getattr(record, one.name)), option or "default"


def _shown(value: object) -> str:
    match value:
        case None | Proxies():
            return "none"
        case bool():
            return "on" if value else "off"
        case timedelta():
            return f"{value.total_seconds():.12g} s"
        case tuple() | frozenset() | dict():
            parts: Collection[object] = value  # pyright: ignore[reportUnknownVariableType]
            return ",".join(sorted(map(str, parts))) or "none"
        case _:
            return str(value)


def without_password(text: str) -> str:
    return _WORD_PASSWORD.sub(rf"\1{MASK}", _URL_PASSWORD.sub(rf"\1{MASK}@", text))


def notes(found: Configured) -> Iterator[str]:
    """Settings that are valid but probably a mistake."""
    if found.warning:
        yield found.warning
    known = {one.variable: one for one in declared() if one.variable is not None}
    for variable in found.values:
        if not found.is_from_file(variable):
            yield f"{known[variable].key} of the file is not used: {variable} is set"
        elif known[variable].secret and _has_password(found, variable):
            yield (
                f"{known[variable].key} has a password, and other users can read the file: "
                f"chmod 640 {found.file}"
            )
    for variable in sorted(found.environment):
        if variable.startswith(PREFIX) and variable not in known and variable not in OF_CLIENTS:
            near = difflib.get_close_matches(variable, known, n=1, cutoff=0.85)
            if near:
                yield f"{variable} is not a setting; did you mean {near[0]}?"


def _has_password(found: Configured, variable: str) -> bool:
    text = found.values[variable]
    return (
        found.file is not None
        and without_password(text) != text
        and bool(found.file.stat().st_mode & stat.S_IROTH)
    )
