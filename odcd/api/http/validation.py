"""Name the field of a body or query that does not fit, and the values that would fit."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from odcd.errors import BadRequest
from odcd.records.fields import NODE_NAME, PRINTABLE, WORD

MAX_CHARS = 60
WRONG = "Give one line without control characters or escapes."
_LETTERS = "letters, digits and the characters . _ -"
_PATTERNS = {
    repr(PRINTABLE): ("has characters that cannot be shown", WRONG),
    repr(WORD): ("has a character that is not allowed", f"Use {_LETTERS}."),
    repr(NODE_NAME): (
        "is not a node name", f"Use {_LETTERS}, and begin with a letter or a digit."
    ),
}  # fmt: skip
_AT = re.compile(r"^(?P<what>.*) - at `(?P<key>key` in `)?\$(?P<path>[^`]*)`$", re.DOTALL)
_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<at>[0-9]+)\]|(?P<some>\[\.\.\.\])")
_BOUND = re.compile(r"^Expected `(int|float)` (>=|<=|>|<) ")
_LENGTH = re.compile(r"^Expected `(str|array|object)` of length (>=|<=) ")

Step = str | int


class _Place(NamedTuple):
    name: str
    value: Any
    types: list[Any]


def misfit(
    error: msgspec.ValidationError, value: Any, form: Any, read: Callable[[Any], object]
) -> BadRequest | None:
    """value: the data sent. read: raises the same error when called with it. None: the problem is
    not the value of a field but its name or type; the error's own text describes it."""
    found = _AT.match(str(error))
    if found is None:
        return None
    place = _place(str(error), found["path"], value, form, read)
    what = found["what"]
    if place is None:
        return None
    if found["key"] and what.startswith("Invalid enum value "):
        keys = [kind.key_type for kind in place.types if isinstance(kind, inspect.DictType)]
        wrong = what.removeprefix("Invalid enum value ").strip("'")
        return BadRequest(f'{place.name} has no "{wrong[:MAX_CHARS]}"', _accepted(keys))
    if found["key"]:
        return None
    if what.startswith("Invalid enum value "):
        return BadRequest(f"{place.name} cannot be {_shown(place.value)}", _accepted(place.types))
    if _BOUND.match(what):
        # Numbers in a query are text; the bound was checked after conversion.
        number = place.value if isinstance(place.value, str) else _shown(place.value)
        return BadRequest(f"{place.name} cannot be {number[:MAX_CHARS]}", _range(place.types))
    if what.startswith("Expected `str` matching regex "):
        rule = _PATTERNS.get(what.removeprefix("Expected `str` matching regex "))
        if rule is not None:
            wrong = "" if rule[1] == WRONG else f" {_shown(place.value)}"
            return BadRequest(f"{place.name}{wrong} {rule[0]}", rule[1])
    if _LENGTH.match(what):
        unit = "character" if isinstance(place.value, str) else "entry"
        count = len(place.value)
        size = f"{count} {unit if count == 1 else {'entry': 'entries'}.get(unit, unit + 's')}"
        return BadRequest(f"{place.name} has {size}", _lengths(place.types, place.value))
    return None


def _place(
    text: str, path: str, value: Any, form: Any, read: Callable[[Any], object]
) -> _Place | None:
    """The value at a path; msgspec leaves the keys of objects out of paths."""
    steps: list[Step] = []
    types: list[Any] = [inspect.type_info(form)]
    here = value
    for found in _STEP.finditer(path):
        step: Step | None = found["name"]
        if found["at"]:
            step = int(found["at"])
        elif found["some"]:
            step = _culprit(text, value, steps, here, read)
        try:
            here = here[step]
        except (KeyError, IndexError, TypeError):
            return None
        assert step is not None
        steps.append(step)
        types = [inner for kind in types for inner in _inside(kind, step)]
    names = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps]
    name = "".join(names).removeprefix(".")
    if steps and steps[0] == "limits":
        name = f"limit {name.removeprefix('limits').removeprefix('.')}".strip()
    return _Place(name, here, types) if name else None


def _culprit(
    text: str, value: Any, steps: list[Step], here: Any, read: Callable[[Any], object]
) -> str | None:
    """The key of the first entry with which the object raises this error; msgspec stops there."""
    if not isinstance(here, dict):
        return None
    entries: list[tuple[str, Any]] = list(here.items())  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType,reportUnknownMemberType]

    def fails(count: int) -> bool:
        try:
            read(_only(value, steps, dict(entries[:count])))
        except msgspec.ValidationError as error:
            return str(error) == text
        return False

    count = bisect_left(range(len(entries) + 1), True, key=fails)
    return entries[count - 1][0] if 0 < count <= len(entries) else None


def _only(value: Any, steps: list[Step], inner: Any) -> Any:
    """The value, with everything at this place replaced by inner."""
    if not steps:
        return inner
    step, *rest = steps
    below = _only(value[step], rest, inner)
    return [*value[:step], below] if isinstance(step, int) else {step: below}


def _inside(kind: Any, step: Step) -> list[Any]:
    if isinstance(kind, inspect.StructType):
        return [part for f in kind.fields if f.encode_name == step for part in _parts(f.type)]
    if isinstance(kind, inspect.DictType):
        return _parts(kind.value_type)
    if isinstance(kind, inspect.ListType) and isinstance(step, int):
        return _parts(kind.item_type)
    return []


def _parts(kind: Any) -> list[Any]:
    return list(kind.types) if isinstance(kind, inspect.UnionType) else [kind]


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_CHARS else text[:MAX_CHARS] + "…"


def _accepted(types: list[Any]) -> str:
    values = [v for kind in types if isinstance(kind, inspect.LiteralType) for v in kind.values]
    return f"Accepted: {', '.join(v if isinstance(v, str) else _shown(v) for v in values)}."


def _range(types: list[Any]) -> str:
    for kind in types:
        if isinstance(kind, inspect.IntType | inspect.FloatType):
            what = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
            if kind.gt is not None:
                upper = "" if kind.le is None else f", up to {kind.le}"
                return f"Give {what} above {kind.gt}{upper}."
            if kind.le is None:
                return f"Give {what} from {kind.ge} on."
            return f"Give {what} " + (
                f"up to {kind.le}." if kind.ge is None else f"from {kind.ge} to {kind.le}."
            )
    return "See /docs for the fields."


def _lengths(types: list[Any], value: Any) -> str:
    expected = {str: inspect.StrType, list: inspect.ListType, dict: inspect.DictType}[type(value)]
    for kind in types:
        if isinstance(kind, expected):
            minimum, maximum = kind.min_length or 0, kind.max_length
            if maximum is None:
                return f"At least {minimum}."
            return f"From {minimum} to {maximum}." if minimum else f"At most {maximum}."
    return "See /docs for the fields."
