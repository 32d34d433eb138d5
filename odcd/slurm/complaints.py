"""The errors of one request, reported together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from odcd.errors import BadRequest, OdcError

MAX_NAMED = 10
"""The others are only counted."""

T = TypeVar("T")


class Complaints:
    """Collects errors, so that one answer lists them all."""

    def __init__(self) -> None:
        self._errors: list[OdcError] = []

    def catch(self, work: Callable[[], T], instead: T) -> T:
        """The result of work; after an error, instead."""
        try:
            return work()
        except OdcError as error:
            self._errors.append(error)
            return instead

    def take(self) -> list[OdcError]:
        """The errors so far, which are forgotten."""
        errors, self._errors = self._errors, []
        return errors

    def check(self) -> None:
        """Raise the error, or all of them as one: of their class, or BadRequest if they differ."""
        if not self._errors:
            return
        kinds = {type(error) for error in self._errors}
        if len(self._errors) == 1:
            raise self._errors[0]
        named = self._errors[:MAX_NAMED]
        text = "; ".join(error.message for error in named)
        hints = dict.fromkeys(_hint_of(error) for error in named if error.hint)
        kind = kinds.pop() if len(kinds) == 1 else BadRequest
        raise kind(f"{len(self._errors)} errors: {text}", " ".join(hints) or None)


def _hint_of(error: OdcError) -> str:
    """The hint, with the option that it is about."""
    option, colon, _ = error.message.partition(": ")
    return f"{option}: {error.hint}" if colon and " " not in option else str(error.hint)
