"""Click's errors as messages of odcctl and odcd."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

import click

NO_ACTION = "Missing command."
"""Click's message for a group without one of its commands."""
_QUOTED = re.compile(r"'(.*)'", re.DOTALL)
_OUTSIDE = re.compile(r"(-?\d+) is not in the range")
_SURPLUS = re.compile(r"Got unexpected extra arguments? \(([^ )]*)")


def locate(message: str, context: click.Context | None, program: str) -> tuple[str, str]:
    """The message with the command's name before it, and the usage as a hint of two lines."""
    if context is None or context.parent is None:
        return message, f"See: {program} --help"
    path = context.command_path
    return (
        f"{path.removeprefix(f'{program} ')}: {message}",
        f"{context.get_usage()}\nSee: {path} --help",
    )


def message_of(error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption):
        near = ", ".join(_near(error.option_name, error.possibilities or ()))
        return f'no option "{error.option_name}"' + (f"; did you mean {near}?" if near else "")
    if isinstance(error, click.BadOptionUsage):
        return f"option {error.option_name} requires an argument"
    if isinstance(error, click.MissingParameter):
        return f"{_name(error.param)} is missing"
    if isinstance(error, click.BadParameter):
        return f"{_name(error.param)} {_complaint(error)}"
    if error.message == NO_ACTION:
        return "ACTION is missing"
    if surplus := _SURPLUS.match(error.message):
        return f'unexpected argument "{surplus[1]}"'
    return error.message[:1].lower() + error.message[1:].rstrip(".")


def _near(name: str, possibilities: Sequence[str]) -> list[str]:
    """Without the dashes, which all options have in common."""
    options = {one.lstrip("-"): one for one in possibilities}
    return [options[word] for word in difflib.get_close_matches(name.lstrip("-"), options)]


def _complaint(error: click.BadParameter) -> str:
    kind = error.param.type if error.param is not None else None
    if isinstance(kind, click.IntRange):
        # Click names the value in two forms: '5x' is not a valid ..., and 0 is not in the range.
        found = _QUOTED.search(error.message) or _OUTSIDE.match(error.message)
        return f'takes {_range_of(kind)}, not "{found[1] if found else ""}"'
    if kind is click.INT or kind is click.FLOAT:
        found = _QUOTED.search(error.message)
        number = "a whole number" if kind is click.INT else "a number"
        return f'takes {number}, not "{found[1] if found else ""}"'
    if isinstance(kind, click.Choice):
        found = _QUOTED.search(error.message.partition(" is not one of ")[0])
        *names, last = map(str, kind.choices)
        return f'must be {", ".join(names)} or {last}, not "{found[1] if found else ""}"'
    return error.message.rstrip(".")


def _range_of(kind: click.IntRange) -> str:
    if kind.max is None:
        return f"a whole number of at least {kind.min}"
    return f"a whole number from {kind.min} to {kind.max}"


def _name(param: click.Parameter | None) -> str:
    """--user; ID for an argument."""
    if param is None:
        return "an argument"
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return (param.metavar or param.name or "").strip("[].").lstrip("[")
